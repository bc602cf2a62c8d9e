// What a file is, what is wrong with it, what it needs, where its bytes go.

import { at, bytes, element, field, plural } from "./parts.js";

/** Rows of a table that the page shows at most. */
const ROWS = 500;

export const clearShown = () => {
  for (const id of ["facts", "listing", "verdict", "operators", "measured"]) at(id).replaceChildren();
  for (const id of ["found", "parts", "tensors"]) at(id).tBodies[0].replaceChildren();
  at("found").hidden = true;
};

export const showSummary = (file, data, inspected, listing) => {
  const facts = [["file", file.name], ["size", `${bytes(file.size)} (${file.size} bytes)`]];
  if (inspected) {
    facts.push(["kind", inspected.kind.replaceAll("_", " ")]);
    for (const method of inspected.methods ?? []) {
      const list = (values) => values.map((value) => value.type ?? value.kind).join(", ") || "nothing";
      facts.push([`method ${method.name}`, `${list(method.inputs)} → ${list(method.outputs)}; ${plural(method.instructions, "instruction")}`]);
    }
    if (inspected.cut_short) facts.push(["cut short", `${inspected.cut_short.have} of ${inspected.cut_short.want} bytes are there`]);
  }
  if (data.length) facts.push(["data files", data.map((file) => file.name).join(", ")]);
  at("facts").replaceChildren(...facts.flatMap(([name, text]) => [element("dt", name), element("dd", text)]));
  at("listing").textContent = listing;
};

export const showFindings = ({ findings, more, error }) => {
  const total = findings.length + more;
  const errors = findings.filter(({ severity }) => severity === "error").length;
  at("verdict").textContent = error ?? (total ? `${plural(total, "finding")}, ${plural(errors, "error")} among them.` : "Nothing: the file is as its format says.");
  at("found").hidden = !findings.length;
  at("found").tBodies[0].replaceChildren(...findings.slice(0, ROWS).map(({ severity, rule, path, offset, message }) => {
    const level = element("td", severity);
    level.className = severity;
    const id = element("td", rule);
    id.className = "fixed";
    const place = [path, offset === null || offset === undefined ? "" : `at 0x${offset.toString(16)}`].filter(Boolean).join(" ");
    return element("tr", undefined, level, id, element("td", place), element("td", message));
  }));
  return { total, errors };
};

const row = (count, whole, ...texts) => {
  const number = element("td", bytes(count));
  number.className = "number";
  const share = element("td", undefined, field("meter", { min: 0, max: Math.max(1, whole), value: count }));
  share.className = "share";
  return element("tr", undefined, number, share, ...texts.map((text) => element("td", text)));
};

export const showSizes = (size) => {
  const whole = size.bytes;
  at("measured").textContent = `${bytes(whole)} in all.`;
  at("parts").tBodies[0].replaceChildren(...size.parts.slice(0, ROWS).map((part) => row(part.bytes, whole, part.what)));
  const tensors = [...(size.tensors ?? [])].sort((a, b) => b.bytes - a.bytes);
  const rows = tensors.slice(0, ROWS).map((tensor) => row(tensor.bytes, whole, tensor.type, tensor.name));
  if (tensors.length > ROWS) rows.push(element("tr", undefined, element("td"), element("td"), element("td"), element("td", `and ${tensors.length - ROWS} more`)));
  if (!tensors.length) rows.push(element("tr", undefined, element("td", "none")));
  at("tensors").tBodies[0].replaceChildren(...rows);
};
