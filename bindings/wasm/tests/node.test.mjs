// The package in Node: the same files, answers and numbers as the command has on this machine.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { brotliCompressSync } from "node:zlib";
import { before, test } from "node:test";

import { EdgepackError, Files, memoryBytes, start, version } from "../dist/npm/edgepack.js";
import { apart, data, names, path, read, tensors } from "./support.mjs";

const CLASSIFIER = "corpus/models/classifier_portable";
// Sums are taken in an order that depends on the width of vectors; a part of the largest number.
const TOLERANCE = 1e-5;
const MOST = 3_000_000;

let files;
before(async () => {
  await start();
  files = new Files();
});

const failing = (call, kind, message) => {
  assert.throws(call, (error) => {
    assert.ok(error instanceof EdgepackError, String(error.stack));
    assert.equal(error.kind, kind, error.message);
    assert.match(error.message, message);
    return true;
  });
};

test("the module is small", () => {
  const bytes = brotliCompressSync(readFileSync(path("bindings/wasm/dist/npm/wasm/edgepack_bg.wasm"))).length;
  console.log(`the module: ${bytes} bytes in brotli`);
  assert.ok(bytes < MOST, `${bytes} bytes, at most ${MOST} are allowed`);
  const { version: named } = JSON.parse(readFileSync(path("bindings/wasm/dist/npm/package.json")));
  assert.equal(version(), named);
});

test("the classifier computes what was recorded", () => {
  files.addBytes("classifier", read(`${CLASSIFIER}.pte`));
  const recorded = tensors(read(`${CLASSIFIER}.safetensors`));
  const forward = files.load("classifier");
  assert.equal(forward.name, "forward");
  let runs = 0;
  for (; recorded.has(`forward.${runs}.in.0`); runs += 1) {
    const [output] = forward.run([recorded.get(`forward.${runs}.in.0`).data]);
    const wanted = recorded.get(`forward.${runs}.out.0`);
    assert.deepEqual([output.dtype, output.shape], ["f32", wanted.shape]);
    assert.ok(apart(output.data, wanted.data) <= TOLERANCE * Math.max(...wanted.data.map(Math.abs)));
  }
  assert.ok(runs > 0);
  assert.ok(forward.memoryBytes > 0);
  forward.free();
});

const command = process.env.EDGEPACK_COMMAND;
test("the classifier computes what this machine does", { skip: !command || !existsSync(command) ? "there is no command: EDGEPACK_COMMAND" : false }, () => {
  const folder = mkdtempSync(join(tmpdir(), "edgepack-web-"));
  const [inputs, outputs] = [data(`${CLASSIFIER}.safetensors`), join(folder, "outputs.safetensors")];
  const ran = spawnSync(command, ["run", data(`${CLASSIFIER}.pte`), "-i", inputs, "-o", outputs]);
  assert.equal(ran.status, 0, String(ran.stderr));
  const native = tensors(new Uint8Array(readFileSync(outputs))).get("forward.0.out.0");
  rmSync(folder, { recursive: true });
  const forward = files.load("classifier");
  const [output] = forward.run([tensors(read(`${CLASSIFIER}.safetensors`)).get("forward.0.in.0").data]);
  assert.ok(apart(output.data, native.data) <= TOLERANCE);
  forward.free();
});

test("every model of the corpus computes what was recorded", () => {
  const models = names("corpus/models");
  const wrong = [];
  let checked = 0;
  for (const name of models.filter((name) => name.endsWith(".pte"))) {
    const stem = name.slice(0, -4);
    if (!models.includes(`${stem}.safetensors`)) continue;
    files.addBytes("./model.pte", read(`corpus/models/${name}`));
    files.addBytes("./cases", read(`corpus/models/${stem}.safetensors`));
    const parts = models.filter((part) => part.startsWith(`${stem}.`) && part.endsWith(".ptd"));
    parts.forEach((part, index) => files.addBytes(`./data${index}`, read(`corpus/models/${part}`)));
    const { status, text, errors } = files.command("check", "./model.pte", "./cases", ...parts.flatMap((_, index) => ["--data", `./data${index}`]));
    checked += 1;
    if (status !== 0) wrong.push(`${name}: ${status}\n${text}${errors}`);
  }
  console.log(`${checked} models checked`);
  assert.ok(checked > 50);
  assert.deepEqual(wrong, []);
});

test("inputs of all kinds are taken", () => {
  const forward = files.load("classifier");
  const [input] = forward.inputs;
  assert.deepEqual([input.kind, input.dtype], ["tensor", "f32"]);
  const count = input.shape.reduce((product, size) => product * size, 1);
  const first = forward.run([new Float32Array(count).fill(0.5)]);
  const second = forward.run([{ dtype: "f32", shape: input.shape, data: new Array(count).fill(0.5) }]);
  assert.deepEqual(first, second);
  // As it was set.
  assert.deepEqual(forward.run(), first);
  forward.setPicture(0, { data: new Uint8ClampedArray(40 * 30 * 4).fill(200), width: 40, height: 30 }, "imagenet");
  assert.equal(forward.run()[0].data.length, first[0].data.length);
  forward.free();
});

