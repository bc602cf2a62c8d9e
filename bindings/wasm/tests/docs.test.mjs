// Examples of the documentation run as they are written.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";

import { data, path } from "./support.mjs";

const folder = mkdtempSync(join(tmpdir(), "edgepack-docs-"));
mkdirSync(join(folder, "node_modules"));
symlinkSync(path("bindings/wasm/dist/npm"), join(folder, "node_modules/edgepack"));
copyFileSync(data("corpus/models/mlp_portable.pte"), join(folder, "model.pte"));
after(() => rmSync(folder, { recursive: true }));

const examples = (file) => [...readFileSync(path(file), "utf8").matchAll(/```js\n([\s\S]*?)```/g)].map(([, code]) => code);

for (const [file, cwd, count] of [["README.md", path("."), 1], ["docs/web.md", folder, 1]]) {
  test(`the examples of ${file}`, () => {
    const here = examples(file).filter((code) => code.includes('from "edgepack"'));
    assert.equal(here.length, count);
    for (const [index, code] of here.entries()) {
      const script = join(folder, `example${index}.mjs`);
      writeFileSync(script, code);
      const ran = spawnSync(process.execPath, [script], { cwd });
      assert.equal(ran.status, 0, String(ran.stderr));
      if (code.includes("console.log")) assert.match(String(ran.stdout), /dtype: 'f32',\s+shape: \[ 3, 4 \]/);
    }
  });
}
