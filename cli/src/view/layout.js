// Layout of a graph whose items may be groups: layers from top to bottom, each group by itself and a box in the one around
// it. Time is that of sorting items and lines: lines that pass many layers have no places of their own there beyond a number
// in proportion to the items.

const GAP_X = 22;
const GAP_Y = 34;
const PAD = 14;
const HEAD = 24;
const SWEEPS = 6;

// Positions in order, at least so far apart as wanted, as near as can be to where each would be: neighbours that want to
// pass each other become a block with one mean.
const settle = (wanted, weight, apart) => {
  const blocks = [];
  let offset = 0;
  const offsets = wanted.map((_, index) => {
    offset += index ? apart[index] : 0;
    return offset;
  });
  wanted.forEach((want, index) => {
    let block = { sum: (want - offsets[index]) * weight[index], weight: weight[index], count: 1 };
    while (blocks.length) {
      const last = blocks[blocks.length - 1];
      if (last.sum / last.weight <= block.sum / block.weight) break;
      blocks.pop();
      block = { sum: last.sum + block.sum, weight: last.weight + block.weight, count: last.count + block.count };
    }
    blocks.push(block);
  });
  const settled = [];
  for (const block of blocks) {
    for (let index = 0; index < block.count; index += 1) settled.push(block.sum / block.weight + offsets[settled.length]);
  }
  return settled;
};

// Layers of items in the order of a program; `links` are pairs of indices, the earlier one first.
const layered = (count, links) => {
  const layer = new Array(count).fill(0);
  const before = Array.from({ length: count }, () => []);
  const behind = Array.from({ length: count }, () => []);
  for (const link of links) {
    before[link.to].push(link.from);
    behind[link.from].push(link.to);
  }
  for (let item = 0; item < count; item += 1) {
    for (const other of before[item]) layer[item] = Math.max(layer[item], layer[other] + 1);
  }
  // What comes from nowhere stands right above what reads it first.
  for (let item = count - 1; item >= 0; item -= 1) {
    if (before[item].length || !behind[item].length) continue;
    let first = Infinity;
    for (const other of behind[item]) first = Math.min(first, layer[other]);
    layer[item] = Math.max(0, first - 1);
  }
  return layer;
};

// Places items, given as `{ w, h }` in the order of the program, and lines between them. Items get `x` and `y`, lines get
// `points` between their ends, or `long` where there was no room for those.
const arrange = (items, lines) => {
  const links = [];
  for (const line of lines) {
    if (line.from === line.to) continue;
    line.back = line.from > line.to;
    links.push(line.back ? { line, from: line.to, to: line.from } : { line, from: line.from, to: line.to });
  }
  const layer = layered(items.length, links);
  const spots = items.map((item, index) => ({ item, w: item.w, layer: layer[index], up: [], down: [], heavy: 1 }));
  let room = 4 * items.length + 240;
  links.sort((a, b) => layer[a.to] - layer[a.from] - layer[b.to] + layer[b.from]);
  for (const link of links) {
    const span = layer[link.to] - layer[link.from];
    link.line.via = [];
    if (span - 1 > room) {
      link.line.long = true;
      continue;
    }
    room -= span - 1;
    let above = spots[link.from];
    for (let at = layer[link.from] + 1; at < layer[link.to]; at += 1) {
      const spot = { w: 4, layer: at, up: [above], down: [], heavy: 3 };
      above.down.push(spot);
      spots.push(spot);
      link.line.via.push(spot);
      above = spot;
    }
    above.down.push(spots[link.to]);
    spots[link.to].up.push(above);
  }
  const layers = [];
  for (const spot of spots) (layers[spot.layer] ||= []).push(spot);
  const rows = layers.filter(Boolean);
  const number = () => rows.forEach((row) => row.forEach((spot, index) => { spot.order = index; }));
  number();
  const mean = (spots, of) => spots.reduce((sum, spot) => sum + of(spot), 0) / spots.length;
  for (let sweep = 0; sweep < SWEEPS; sweep += 1) {
    const side = sweep % 2 ? "down" : "up";
    for (const row of sweep % 2 ? [...rows].reverse() : rows) {
      row.forEach((spot) => { spot.rank = spot[side].length ? mean(spot[side], (other) => other.order) : spot.order; });
      row.sort((a, b) => a.rank - b.rank);
      row.forEach((spot, index) => { spot.order = index; });
    }
  }
  const apart = new Map(rows.map((row) => [row, row.map((spot, index) => index ? (row[index - 1].w + spot.w) / 2 + GAP_X : 0)]));
  for (const row of rows) {
    settle(row.map(() => 0), row.map(() => 1), apart.get(row)).forEach((x, index) => { row[index].x = x; });
  }
  for (let sweep = 0; sweep < SWEEPS; sweep += 1) {
    const side = sweep % 2 ? "down" : "up";
    for (const row of sweep % 2 ? [...rows].reverse() : rows) {
      const wanted = row.map((spot) => spot[side].length ? mean(spot[side], (other) => other.x) : spot.x);
      const weight = row.map((spot) => spot[side].length ? spot.heavy : 0.2);
      settle(wanted, weight, apart.get(row)).forEach((x, index) => { row[index].x = x; });
    }
  }
  let left = Infinity;
  let right = -Infinity;
  for (const spot of spots) {
    left = Math.min(left, spot.x - spot.w / 2);
    right = Math.max(right, spot.x + spot.w / 2);
  }
  let y = 0;
  for (const row of rows) {
    const height = row.reduce((most, spot) => Math.max(most, spot.item ? spot.item.h : 0), 0);
    for (const spot of row) {
      spot.x -= left;
      spot.y = y;
      spot.height = height;
      if (spot.item) {
        spot.item.x = spot.x - spot.w / 2;
        spot.item.y = y + (height - spot.item.h) / 2;
      }
    }
    y += height + GAP_Y;
  }
  for (const line of lines) {
    const points = (line.via || []).flatMap((spot) => [[spot.x, spot.y], [spot.x, spot.y + spot.height]]);
    line.points = line.back ? points.reverse() : points;
    delete line.via;
  }
  return { w: items.length ? right - left : 0, h: Math.max(0, y - GAP_Y) };
};