test("what makes no sense is refused, and everything goes on", () => {
  const forward = files.load("classifier");
  failing(() => forward.run([new Float32Array(3)]), "usage", /input 0: 12 bytes/);
  failing(() => forward.set(0, { shape: [1, 2], data: new Float32Array(3) }), "usage", /12 bytes/);
  failing(() => forward.set(7, new Float32Array(3)), "usage", /there is no input 7/);
  failing(() => forward.set(0, { dtype: "f99", data: new Float32Array(3) }), "usage", /f99/);
  failing(() => forward.setPicture(0, { data: new Uint8Array(3), width: 1, height: 1 }, "imagenet"), "usage", /3 bytes/);
  failing(() => forward.setPicture(0, { data: new Uint8Array(4), width: 1, height: 1 }, "nothing"), "usage", /preset/);
  failing(() => files.load("absent"), "usage", /no file of this name/);
  failing(() => files.load("classifier", { method: "backward" }), "usage", /backward/);
  failing(() => files.inspect("absent"), "file", /no file of this name in memory/);
  files.addBytes("noise", new Uint8Array(100).fill(7));
  failing(() => files.inspect("noise"), "file", /not a file that edgepack reads/);
  failing(() => files.load("noise"), "usage", /methods are loaded from programs/);
  files.addBytes("short", read(`${CLASSIFIER}.pte`).subarray(0, 3000));
  failing(() => files.load("short"), "file", /PTE-/);
  failing(() => files.document("dance"), "usage", /dance/);
  forward.free();
});

test("a Blob is read piece by piece, and is the same file", async () => {
  const content = read(`${CLASSIFIER}.pte`);
  await files.add("blob", new Blob([content]));
  assert.deepEqual(files.get("blob"), content);
  assert.equal(files.verify("blob").findings.length, 0);
  assert.ok(files.remove("blob"));
  assert.ok(!files.remove("blob"));
});

test("settings are changed, and come back as they were set", () => {
  const settings = { "metadata.name": "a \"name\"\n</script>", "metadata.count": 7, "metadata.scale": 0.5, "metadata.ids": [1, 2], "metadata.number": "7" };
  files.setMetadata("classifier", settings, "changed");
  const named = (file) => Object.fromEntries(files.inspect(file).named_data.filter(({ key }) => key.startsWith("metadata.")).map(({ key, value }) => [key, value]));
  assert.deepEqual(named("changed"), settings);
  files.setMetadata("changed", { "metadata.ids": null }, "again");
  assert.ok(!("metadata.ids" in named("again")));
  assert.equal(files.verify("again").findings.length, 0);
  // A file that is there is not written over by a command.
  const { status, errors } = files.command("patch", "classifier", "--set", "metadata.x=1", "-o", "classifier");
  assert.equal(status, 2);
  assert.match(errors, /there is a file of this name/);
});

test("graphs and sizes of every kind of file", () => {
  for (const [name, kind] of [[`${CLASSIFIER}.pte`, "program"], ["corpus/edgetpu/left.tflite", "tflite"], ["corpus/edgetpu/alone.dwn", "darwinn"]]) {
    files.addBytes("kind", read(name));
    assert.ok(files.inspect("kind").kind.startsWith(kind), files.inspect("kind").kind);
    assert.ok(files.graphs("kind").graphs[0].nodes.length > 0, name);
    assert.ok(files.size("kind").parts.length > 0, name);
  }
});

test("every hostile file is told by its rule", () => {
  let told = 0;
  for (const family of names("hostile")) {
    if (!names(`hostile/${family}`).includes("manifest.json")) continue;
    for (const { file, rule, severity } of JSON.parse(readFileSync(data(`hostile/${family}/manifest.json`)))) {
      if (!existsSync(data(`hostile/${family}/${file}`))) continue;
      files.addBytes("hostile", read(`hostile/${family}/${file}`));
      const { status, text, errors } = files.command("verify", "hostile", "--json");
      // Some are bad only under lower limits, or next to what a runtime has.
      if (text.includes(`"${rule}"`)) {
        told += 1;
        if (severity === "error") assert.notEqual(status, 0, `${family}/${file}`);
      }
      for (const asked of ["inspect", "size", "ops", "view", "run"]) files.command(asked, "hostile", "--json");
      assert.ok(text || errors);
    }
  }
  console.log(`${told} hostile files told by their rule; ${(memoryBytes() / 2 ** 20).toFixed(0)} MiB of memory`);
  assert.ok(told > 200);
  assert.ok(memoryBytes() < 2 ** 30);
});
