// What is selected, what is found, and how one walks about.

const link = (text, act) => {
  const made = element("button", text);
  made.className = "link";
  made.addEventListener("click", act);
  return made;
};
const soft = (text) => {
  const made = element("span", text);
  made.className = "soft";
  return made;
};
const facts = (pairs) => {
  const list = element("dl");
  for (const [name, content] of pairs) {
    const said = element("dd");
    said.append(content);
    list.append(element("dt", name), said);
  }
  return list;
};
const graphName = (index) => data.graphs[index].name;

const describe_value = (state, index) => {
  const value = state.graph.values[index];
  const parts = [value.name, value.type, value.origin, value.place, value.constant ? "constant" : ""];
  return parts.filter(Boolean).join("  ");
};
const others = (state, list, value) => (list || []).filter(([, other]) => other === value).slice(0, 12)
  .map(([node]) => element("p", undefined, link(label(state.graph.nodes[node]), () => reveal(node))));

const panel = () => {
  const state = now;
  const parts = [];
  if (chosen === null) {
    parts.push(element("h3", state.graph.name), element("p", state.graph.about));
    const kinds = new Map();
    for (const node of state.graph.nodes) if (node.kind === "call" || node.kind === "delegate") kinds.set(node.name, (kinds.get(node.name) || 0) + 1);
    const sorted = [...kinds].sort((a, b) => b[1] - a[1]);
    parts.push(element("h4", "operators"), facts(sorted.slice(0, 40).map(([name, count]) => [String(count), link(name, () => search(name))])));
    if (state.graph.parent !== undefined) parts.push(element("h4", "inside of"), link(graphName(state.graph.parent), () => show(state.graph.parent)));
  } else if (chosen >= state.count) {
    const module = state.modules[chosen - state.count];
    parts.push(element("h3", module.label), element("p", "module, " + plural(module.inside, "node")));
    const item = chosen;
    parts.push(link(state.unfolded.has(item) ? "close it" : "open it", () => toggle(item)));
    const kinds = new Map();
    for (const node of within(state, item)) kinds.set(state.graph.nodes[node].name, (kinds.get(state.graph.nodes[node].name) || 0) + 1);
    parts.push(element("h4", "operators"), facts([...kinds].sort((a, b) => b[1] - a[1]).slice(0, 40).map(([name, count]) => [String(count), name])));
  } else {
    const node = state.graph.nodes[chosen];
    parts.push(element("h3", node.name), element("p", [node.place && "instruction " + node.place, node.kind === "call" ? "" : node.kind].filter(Boolean).join(", ")));
    for (const index of marks[state.index].get(chosen) || []) {
      const finding = data.findings[index];
      const line = element("p", finding.rule + " " + finding.message);
      line.className = finding.severity;
      parts.push(line);
    }
    for (const inner of node.graphs || []) parts.push(element("p", undefined, link("⤵ " + graphName(inner), () => show(inner))));
    const inputs = node.inputs || [];
    if (inputs.length) parts.push(element("h4", "reads"));
    for (const [name, value] of inputs.slice(0, 60)) {
      parts.push(element("p", undefined, soft(name ? name + "  " : ""), describe_value(state, value)), ...others(state, state.writers.get(chosen), value));
    }
    const outputs = node.outputs || [];
    if (outputs.length) parts.push(element("h4", "writes"));
    for (const value of outputs.slice(0, 60)) parts.push(element("p", describe_value(state, value)), ...others(state, state.readers.get(chosen), value));
    if (node.attributes) parts.push(element("h4", "attributes"), facts(node.attributes));
    const path = [];
    for (let item = state.parents[chosen]; item >= 0; item = state.parents[item]) path.unshift(item);
    if (path.length) parts.push(element("h4", "module"), ...path.map((item) => element("p", undefined, link(state.modules[item - state.count].label, () => select(item)))));
  }
  at("panel").replaceChildren(...parts);
};

