// Settings of a program: shown, changed, and downloaded with the program.

import { at, bytes, download, element, field } from "./parts.js";

const PREFIX = "metadata.";
let before = new Map();

const shownValue = (value) => (Array.isArray(value) ? `[${value.join(", ")}]` : String(value));

const addRow = (key, value) => {
  const name = field("input", { value: key, placeholder: "metadata.name", spellcheck: false, ariaLabel: "name" });
  const content = field("input", { value, placeholder: "value", spellcheck: false, ariaLabel: "value" });
  const gone = field("button", { type: "button", textContent: "Remove" });
  const row = element("div", undefined, name, content, gone);
  row.className = "setting";
  gone.addEventListener("click", () => row.remove());
  at("rows").append(row);
};

/** Shows the settings in the named data of a program. Bytes and numbers that have no text are left alone. */
export const showSettings = (named) => {
  before = new Map();
  at("rows").replaceChildren();
  at("changed").textContent = "";
  for (const { key, value } of named) {
    if (!key.startsWith(PREFIX) || value === undefined || value === null || value.base64 !== undefined) continue;
    before.set(key, { value, text: shownValue(value) });
    addRow(key, shownValue(value));
  }
};

// What was typed: numbers and lists of integers as such, all else as text. An unchanged text stays one.
const read = (text) => {
  if (/^[+-]?\d+$/.test(text)) return { raw: text };
  if (/^\[\s*(-?\d+\s*(,\s*-?\d+\s*)*)?\]$/.test(text)) return { raw: text };
  if (text !== "" && Number.isFinite(Number(text))) return { raw: /[.e]/i.test(text) ? text : `${text}.0` };
  return { text };
};

/** The arguments of `patch` for what differs. */
const changes = () => {
  const now = new Map();
  for (const row of at("rows").children) {
    const [name, content] = row.querySelectorAll("input");
    const key = name.value.trim();
    if (!key && !content.value) continue;
    if (now.has(key)) throw new Error(`${key} is there twice`);
    now.set(key, content.value);
  }
  const args = [];
  for (const key of before.keys()) if (!now.has(key)) args.push("--remove", key);
  for (const [key, text] of now) {
    const old = before.get(key);
    if (old && old.text === text) continue;
    const { raw, text: words } = old && typeof old.value === "string" ? { text } : read(text);
    args.push("--set", `${key}=${raw ?? JSON.stringify(words)}`);
  }
  return args;
};

/** Makes the form work: `changed` is the name of the file that the page is about. */
export const startSettings = (client, about, task) => {
  at("more").addEventListener("click", () => addRow(PREFIX, ""));
  at("settings").addEventListener("submit", (event) => {
    event.preventDefault();
    task("changing settings", async () => {
      const args = changes();
      if (!args.length) {
        at("changed").textContent = "Nothing is different.";
        return;
      }
      const output = "./changed";
      const { path, name } = about();
      const document = await client.document("patch", path, ...args, "-o", output, "--force");
      const content = await client.get(output);
      await client.remove(output);
      download(content, name);
      const parts = [...(document.set ?? []), ...(document.removed ?? []).map((key) => `${key} (removed)`)];
      at("changed").textContent = `Downloaded ${name}, ${bytes(content.length)}: ${parts.join(", ")}.`;
    });
  });
};
