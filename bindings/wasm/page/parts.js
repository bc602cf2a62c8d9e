// Parts of the page. What files say is text: it becomes text of nodes, never markup.

export const at = (id) => document.getElementById(id);

export const element = (name, text, ...inside) => {
  const made = document.createElement(name);
  if (text !== undefined && text !== null) made.textContent = text;
  made.append(...inside);
  return made;
};

export const field = (type, attributes = {}) => {
  const made = document.createElement(type);
  Object.assign(made, attributes);
  return made;
};

export const labelled = (text, control) => element("label", text + " ", control);

const UNITS = ["B", "KiB", "MiB", "GiB"];
export const bytes = (count) => {
  let unit = 0;
  while (count >= 1023.95 && unit + 1 < UNITS.length) { count /= 1024; unit += 1; }
  return unit ? `${count.toFixed(1)} ${UNITS[unit]}` : `${count} B`;
};

export const milliseconds = (time) => (time < 1 ? `${(time * 1000).toFixed(0)} µs` : time < 1000 ? `${time.toFixed(2)} ms` : `${(time / 1000).toFixed(2)} s`);

export const plural = (count, noun) => `${count} ${noun}${count === 1 ? "" : "s"}`;

export const download = (content, name) => {
  const link = field("a", { href: URL.createObjectURL(new Blob([content])), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
};