const select = (item) => {
  chosen = item;
  panel();
  redraw();
};
const center = (item) => {
  const box = now.view.boxes.get(now.view.visible(item));
  const frame = canvas.getBoundingClientRect();
  if (looking.scale < 0.5) looking.scale = 1;
  looking.x = frame.width / 2 - (box.x + box.w / 2) * looking.scale;
  looking.y = Math.min(frame.height / 2, frame.height * 0.4) - (box.y + Math.min(box.h, frame.height) / 2) * looking.scale;
};
// Opens the modules around an item, and moves it into the middle.
const reveal = (item) => {
  let changed = false;
  for (let above = now.parents[item]; above >= 0; above = now.parents[above]) {
    changed ||= !now.unfolded.has(above);
    now.unfolded.add(above);
  }
  if (changed) lay(now);
  center(item);
  select(item);
};
const toggle = (item) => {
  const before = now.view.boxes.get(item);
  const corner = { x: before.x * looking.scale + looking.x, y: before.y * looking.scale + looking.y };
  now.unfolded.has(item) ? now.unfolded.delete(item) : now.unfolded.add(item);
  lay(now);
  const behind = now.view.boxes.get(item);
  // It stays where it was on the screen.
  looking.x = corner.x - behind.x * looking.scale;
  looking.y = corner.y - behind.y * looking.scale;
  select(item);
};
const whole = () => {
  const frame = canvas.getBoundingClientRect();
  const { w, h } = now.view.whole;
  looking.scale = Math.min(1.15, (frame.width - 40) / Math.max(w, 1), (frame.height - 40) / Math.max(h, 1));
  looking.x = (frame.width - w * looking.scale) / 2;
  looking.y = (frame.height - h * looking.scale) / 2;
};
// A graph that is too large to be read as a whole is shown from its top.
const begin = () => {
  whole();
  if (looking.scale >= 0.62) return;
  const frame = canvas.getBoundingClientRect();
  looking.scale = 0.85;
  const first = now.view.boxes.get(now.inside.get(-1)[0]);
  looking.x = frame.width / 2 - (first.x + first.w / 2) * looking.scale;
  looking.y = 24 - Math.min(first.y, 60) * looking.scale;
};

const show = (index) => {
  now = open(index);
  chosen = null;
  at("graph").value = String(index);
  lay(now);
  begin();
  at("about").textContent = now.graph.about + ", " + plural(now.graph.values.length, "value");
  const folds = now.inside.size > 1;
  at("fold").disabled = !folds;
  at("unfold").disabled = !folds;
  panel();
  memory();
  redraw();
};

const texts = new Map();
const text_of = (state) => {
  if (!texts.has(state.index)) {
    const { graph } = state;
    const value = (at) => [graph.values[at].name, graph.values[at].type, graph.values[at].origin].join(" ");
    texts.set(state.index, graph.nodes.map((node) => [label(node), node.module === undefined ? "" : graph.modules[node.module].name,
      ...(node.inputs || []).map(([, at]) => value(at)), ...(node.outputs || []).map(value), ...(node.attributes || []).flat()].join(" ").toLowerCase()));
  }
  return texts.get(state.index);
};
const search = (needle) => {
  if (needle !== undefined) at("find").value = needle;
  const wanted = at("find").value.toLowerCase().trim();
  if (!wanted) return select(null);
  const all = text_of(now);
  const found = [];
  for (let node = 0; node < all.length; node += 1) if (all[node].includes(wanted)) found.push(node);
  const parts = [element("h3", plural(found.length, "node") + " with “" + wanted + "”")];
  for (const node of found.slice(0, FOUND)) {
    const one = now.graph.nodes[node];
    parts.push(element("p", undefined, link(label(one), () => reveal(node)), soft("  " + second(now, one))));
  }
  if (found.length > FOUND) parts.push(element("p", "and " + (found.length - FOUND) + " more"));
  at("panel").replaceChildren(...parts);
};

const memory = () => {
  const used = now.graph.memory;
  at("memory").hidden = !used;
  if (!used) return;
  const state = now;
  const name = (index) => state.graph.nodes[index] ? label(state.graph.nodes[index]) : "nothing";
  const peak = used.peak_position;
  at("peak").textContent = bytes(used.peak_bytes) + " hold values at the peak, first at " + name(peak) + ". A click leads to the node.";
  const choose = (index) => { if (state.graph.nodes[index]) { reveal(index); at("stage").scrollIntoView({ block: "nearest" }); } };
  at("places").replaceChildren(...memoryCharts(used, name, choose));
  const types = new Map(state.graph.values.map((value) => [value.name, value.type]));
  const alive = used.values.filter((value) => value.bytes && value.first <= peak && peak <= value.last).sort((a, b) => b.bytes - a.bytes);
  at("alive").replaceChildren(...alive.slice(0, FOUND).map((value) => element("tr", undefined, element("td", value.name),
    element("td", bytes(value.bytes)), element("td", percent(used.peak_bytes ? value.bytes / used.peak_bytes : 0)), element("td", types.get(value.name)),
    element("td", undefined, link(name(value.first), () => choose(value.first))), element("td", undefined, link(name(value.last), () => choose(value.last))))));
};

