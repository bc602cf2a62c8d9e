// Puts the page together in `dist/page`: its own files, the package, and the command's graph viewer.

import { createHash } from "node:crypto";
import { cpSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const read = (path) => readFileSync(here(path), "utf8");
const viewer = (...files) => files.map((file) => read(`../../cli/src/${file}`)).join("\n");

cpSync(here("page"), here("dist/page"), { recursive: true });
cpSync(here("dist/npm"), here("dist/page/package"), { recursive: true });
writeFileSync(here("dist/page/view.js"), viewer("page.js", "view/layout.js", "view/page.js", "view/panel.js"));
writeFileSync(here("dist/page/view.css"), viewer("page.css", "view/page.css"));
writeFileSync(here("dist/page/graph.html"), read("page/graph.html").replace("<!-- body -->", () => viewer("view/page.html")));

// What the page needs is stored for when there is no server, under a name that its content gives.
const needed = /\.(html|css|js|svg|wasm)$/;
const files = readdirSync(here("dist/page"), { recursive: true })
  .filter((file) => needed.test(file) && !file.endsWith(".d.ts") && file !== "offline.js")
  .sort();
const digest = createHash("sha256");
for (const file of files) digest.update(file).update(readFileSync(here(`dist/page/${file}`)));
const script = read("page/offline.js")
  .replace("VERSION", digest.digest("hex").slice(0, 16))
  .replace("/* files */", () => ["./", ...files].map((file) => JSON.stringify(file)).join(", "));
writeFileSync(here("dist/page/offline.js"), script);
