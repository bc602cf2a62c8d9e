// Compiled, never run: the types say what the package does.

import { Files, start, type Output } from "edgepack";
import { Client, EdgepackEnd } from "edgepack/client";

export const here = async (file: File): Promise<number[]> => {
  await start();
  const files = new Files();
  await files.add("model", file);
  const forward = files.load("model", { method: "forward" });
  const [first]: Output[] = forward.run([new Float32Array(4), { dtype: "i64", shape: [1], data: [3] }, true, 7n]);
  if (first.kind !== "tensor") throw new TypeError(first.kind);
  return first.shape;
};

export const away = async (file: File): Promise<number> => {
  const client = new Client({ make: () => new Worker("worker.js", { type: "module" }) });
  await client.add("model", file);
  client.onend = (end: EdgepackEnd) => console.log(end.stopped);
  const { outputs, milliseconds } = await (await client.load("model")).run();
  // @ts-expect-error an output has no such part
  outputs[0].colour;
  return milliseconds;
};
