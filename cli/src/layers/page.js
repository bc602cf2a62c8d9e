"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const at = (id) => document.getElementById(id);

// Names of files are text: they become nodes of text or attributes, never markup.
const element = (name, text) => {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  return made;
};
const drawn = (name, attributes) => {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const key in attributes) made.setAttribute(key, attributes[key]);
  return made;
};

const place = (origin) => (origin.chain ? origin.chain + ":" : "") + origin.instruction
  + (origin.node === undefined ? "" : "." + origin.node) + (origin.visit ? " x" + (origin.visit + 1) : "");
const name = (origin) => origin.operator + (origin.output ? " result " + origin.output : "") + (origin.name ? " " + origin.name : "");
const both = (layer, of) => of(layer.left) === of(layer.right) ? of(layer.left) : of(layer.left) + " | " + of(layer.right);
const what = (layer) => both(layer, name) + (layer.left.source || layer.right.source ? "  " + (layer.left.source || layer.right.source) : "");
const number = (value, digits) => value === null || value === undefined ? "" : value.toFixed(digits);
const small = (value) => value === 0 ? "0" : value.toExponential(1);
const layers = data.layers.map((layer, index) => ({ ...layer, index }));

const COLUMNS = [
  ["layer", (layer) => layer.index, (layer) => both(layer, place)],
  ["verdict", (layer) => ["equal", "close", "diverges"].indexOf(layer.verdict), (layer) => layer.verdict],
  ["max abs", (layer) => layer.max_abs, (layer) => small(layer.max_abs)],
  ["mean abs", (layer) => layer.mean_abs, (layer) => small(layer.mean_abs)],
  ["SQNR dB", (layer) => layer.sqnr_db ?? Infinity, (layer) => number(layer.sqnr_db, 1)],
  ["cosine", (layer) => layer.cosine ?? 2, (layer) => number(layer.cosine, 6)],
  ["beyond bounds", (layer) => layer.different, (layer) => layer.different + " of " + layer.elements],
  ["type", (layer) => layer.left.type, (layer) => both(layer, (origin) => origin.type)],
  ["operator", what, what],
];
let sorted = 0;
let downwards = false;
const table = () => {
  const needle = at("filter").value.toLowerCase();
  const wanted = (layer) => (!at("differing").checked || layer.verdict !== "equal") && what(layer).toLowerCase().includes(needle);
  const rows = layers.filter(wanted);
  const value = COLUMNS[sorted][1];
  rows.sort((a, b) => {
    const [x, y] = [value(a), value(b)];
    const order = typeof x === "string" ? x.localeCompare(y, "en", { numeric: true }) : x === y ? 0 : x < y ? -1 : 1;
    return downwards ? -order : order;
  });
  at("heads").replaceChildren(...COLUMNS.map(([title], index) => {
    const head = element("th", title);
    if (index === sorted) head.setAttribute("aria-sort", downwards ? "descending" : "ascending");
    head.addEventListener("click", () => {
      downwards = index === sorted ? !downwards : index > 0 && index < 4;
      sorted = index;
      table();
    });
    return head;
  }));
  at("rows").replaceChildren(...rows.map((layer) => {
    const line = element("tr");
    COLUMNS.forEach(([title, , show]) => {
      const cell = element("td", show(layer));
      if (title === "verdict") cell.className = layer.verdict;
      line.append(cell);
    });
    return line;
  }));
  at("shown").textContent = rows.length + " of " + layers.length;
};

const WIDE = 1160;
const HIGH = 180;
const MOST = 160;
const bars = () => {
  const svg = drawn("svg", { viewBox: "0 0 " + WIDE + " " + HIGH });
  const width = WIDE / Math.max(layers.length, 1);
  const tip = at("tip");
  layers.forEach((layer, index) => {
    const decibels = layer.verdict === "equal" ? MOST : Math.min(Math.max(layer.sqnr_db ?? 0, 2), MOST);
    const height = decibels / MOST * (HIGH - 4);
    const bar = drawn("rect", { class: layer.verdict, x: index * width, y: HIGH - height, width: Math.max(width - 0.5, 0.5), height });
    bar.addEventListener("mousemove", (event) => {
      tip.textContent = place(layer.left) + " " + what(layer) + "\n" + layer.verdict + ", largest difference " + small(layer.max_abs)
        + (layer.sqnr_db === null ? "" : ", " + number(layer.sqnr_db, 1) + " dB");
      tip.hidden = false;
      tip.style.left = Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8) + "px";
      tip.style.top = Math.min(event.clientY + 14, innerHeight - tip.offsetHeight - 8) + "px";
    });
    bar.addEventListener("mouseleave", () => { tip.hidden = true; });
    svg.append(bar);
  });
  at("bars").append(svg);
};

const heading = () => {
  at("title").textContent = data.method + " of " + data.left + " and " + (data.right || "itself with rewrites");
  const equal = layers.filter((layer) => layer.verdict === "equal").length;
  const facts = [layers.length + (layers.length === 1 ? " layer" : " layers") + " compared, " + equal + " equal"];
  if (data.left_only || data.right_only) facts.push("without a partner: " + data.left_only + " left, " + data.right_only + " right");
  if (data.seed !== null) facts.push("random inputs of seed " + data.seed);
  const first = (title, index) => {
    if (index !== null) facts.push(title + " " + place(layers[index].left) + " " + name(layers[index].left));
  };
  first("first difference", data.first_difference);
  first("first divergence", data.first_divergence);
  at("facts").textContent = facts.join("; ");
};

heading();
bars();
at("differing").checked = data.first_difference !== null;
at("differing").addEventListener("change", table);
at("filter").addEventListener("input", table);
table();
