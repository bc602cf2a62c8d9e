// Items of a graph are its nodes, then its modules. A module is open or closed; nodes in a closed one are not drawn, and
// lines from and to them are lines of the module.

const OPEN_AT_FIRST = 140;
const FOUND = 200;
const MANY = 900;
let now = null;
let chosen = null;
let looking = { x: 0, y: 0, scale: 1 };
const canvas = at("canvas");

const marks = data.graphs.map(() => new Map());
data.findings.forEach((finding, index) => {
  if (!finding.node) return;
  const [graph, node] = finding.node;
  if (!marks[graph].has(node)) marks[graph].set(node, []);
  marks[graph].get(node).push(index);
});
const SEVERITIES = ["info", "warning", "error"];
const worst = (list) => SEVERITIES[Math.max(...list.map((index) => SEVERITIES.indexOf(data.findings[index].severity)))];

// `aten::convolution.out` is `convolution`: the panel has the rest.
const brief = (name) => name.replace(/^edge::/, "").replace(/^tvmgen_[A-Za-z0-9]+_fused_/, "").replace(/^[A-Za-z0-9_]+::/, "").replace(/\.[A-Za-z0-9_]+$/, "");
const label = (node) => (node.place ? node.place + " " : "") + node.name;

// What is drawn of a graph is worked out when it is first looked at.
const opened = new Map();
const open = (index) => {
  if (!opened.has(index)) opened.set(index, prepare(index));
  return opened.get(index);
};
const prepare = (index) => {
  const graph = data.graphs[index];
  const count = graph.nodes.length;
  const modules = graph.modules.map((module) => ({ name: module.name, parent: module.parent, inside: 0, filled: 0, nodes: [] }));
  graph.nodes.forEach((node, at) => { if (node.module !== undefined) modules[node.module].nodes.push(at); });
  for (let at = modules.length - 1; at >= 0; at -= 1) {
    modules[at].inside += modules[at].nodes.length;
    const above = modules[modules[at].parent];
    if (!above || !modules[at].inside) continue;
    above.inside += modules[at].inside;
    above.filled += 1;
  }
  // A module of one node is that node, and one with nothing but another is named with it.
  const parents = new Array(count + modules.length).fill(-1);
  const dissolves = (module) => module.inside < 2 || (!module.nodes.length && module.filled === 1);
  const shown = (at) => {
    let next = at;
    while (next !== undefined && dissolves(modules[next])) next = modules[next].parent;
    return next === undefined ? -1 : count + next;
  };
  const places = modules.map((_, at) => shown(at));
  modules.forEach((module, at) => {
    if (places[at] !== count + at) return;
    let names = [module.name];
    let above = module.parent;
    while (above !== undefined && places[above] !== count + above) {
      if (modules[above].inside > 1) names.unshift(modules[above].name);
      above = modules[above].parent;
    }
    module.label = names.join(" / ");
    parents[count + at] = above === undefined ? -1 : count + above;
  });
  graph.nodes.forEach((node, at) => { if (node.module !== undefined) parents[at] = places[node.module]; });
  const inside = new Map([[-1, []]]);
  modules.forEach((_, at) => { if (places[at] === count + at) inside.set(count + at, []); });
  const first = new Map();
  const add = (item, order) => {
    if (first.has(item)) return;
    first.set(item, order);
    const above = parents[item];
    inside.get(above).push(item);
    if (above >= 0) add(above, order);
  };
  for (let node = 0; node < count; node += 1) add(node, node);
  for (const list of inside.values()) list.sort((a, b) => first.get(a) - first.get(b));
  const flagged = new Map();
  for (const [node, list] of marks[index]) {
    for (let item = node; item >= 0; item = parents[item]) {
      if (!flagged.has(item)) flagged.set(item, []);
      flagged.get(item).push(...list);
    }
  }
  const writers = new Map();
  const readers = new Map();
  graph.edges.forEach(([from, to, value]) => {
    if (!writers.has(to)) writers.set(to, []);
    writers.get(to).push([from, value]);
    if (!readers.has(from)) readers.set(from, []);
    readers.get(from).push([to, value]);
  });
  const state = { index, graph, count, modules, parents, inside, flagged, writers, readers, unfolded: new Set(), view: null };
  // Modules are opened from the outside in, as long as there is room.
  let drawn = inside.get(-1).length;
  const queue = inside.get(-1).filter((item) => item >= count);
  while (queue.length) {
    const item = queue.shift();
    const more = inside.get(item).length;
    if (drawn + more > OPEN_AT_FIRST) continue;
    drawn += more;
    state.unfolded.add(item);
    queue.push(...inside.get(item).filter((below) => below >= count));
  }
  return state;
};

