// The worker of `client.js`: answers one question after another. What ends the module is told, and nothing is answered
// after it.

import { EdgepackCrash, EdgepackError, Files, memoryBytes, panicForTest, start, version } from "./edgepack.js";

let files = null;
const methods = new Map();
let last = 0;

const calls = {
  async start(source) {
    await start(source);
    files ??= new Files();
    return { version: version() };
  },
  add: (name, content) => files.add(name, content),
  remove: (name) => files.remove(name),
  get: (name) => files.get(name),
  command: (...args) => files.command(...args),
  document: (...args) => files.document(...args),
  setMetadata: (...args) => files.setMetadata(...args),
  memory: () => memoryBytes(),
  load(name, options) {
    const began = performance.now();
    const method = files.load(name, options);
    const milliseconds = performance.now() - began;
    last += 1;
    methods.set(last, method);
    const { inputs, outputs, memoryBytes } = method;
    return { handle: last, name: method.name, inputs, outputs, memoryBytes, milliseconds };
  },
  set: (handle, index, value) => found(handle).set(index, value),
  setPicture: (handle, ...args) => found(handle).setPicture(...args),
  run(handle, inputs) {
    const method = found(handle);
    const began = performance.now();
    const outputs = method.run(inputs);
    return { outputs, milliseconds: performance.now() - began };
  },
  time(handle, milliseconds) {
    const method = found(handle);
    const times = [];
    const began = performance.now();
    do {
      const start = performance.now();
      method.runOnly();
      times.push(performance.now() - start);
    } while (performance.now() - began < milliseconds);
    return { milliseconds: performance.now() - began, times };
  },
  panicForTest,
  free(handle) {
    found(handle).free();
    methods.delete(handle);
  },
};

const found = (handle) => {
  const method = methods.get(handle);
  if (!method) throw new EdgepackError("the method was freed", "usage");
  return method;
};

// Arrays of outputs change hands, nothing of them is copied.
const buffers = (value) => {
  if (value instanceof Uint8Array) return [value.buffer];
  const outputs = value?.outputs;
  return Array.isArray(outputs) ? outputs.filter((output) => output.data).map((output) => output.data.buffer) : [];
};

let queue = Promise.resolve();
addEventListener("message", ({ data: { id, call, args } }) => {
  queue = queue.then(async () => {
    try {
      const value = await calls[call](...args);
      postMessage({ id, value }, { transfer: buffers(value) });
    } catch (error) {
      if (error instanceof EdgepackError) postMessage({ id, failure: { message: error.message, kind: error.kind, document: error.document } });
      else if (error instanceof EdgepackCrash || error instanceof WebAssembly.RuntimeError) postMessage({ id, crash: error.message });
      else postMessage({ id, failure: { message: String(error?.message ?? error), kind: "usage" } });
    }
  });
});
