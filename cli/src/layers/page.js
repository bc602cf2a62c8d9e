const place = (origin) => (origin.chain ? origin.chain + ":" : "") + origin.instruction
  + (origin.node === undefined ? "" : "." + origin.node) + (origin.visit ? " x" + (origin.visit + 1) : "");
const name = (origin) => origin.operator + (origin.output ? " result " + origin.output : "") + (origin.name ? " " + origin.name : "");
const both = (layer, of) => of(layer.left) === of(layer.right) ? of(layer.left) : of(layer.left) + " | " + of(layer.right);
const what = (layer) => both(layer, name) + (layer.left.source || layer.right.source ? "  " + (layer.left.source || layer.right.source) : "");
const number = (value, digits) => value === null || value === undefined ? "" : value.toFixed(digits);
const small = (value) => value === 0 ? "0" : value.toExponential(1);
const layers = data.layers.map((layer, index) => ({ ...layer, index }));

const COLUMNS = [
  ["layer", (layer) => layer.index, (layer) => both(layer, place), false],
  ["verdict", (layer) => ["equal", "close", "diverges"].indexOf(layer.verdict), (layer) => layer.verdict, true, (cell, layer) => { cell.className = layer.verdict; }],
  ["max abs", (layer) => layer.max_abs, (layer) => small(layer.max_abs), true],
  ["mean abs", (layer) => layer.mean_abs, (layer) => small(layer.mean_abs), true],
  ["SQNR dB", (layer) => layer.sqnr_db ?? Infinity, (layer) => number(layer.sqnr_db, 1), false],
  ["cosine", (layer) => layer.cosine ?? 2, (layer) => number(layer.cosine, 6), false],
  ["beyond bounds", (layer) => layer.different, (layer) => layer.different + " of " + layer.elements, false],
  ["type", (layer) => layer.left.type, (layer) => both(layer, (origin) => origin.type), false],
  ["operator", what, what, false],
];
const table = sortable(COLUMNS, () => {
  const needle = at("filter").value.toLowerCase();
  const wanted = (layer) => (!at("differing").checked || layer.verdict !== "equal") && what(layer).toLowerCase().includes(needle);
  return { rows: layers.filter(wanted), all: layers.length };
}, false);

const HIGH = 180;
const MOST = 160;
const bars = () => {
  const svg = drawn("svg", { viewBox: "0 0 " + WIDE + " " + HIGH });
  const width = WIDE / Math.max(layers.length, 1);
  layers.forEach((layer, index) => {
    const decibels = layer.verdict === "equal" ? MOST : Math.min(Math.max(layer.sqnr_db ?? 0, 2), MOST);
    const height = decibels / MOST * (HIGH - 4);
    const bar = drawn("rect", { class: layer.verdict, x: index * width, y: HIGH - height, width: Math.max(width - 0.5, 0.5), height });
    explain(bar, () => place(layer.left) + " " + what(layer) + "\n" + layer.verdict + ", largest difference " + small(layer.max_abs)
      + (layer.sqnr_db === null ? "" : ", " + number(layer.sqnr_db, 1) + " dB"));
    svg.append(bar);
  });
  at("bars").append(svg);
};

const heading = () => {
  at("title").textContent = data.method + " of " + data.left + " and " + (data.right || "itself with rewrites");
  const equal = layers.filter((layer) => layer.verdict === "equal").length;
  const facts = [plural(layers.length, "layer") + " compared, " + equal + " equal"];
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