const size = (state, item) => {
  if (item >= state.count) {
    const text = state.modules[item - state.count].label;
    return { w: Math.min(300, Math.max(110, text.length * 7 + 34)), h: 40 };
  }
  const node = state.graph.nodes[item];
  const about = second(state, node);
  return { w: Math.min(310, Math.max(64, brief(node.name).length * 7.2 + 30, about.length * 5.6 + 24)), h: about ? 38 : 28 };
};
const second = (state, node) => {
  const value = state.graph.values[node.outputs && node.outputs.length ? node.outputs[0] : node.kind === "output" ? node.inputs[0][1] : -1];
  return value ? value.type : "";
};

// Boxes and lines of what is open: `boxes` by item, with places in the whole picture.
const lay = (state) => {
  const { parents, unfolded, inside, count } = state;
  const above = (item) => parents[item];
  const seen = new Map();
  const visible = (item) => {
    if (seen.has(item)) return seen.get(item);
    const group = above(item);
    let result = item;
    if (group >= 0) {
      const outer = visible(group);
      result = outer === group && unfolded.has(group) ? item : outer;
    }
    seen.set(item, result);
    return result;
  };
  const chain = (item) => {
    const list = [item];
    for (let next = above(item); next >= 0; next = above(next)) list.push(next);
    return list.reverse();
  };
  const lines = new Map();
  const outward = new Map();
  for (const [from, to] of state.graph.edges) {
    const [a, b] = [visible(from), visible(to)];
    if (a === b) continue;
    const [one, other] = [chain(a), chain(b)];
    let depth = 0;
    while (one[depth] === other[depth] && depth + 1 < Math.min(one.length, other.length)) depth += 1;
    const [start, end] = [one[depth], other[depth]];
    if (start === end) continue;
    const container = above(start);
    if (!lines.has(container)) lines.set(container, new Map());
    const key = start + ">" + end;
    if (!lines.get(container).has(key)) lines.get(container).set(key, { start, end });
    if (one.length > depth + 1) outward.set(a, (outward.get(a) || 0) | 2);
    if (other.length > depth + 1) outward.set(b, (outward.get(b) || 0) | 1);
  }
  const boxes = new Map();
  const drawn = [];
  const measure = (group) => {
    const items = inside.get(group).map((item) => {
      const box = { item, open: item >= count && unfolded.has(item) };
      if (box.open) {
        const within = measure(item);
        const label = state.modules[item - count].label;
        box.w = Math.max(within.w + 2 * PAD, Math.min(280, label.length * 6.6 + 40));
        box.h = within.h + 2 * PAD + HEAD;
        box.shift = (box.w - within.w) / 2;
      } else {
        Object.assign(box, size(state, item));
      }
      boxes.set(item, box);
      return box;
    });
    const index = new Map(items.map((box, at) => [box.item, at]));
    const own = [...(lines.get(group) || new Map()).values()].map(({ start, end }) => ({ start, end, from: index.get(start), to: index.get(end) }));
    const placed = arrange(items, own);
    drawn.push({ group, own });
    return placed;
  };
  const whole = measure(-1);
  const settle_in = (group, x, y) => {
    for (const item of inside.get(group)) {
      const box = boxes.get(item);
      box.x += x;
      box.y += y;
      if (box.open) settle_in(item, box.x + box.shift, box.y + HEAD + PAD);
    }
  };
  settle_in(-1, 0, 0);
  const paths = [];
  for (const { group, own } of drawn) {
    const origin = group < 0 ? { x: 0, y: 0 } : { x: boxes.get(group).x + boxes.get(group).shift, y: boxes.get(group).y + HEAD + PAD };
    for (const line of own) {
      const [from, to] = [boxes.get(line.start), boxes.get(line.end)];
      const points = line.points.map(([x, y]) => [x + origin.x, y + origin.y]);
      paths.push({ ...line, points, from, to });
    }
  }
  spread(paths);
  state.view = { boxes, paths, whole, visible, outward };
  return state.view;
};

