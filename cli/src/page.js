"use strict";
// Parts of all pages. Names of files are text: they become nodes of text or attributes, never markup.
const data = JSON.parse(document.getElementById("data").textContent);
const at = (id) => document.getElementById(id);
const element = (name, text, ...inside) => {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  made.append(...inside);
  return made;
};
const drawn = (name, attributes, text) => {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const key in attributes) made.setAttribute(key, attributes[key]);
  if (text !== undefined) made.textContent = text;
  return made;
};

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
const plural = (count, noun) => count + " " + noun + (count === 1 ? "" : "s");

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
const axis = (svg, from, to, y, show) => {
  for (let mark = 0; mark <= 5; mark += 1) {
    const x = WIDE * mark / 5;
    const anchor = mark === 0 ? "start" : mark === 5 ? "end" : "middle";
    svg.append(drawn("text", { x, y, class: "axis", "text-anchor": anchor }, show(from + (to - from) * mark / 5)));
  }
};

// A table that a click on a head sorts. Columns are a title, the value to sort by, the text, whether the first click sorts
// downwards, and a function that changes the cell.
const sortable = (columns, select, downwards) => {
  let sorted = 0;
  const table = () => {
    const { rows, all } = select();
    const value = columns[sorted][1];
    rows.sort((a, b) => {
      const [x, y] = [value(a), value(b)];
      const order = typeof x === "string" ? x.localeCompare(y, "en", { numeric: true }) : x === y ? 0 : x < y ? -1 : 1;
      return downwards ? -order : order;
    });
    at("heads").replaceChildren(...columns.map(([title, , , down], index) => {
      const head = element("th", title);
      if (index === sorted) head.setAttribute("aria-sort", downwards ? "descending" : "ascending");
      head.addEventListener("click", () => {
        downwards = index === sorted ? !downwards : down;
        sorted = index;
        table();
      });
      return head;
    }));
    at("rows").replaceChildren(...rows.map((row) => element("tr", undefined, ...columns.map(([, , show, , change]) => {
      const cell = element("td", show(row));
      if (change) change(cell, row);
      return cell;
    }))));
    at("shown").textContent = rows.length + " of " + all;
  };
  return table;
};

// Charts of memory: bytes that hold values over places, and where the values of each part are.
const memoryCharts = (used, place_name, choose) => {
  const count = used.alive_bytes.length;
  const place = (position) => position / count * WIDE;
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
  explain(cover, () => place_name(pointed) + "\n" + bytes(used.alive_bytes[pointed]) + " hold values");
  if (choose) cover.addEventListener("click", () => choose(pointed));
  axis(line, 0, count, 126, (position) => String(Math.round(position)));
  const within = used.parts.map(() => []);
  for (const value of used.values) within[value.part].push(value);
  const charts = used.parts.map((part, index) => {
    const height = Math.min(420, Math.max(60, within[index].length * 6));
    const svg = drawn("svg", { viewBox: "0 0 " + WIDE + " " + (height + 22), role: "img" });
    svg.append(drawn("text", { x: 2, y: 14, class: "axis" }, "memory " + part.name + ", " + bytes(part.bytes) + ", lowest address at the bottom"));
    for (const value of part.bytes ? within[index] : []) {
      const tall = value.bytes / part.bytes * height;
      const y = 20 + height - (value.offset + value.bytes) / part.bytes * height;
      const about = () => value.name + ", " + bytes(value.bytes) + " at " + value.offset + "\nfrom " + place_name(value.first) + "\nto " + place_name(value.last);
      const made = box(svg, place(value.first), y, place(value.last + 1) - place(value.first), tall, tall > 11 ? value.name : "", about, hue(value.name + value.name));
      if (choose) made.addEventListener("click", () => choose(value.first));
    }
    svg.append(drawn("line", { class: "peak", x1: peak, x2: peak, y1: 20, y2: height + 20 }));
    return svg;
  });
  return [line, ...charts];
};
