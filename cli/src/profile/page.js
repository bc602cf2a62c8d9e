const label = (row) => (row.place === undefined ? "" : row.place + " ") + row.name;
const sizes = (row) => row.sizes ? " [" + row.sizes.join(", ") + "]" : "";
const describe = (row) => {
  const lines = [label(row) + sizes(row), time(row.median_ns) + ", " + percent(row.share) + " of all"];
  if (row.bytes !== null) lines.push(bytes(row.bytes) + " moved, " + row.multiply_adds + " multiply-adds");
  if (row.modules) lines.push(row.modules.join(" / "));
  return lines.join("\n");
};

const heading = () => {
  at("title").textContent = (data.method || "trace") + " of " + data.file;
  const facts = ["run " + time(data.run.median_ns) + ", median of " + data.runs,
    "half within " + time(data.run.lower_quartile_ns) + " to " + time(data.run.upper_quartile_ns),
    time(data.outside_ns) + " outside of instructions"];
  if (data.overhead) facts.push(time(data.overhead.unwatched_ns) + " a call that is not watched");
  if (data.threads) facts.push(data.threads + (data.threads === 1 ? " thread" : " threads"));
  at("facts").textContent = facts.join("; ");
};

const rate = (value, unit) => value === null ? "" : (value / 1e9).toFixed(2) + " " + unit;
const COLUMNS = [
  ["time", (row) => row.median_ns, (row) => time(row.median_ns), true],
  ["of all", (row) => row.share, (row) => percent(row.share), true, (cell, row) => {
    cell.className = "share";
    cell.style.backgroundSize = row.share * 100 + "% 100%";
  }],
  ["fastest", (row) => row.min_ns, (row) => time(row.min_ns), true],
  ["slowest", (row) => row.max_ns, (row) => time(row.max_ns), true],
  ["calls", (row) => row.calls, (row) => String(row.calls), true],
  ["bytes", (row) => row.bytes ?? -1, (row) => row.bytes === null ? "" : bytes(row.bytes), true],
  ["a second", (row) => row.bytes_per_second ?? -1, (row) => rate(row.bytes_per_second, "GB"), true],
  ["multiply-adds", (row) => row.multiply_adds ?? -1, (row) => row.multiply_adds ? row.multiply_adds.toLocaleString("en") : "", true],
  ["a second", (row) => row.multiply_adds_per_second ?? -1, (row) => row.multiply_adds ? rate(row.multiply_adds_per_second, "G") : "", true],
  ["what", (row) => label(row), (row) => label(row) + sizes(row), false],
];
const table = sortable(COLUMNS, () => {
  const needle = at("filter").value.toLowerCase();
  const matches = (row) => (label(row) + " " + (row.modules || []).join(" ")).toLowerCase().includes(needle);
  const all = data[at("by").value];
  return { rows: all.filter(matches), all: all.length };
}, true);

// Instructions of the plan in their order.
const steps = [...data.nodes].sort((a, b) => a.step - b.step);

const tree = () => {
  const root = { name: data.method || "trace", value: 0, parts: new Map(), row: null };
  for (const row of steps) {
    const path = [...(row.modules || [])];
    if (row.backend) path.push(row.backend);
    path.push(label(row));
    let node = root;
    node.value += row.median_ns;
    path.forEach((name, depth) => {
      if (!node.parts.has(name)) node.parts.set(name, { name, value: 0, parts: new Map(), row: depth + 1 === path.length ? row : null });
      node = node.parts.get(name);
      node.value += row.median_ns;
    });
  }
  return root;
};
const flame = (root, top, above) => {
  const deep = (node) => {
    let most = 0;
    for (const part of node.parts.values()) most = Math.max(most, deep(part));
    return most + 1;
  };
  const rows = above.length + deep(top);
  const svg = drawn("svg", { viewBox: "0 0 " + WIDE + " " + rows * 20, role: "img" });
  const share = (node) => node.name + "\n" + time(node.value) + ", " + percent(root.value ? node.value / root.value : 0);
  const about = (node) => () => node.row ? describe(node.row) : share(node);
  above.forEach((node, depth) => {
    box(svg, 0, depth * 20, WIDE, 19, node.name, about(node), "#c8ccd2").addEventListener("click", () => flame(root, node, above.slice(0, depth)));
  });
  const draw = (node, x, depth, width, path) => {
    box(svg, x, depth * 20, width, 19, node.name, about(node), hue(node.name.replace(/^[0-9:.]+ /, ""))).addEventListener("click", () => flame(root, node, path));
    let left = x;
    for (const part of node.parts.values()) {
      const wide = node.value ? width * part.value / node.value : 0;
      if (wide > 0.3) draw(part, left, depth + 1, wide, [...path, node]);
      left += wide;
    }
  };
  draw(top, 0, above.length, WIDE, above);
  at("flame").replaceChildren(svg);
};

const timeline = (from, to) => {
  const svg = drawn("svg", { viewBox: "0 0 " + WIDE + " 66", role: "img" });
  const place = (ns) => (ns - from) / (to - from) * WIDE;
  for (const { step, start_ns, end_ns } of data.timeline) {
    if (end_ns < from || start_ns > to || end_ns - start_ns < (to - from) / 1e5) continue;
    const row = steps[step];
    const [left, right] = [Math.max(0, place(start_ns)), Math.min(WIDE, place(end_ns))];
    const about = () => label(row) + sizes(row) + "\n" + time(end_ns - start_ns) + " in this run, from " + time(start_ns) + " on";
    box(svg, left, 2, right - left, 40, row.name, about, hue(row.name));
  }
  axis(svg, from, to, 60, (ns) => time(Math.round(ns)));
  const span = drawn("rect", { class: "drag", y: 0, height: 44, width: 0 });
  svg.append(span);
  const where = (event) => {
    const frame = svg.getBoundingClientRect();
    return Math.min(WIDE, Math.max(0, (event.clientX - frame.left) / frame.width * WIDE));
  };
  let begun = null;
  svg.addEventListener("mousedown", (event) => { begun = where(event); });
  svg.addEventListener("mousemove", (event) => {
    if (begun === null) return;
    span.setAttribute("x", Math.min(begun, where(event)));
    span.setAttribute("width", Math.abs(begun - where(event)));
  });
  svg.addEventListener("mouseup", (event) => {
    const [a, b] = [begun, where(event)].sort((x, y) => x - y);
    begun = null;
    if (b - a > 4) timeline(from + (to - from) * a / WIDE, from + (to - from) * b / WIDE);
  });
  svg.addEventListener("dblclick", () => whole());
  at("timeline").replaceChildren(svg);
};
const whole = () => timeline(0, Math.max(1, ...data.timeline.slice(-1).map((last) => last.end_ns)));

const memory = () => {
  const used = data.memory;
  if (!used || !used.alive_bytes.length) { at("memory").hidden = true; return; }
  const named = new Map(steps.filter((row) => row.position !== undefined).map((row) => [row.position, row]));
  const instruction = (position) => named.has(position) ? label(named.get(position)) : "instruction " + position + " of the plan";
  at("peak").textContent = bytes(used.peak_bytes) + " hold values at the peak, first at " + instruction(used.peak_position)
    + "; scratch " + bytes(used.scratch_bytes) + ", constants " + bytes(used.constant_bytes) + ", packed weights " + bytes(used.packed_bytes);
  at("places").replaceChildren(...memoryCharts(used, instruction));
};

heading();
at("by").addEventListener("change", table);
at("filter").addEventListener("input", table);
table();
const root = tree();
flame(root, root, []);
whole();
memory();