// Lines leave and reach a box next to each other.
const spread = (paths) => {
  const ends = (side, other, edge) => {
    const by = new Map();
    for (const path of paths) {
      if (!by.has(path[side])) by.set(path[side], []);
      by.get(path[side]).push(path);
    }
    for (const [box, list] of by) {
      const toward = (path) => {
        const point = side === "from" ? path.points[0] : path.points[path.points.length - 1];
        return point ? point[0] : path[other].x + path[other].w / 2;
      };
      list.sort((a, b) => toward(a) - toward(b));
      const wide = Math.min(box.w - 16, (list.length - 1) * 12);
      list.forEach((path, index) => { path[edge] = box.x + box.w / 2 + (list.length > 1 ? wide * (index / (list.length - 1) - 0.5) : 0); });
    }
  };
  ends("from", "to", "leaves");
  ends("to", "from", "reaches");
};
const curve = (points) => {
  let path = "M" + points[0][0].toFixed(1) + " " + points[0][1].toFixed(1);
  for (let index = 1; index < points.length; index += 1) {
    const [[ax, ay], [bx, by]] = [points[index - 1], points[index]];
    const half = (by - ay) / 2;
    path += ax === bx ? "L" + bx.toFixed(1) + " " + by.toFixed(1)
      : "C" + ax.toFixed(1) + " " + (ay + half).toFixed(1) + " " + bx.toFixed(1) + " " + (by - half).toFixed(1) + " " + bx.toFixed(1) + " " + by.toFixed(1);
  }
  return path;
};
const bow = (from, to) => {
  const [ax, ay, bx, by] = [from.x + from.w / 2, from.y + from.h, to.x + to.w / 2, to.y];
  const away = Math.max(26, Math.min(160, Math.abs(by - ay) / 3));
  const side = Math.abs(ax - bx) < 20 && by - ay > 160 ? Math.max(from.w, to.w) / 2 + 40 : 0;
  return "M" + ax + " " + ay + "C" + (ax + side) + " " + (ay + away) + " " + (bx + side) + " " + (by - away) + " " + bx + " " + by;
};

