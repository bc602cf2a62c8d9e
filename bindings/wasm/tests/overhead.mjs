// Times a call of a tiny model in WebAssembly: `node overhead.mjs [MODEL]`.

import { readFileSync } from "node:fs";

import { Files, start } from "../dist/npm/edgepack.js";
import { data } from "./support.mjs";

await start();
const files = new Files();
files.addBytes("model", new Uint8Array(readFileSync(process.argv[2] ?? data("corpus/models/mlp_portable.pte"))));
const method = files.load("model");
const inputs = method.inputs.map(({ shape }) => new Float32Array(shape.reduce((product, size) => product * size, 1)).fill(0.5));

const best = (call) => {
  for (let i = 0; i < 20_000; i += 1) call();
  let least = Infinity;
  for (let round = 0; round < 50; round += 1) {
    const began = performance.now();
    for (let i = 0; i < 2_000; i += 1) call();
    least = Math.min(least, (performance.now() - began) / 2_000);
  }
  return (least * 1000).toFixed(2);
};
const whole = best(() => method.run(inputs));
const alone = best(() => method.runOnly());
console.log(`a run: ${alone} µs; with inputs set and outputs copied: ${whole} µs`);