const findings = () => {
  at("findings").hidden = !data.findings.length;
  at("found").replaceChildren(...data.findings.map((finding) => {
    const severity = element("td", finding.severity);
    severity.className = finding.severity;
    const where = element("td");
    const place = finding.path || "file";
    where.append(finding.node ? link(place, () => { if (now.index !== finding.node[0]) show(finding.node[0]); reveal(finding.node[1]); }) : place);
    return element("tr", undefined, severity, element("td", finding.rule), where, element("td", finding.message));
  }));
};

const item_at = (event) => {
  const item = event.target.getAttribute && event.target.getAttribute("data-item");
  return item === null || item === undefined ? null : Number(item);
};
let dragged = null;
canvas.addEventListener("pointerdown", (event) => { dragged = { x: event.clientX, y: event.clientY, far: false }; });
addEventListener("pointermove", (event) => {
  if (!dragged) return;
  const [dx, dy] = [event.clientX - dragged.x, event.clientY - dragged.y];
  if (!dragged.far && Math.abs(dx) + Math.abs(dy) < 4) return;
  dragged = { x: event.clientX, y: event.clientY, far: true };
  canvas.classList.add("moving");
  looking.x += dx;
  looking.y += dy;
  redraw();
});
addEventListener("pointerup", (event) => {
  const click = dragged && !dragged.far && canvas.contains(event.target);
  dragged = null;
  canvas.classList.remove("moving");
  if (click) select(item_at(event));
});
canvas.addEventListener("dblclick", (event) => {
  const item = item_at(event);
  if (item === null) return;
  const inner = item < now.count && now.graph.nodes[item].graphs;
  if (item >= now.count) toggle(item);
  else if (inner) show(inner[0]);
});
canvas.addEventListener("wheel", (event) => {
  event.preventDefault();
  const frame = canvas.getBoundingClientRect();
  const [x, y] = [event.clientX - frame.left, event.clientY - frame.top];
  const scale = Math.min(4, Math.max(0.01, looking.scale * Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.0016))));
  looking.x = x - (x - looking.x) * scale / looking.scale;
  looking.y = y - (y - looking.y) * scale / looking.scale;
  looking.scale = scale;
  redraw();
}, { passive: false });
addEventListener("keydown", (event) => {
  if (event.key === "Escape") { at("find").value = ""; select(null); }
  if (event.key === "/" && event.target === document.body) { event.preventDefault(); at("find").focus(); }
});
addEventListener("resize", redraw);
at("graph").replaceChildren(...data.graphs.map((graph, index) => {
  const choice = element("option", graph.name + "  (" + plural(graph.nodes.length, "node") + ")");
  choice.value = String(index);
  return choice;
}));
at("graph").addEventListener("change", () => show(Number(at("graph").value)));
at("find").addEventListener("input", () => search());
at("whole").addEventListener("click", () => { whole(); redraw(); });
at("fold").addEventListener("click", () => { now.unfolded.clear(); lay(now); begin(); select(null); });
at("unfold").addEventListener("click", () => { for (const item of now.inside.keys()) if (item >= 0) now.unfolded.add(item); lay(now); begin(); select(null); });

at("title").textContent = data.file;
const total = data.graphs.reduce((sum, graph) => sum + graph.nodes.length, 0);
const said = [data.kind, plural(data.graphs.length, "graph"), plural(total, "node"), plural(data.findings.length + data.more_findings, "finding")];
if (data.cut_short) said.push("cut short: " + data.cut_short.have + " of " + data.cut_short.want + " bytes");
at("facts").textContent = said.join("; ");
findings();
// `page.html#2` shows the third graph, `page.html#2/7` the eighth node of it.
const follow = () => {
  const [graph, node] = location.hash.slice(1).split("/").map(Number);
  if (!data.graphs[graph]) return;
  show(graph);
  if (data.graphs[graph].nodes[node]) reveal(node);
};
addEventListener("hashchange", follow);
if (data.graphs.length) show(0);
if (location.hash) follow();
// At once, whether or not the browser draws frames.
if (data.graphs.length) render();
