"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const at = (id) => document.getElementById(id);

// Units as the command prints them.
const digits = (value, unit) => (value < 10 ? value.toFixed(2) : value < 100 ? value.toFixed(1) : value.toFixed(0)) + " " + unit;
const time = (ns) => ns < 1e3 ? ns + " ns" : ns < 1e6 ? digits(ns / 1e3, "µs") : ns < 1e9 ? digits(ns / 1e6, "ms") : digits(ns / 1e9, "s");
const bytes = (count) => {
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
  let unit = 0;
  while (count >= 1023.95 && unit + 1 < units.length) { count /= 1024; unit += 1; }
  return unit === 0 ? count + " B" : count.toFixed(1) + " " + units[unit];
};
const percent = (share) => (share * 100).toFixed(1) + " %";
const label = (row) => (row.place === undefined ? "" : row.place + " ") + row.name;
const sizes = (row) => row.sizes ? " [" + row.sizes.join(", ") + "]" : "";
const describe = (row) => {
  const lines = [label(row) + sizes(row), time(row.median_ns) + ", " + percent(row.share) + " of all"];
  if (row.bytes !== null) lines.push(bytes(row.bytes) + " moved, " + row.multiply_adds + " multiply-adds");
  if (row.modules) lines.push(row.modules.join(" / "));
  return lines.join("\n");
};

// Names of files are text: they become nodes of text or attributes, never markup.
const element = (name, text) => {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  return made;
};
const drawn = (name, attributes, text) => {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const key in attributes) made.setAttribute(key, attributes[key]);
  if (text !== undefined) made.textContent = text;
  return made;
};
const hue = (text) => {
  let hash = 7;
  for (const c of text) hash = (hash * 31 + c.codePointAt(0)) % 3600;
  return "hsl(" + hash / 10 + ",62%,72%)";
};
const tip = at("tip");
const explain = (target, text) => {
  target.addEventListener("mousemove", (event) => {
    tip.textContent = text();
    tip.hidden = false;
    tip.style.left = Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8) + "px";
    tip.style.top = Math.min(event.clientY + 14, innerHeight - tip.offsetHeight - 8) + "px";
  });
  target.addEventListener("mouseleave", () => { tip.hidden = true; });
};
const WIDE = 1160;
const fit = (text, width) => {
  const most = Math.floor(width / 6.2);
  return most < 3 ? "" : text.length <= most ? text : text.slice(0, most - 1) + "…";
};
const box = (svg, x, y, width, height, text, about, color) => {
  const rect = drawn("rect", { class: "box", x, y, width: Math.max(width, 0.4), height, fill: color });
  explain(rect, about);
  svg.append(rect);
  const short = fit(text, width);
  if (short) svg.append(drawn("text", { x: x + 3, y: y + height / 2 + 4 }, short));
  return rect;
};

const heading = () => {
  at("title").textContent = (data.method || "trace") + " of " + data.file;
  const facts = ["run " + time(data.run.median_ns) + ", median of " + data.runs,
    "half within " + time(data.run.lower_quartile_ns) + " to " + time(data.run.upper_quartile_ns),
    time(data.outside_ns) + " outside of instructions"];
  if (data.threads) facts.push(data.threads + (data.threads === 1 ? " thread" : " threads"));
  at("facts").textContent = facts.join("; ");
};