const render = () => {
  const state = now;
  const { boxes, paths, visible, outward } = state.view;
  const { x, y, scale } = looking;
  const frame = canvas.getBoundingClientRect();
  const [left, top, right, bottom] = [-x / scale, -y / scale, (frame.width - x) / scale, (frame.height - y) / scale];
  const seen = (ax, ay, bx, by) => bx >= left - 40 && ax <= right + 40 && by >= top - 40 && ay <= bottom + 40;
  const world = drawn("g", { transform: "translate(" + x + " " + y + ") scale(" + scale + ")" });
  const [behind, between, front] = [drawn("g", {}), drawn("g", {}), drawn("g", {})];
  world.append(behind, between, front);
  const legible = scale > 0.28 || boxes.size < MANY;
  for (const path of paths) {
    const { from, to } = path;
    if (!seen(Math.min(from.x, to.x) - 60, Math.min(from.y, to.y), Math.max(from.x + from.w, to.x + to.w) + 60, Math.max(from.y + from.h, to.y + to.h))) continue;
    if (path.long) {
      between.append(drawn("path", { class: "far", d: "M" + path.leaves + " " + (from.y + from.h) + "v13M" + path.reaches + " " + (to.y - 13) + "v13" }));
    } else if (path.back) {
      between.append(drawn("path", { class: "far", d: bow(from, to) }));
    } else {
      between.append(drawn("path", { d: curve([[path.leaves, from.y + from.h], ...path.points, [path.reaches, to.y - 4]]) }));
    }
    if (!path.back) between.append(drawn("path", { class: "tip", d: "M" + (path.reaches - 3.5) + " " + (to.y - 6) + "h7l-3.5 6z" }));
  }
  for (const box of boxes.values()) {
    if (!seen(box.x, box.y, box.x + box.w, box.y + box.h)) continue;
    box.open ? drawOpen(state, box, behind, legible) : drawClosed(state, box, front, legible, outward);
  }
  if (chosen !== null && boxes.size) {
    const item = visible(chosen);
    const lit = new Map();
    const light = (from, to) => { if (from !== to) lit.set(from + ">" + to, [from, to]); };
    const nodes = new Set(chosen < state.count ? [chosen] : within(state, chosen));
    for (const node of nodes) {
      for (const [other] of state.writers.get(node) || []) if (!nodes.has(other)) light(visible(other), visible(node));
      for (const [other] of state.readers.get(node) || []) if (!nodes.has(other)) light(visible(node), visible(other));
    }
    for (const [from, to] of lit.values()) {
      if (boxes.get(from).open || boxes.get(to).open) continue;
      between.append(drawn("path", { class: "lit", d: bow(boxes.get(from), boxes.get(to)) }));
    }
    const box = boxes.get(item);
    if (box) front.append(drawn("rect", { class: "chosen", x: box.x, y: box.y, width: box.w, height: box.h, rx: 6, fill: "none" }));
  }
  canvas.replaceChildren(world);
};
const within = (state, group) => state.inside.get(group).flatMap((item) => item < state.count ? [item] : within(state, item));
const badge = (state, box, layer) => {
  const list = state.flagged.get(box.item);
  if (!list) return;
  layer.append(drawn("circle", { class: worst(list), cx: box.x + box.w - 2, cy: box.y + 2, r: 8 }));
  layer.append(drawn("text", { class: "count", x: box.x + box.w - 2, y: box.y + 5.5 }, list.length > 99 ? "99+" : String(list.length)));
};
const drawOpen = (state, box, layer, legible) => {
  layer.append(drawn("rect", { class: "open", "data-item": box.item, x: box.x, y: box.y, width: box.w, height: box.h, rx: 8 }));
  if (legible) layer.append(drawn("text", { class: "head", x: box.x + 10, y: box.y + 17 }, fit("▾ " + state.modules[box.item - state.count].label, box.w - 8)));
  badge(state, box, layer);
};
const drawClosed = (state, box, layer, legible, outward) => {
  const { item, x, y, w, h } = box;
  if (item >= state.count) {
    const module = state.modules[item - state.count];
    layer.append(drawn("rect", { class: "stack", x: x + 4, y: y + 4, width: w, height: h, rx: 7 }));
    layer.append(drawn("rect", { class: "closed", "data-item": item, x, y, width: w, height: h, rx: 7 }));
    if (legible) {
      layer.append(drawn("text", { x: x + 10, y: y + 17 }, fit("▸ " + module.label, w - 8)));
      layer.append(drawn("text", { class: "small", x: x + 22, y: y + 31 }, plural(module.inside, "node")));
    }
  } else {
    const node = state.graph.nodes[item];
    const about = second(state, node);
    const round = node.kind === "input" || node.kind === "output" ? h / 2 : 5;
    layer.append(drawn("rect", { class: "node " + node.kind, "data-item": item, x, y, width: w, height: h, rx: round }));
    if (node.kind === "call") layer.append(drawn("rect", { x: x + 1, y: y + 4, width: 4, height: h - 8, rx: 2, fill: hue(brief(node.name)), "pointer-events": "none" }));
    if (legible) {
      const name = (node.graphs ? "⤵ " : "") + (node.kind === "call" ? brief(node.name) : node.name);
      layer.append(drawn("text", { x: x + 12, y: y + (about ? 16 : 18) }, fit(name, (w - 14) * 0.88)));
      if (about) layer.append(drawn("text", { class: "small", x: x + 12, y: y + 30 }, fit(about, (w - 14) * 1.15)));
    }
  }
  // Lines to what is outside of the module around it, which has them.
  const ends = outward.get(item) || 0;
  if (ends & 1) layer.append(drawn("path", { class: "far", d: "M" + (x + w / 2) + " " + (y - 11) + "v11" }));
  if (ends & 2) layer.append(drawn("path", { class: "far", d: "M" + (x + w / 2) + " " + (y + h) + "v11" }));
  badge(state, box, layer);
};
let waiting = false;
const redraw = () => {
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => { waiting = false; render(); });
};