const rate = (value, unit) => value === null ? "" : (value / 1e9).toFixed(2) + " " + unit;
const COLUMNS = [
  ["time", (row) => row.median_ns, (row) => time(row.median_ns)],
  ["of all", (row) => row.share, (row) => percent(row.share)],
  ["fastest", (row) => row.min_ns, (row) => time(row.min_ns)],
  ["slowest", (row) => row.max_ns, (row) => time(row.max_ns)],
  ["calls", (row) => row.calls, (row) => String(row.calls)],
  ["bytes", (row) => row.bytes ?? -1, (row) => row.bytes === null ? "" : bytes(row.bytes)],
  ["a second", (row) => row.bytes_per_second ?? -1, (row) => rate(row.bytes_per_second, "GB")],
  ["multiply-adds", (row) => row.multiply_adds ?? -1, (row) => row.multiply_adds ? row.multiply_adds.toLocaleString("en") : ""],
  ["a second", (row) => row.multiply_adds_per_second ?? -1, (row) => row.multiply_adds ? rate(row.multiply_adds_per_second, "G") : ""],
  ["what", (row) => label(row), (row) => label(row) + sizes(row)],
];
let sorted = 0;
let downwards = true;
const table = () => {
  const needle = at("filter").value.toLowerCase();
  const matches = (row) => (label(row) + " " + (row.modules || []).join(" ")).toLowerCase().includes(needle);
  const all = data[at("by").value];
  const rows = all.filter(matches);
  const value = COLUMNS[sorted][1];
  rows.sort((a, b) => {
    const [x, y] = [value(a), value(b)];
    const order = typeof x === "string" ? x.localeCompare(y, "en", { numeric: true }) : x - y;
    return downwards ? -order : order;
  });
  at("heads").replaceChildren(...COLUMNS.map(([name], index) => {
    const head = element("th", name);
    if (index === sorted) head.setAttribute("aria-sort", downwards ? "descending" : "ascending");
    head.addEventListener("click", () => {
      downwards = index === sorted ? !downwards : index + 1 < COLUMNS.length;
      sorted = index;
      table();
    });
    return head;
  }));
  at("rows").replaceChildren(...rows.map((row) => {
    const line = element("tr");
    COLUMNS.forEach(([name, , show]) => {
      const cell = element("td", show(row));
      if (name === "of all") {
        cell.className = "share";
        cell.style.backgroundSize = row.share * 100 + "% 100%";
      }
      line.append(cell);
    });
    return line;
  }));
  at("shown").textContent = rows.length + " of " + all.length;
};

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

const axis = (svg, from, to, y, show) => {
  for (let mark = 0; mark <= 5; mark += 1) {
    const x = WIDE * mark / 5;
    const anchor = mark === 0 ? "start" : mark === 5 ? "end" : "middle";
    svg.append(drawn("text", { x, y, class: "axis", "text-anchor": anchor }, show(from + (to - from) * mark / 5)));
  }
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
  const count = used.alive_bytes.length;
  const place = (position) => position / count * WIDE;
  const charts = [];
  const line = drawn("svg", { viewBox: "0 0 " + WIDE + " 130", role: "img" });
  const high = Math.max(1, used.peak_bytes);
  let path = "";
  used.alive_bytes.forEach((alive, position) => {
    const y = 110 - alive / high * 95;
    path += (path ? "L" : "M") + place(position) + " " + y + "L" + place(position + 1) + " " + y;
  });
  const cover = drawn("rect", { x: 0, y: 0, width: WIDE, height: 112, fill: "transparent" });
  const peak = place(used.peak_position + 0.5);
  line.append(drawn("path", { class: "alive", d: path }), drawn("line", { class: "peak", x1: peak, x2: peak, y1: 8, y2: 112 }), cover);
  line.append(drawn("text", { x: 2, y: 11, class: "axis" }, bytes(high)));
  let pointed = 0;
  cover.addEventListener("mousemove", (event) => {
    const frame = line.getBoundingClientRect();
    pointed = Math.min(count - 1, Math.max(0, Math.floor((event.clientX - frame.left) / frame.width * count)));
  });
  explain(cover, () => instruction(pointed) + "\n" + bytes(used.alive_bytes[pointed]) + " hold values");
  axis(line, 0, count, 126, (position) => String(Math.round(position)));
  charts.push(line);
  used.parts.forEach((part, index) => {
    const height = Math.min(420, Math.max(60, used.values.filter((value) => value.part === index).length * 6));
    const svg = drawn("svg", { viewBox: "0 0 " + WIDE + " " + (height + 22), role: "img" });
    svg.append(drawn("text", { x: 2, y: 14, class: "axis" }, "memory " + part.name + ", " + bytes(part.bytes) + ", lowest address at the bottom"));
    for (const value of used.values) {
      if (value.part !== index || !part.bytes) continue;
      const tall = value.bytes / part.bytes * height;
      const y = 20 + height - (value.offset + value.bytes) / part.bytes * height;
      const about = () => value.name + ", " + bytes(value.bytes) + " at " + value.offset + "\nfrom " + instruction(value.first) + "\nto " + instruction(value.last);
      box(svg, place(value.first), y, place(value.last + 1) - place(value.first), tall, tall > 11 ? value.name : "", about, hue(value.name + value.name));
    }
    charts.push(svg);
  });
  at("places").replaceChildren(...charts);
};

heading();
at("by").addEventListener("change", table);
at("filter").addEventListener("input", table);
table();
const root = tree();
flame(root, root, []);
whole();
memory();
