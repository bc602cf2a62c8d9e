// Runs a program in WebAssembly and compares: with the outputs that ExecuTorch recorded and, if a command of this machine
// is given, with what that computes from the same bytes. RUNNER is what runs the command on a machine whose vectors are
// those of WebAssembly, four floats without fused multiply-adds: then every bit must be the same.
//
//     node run.mjs MODULE.wasm MODEL.pte CASES.safetensors [COMMAND [RUNNER ARGUMENT...]]

import { readFileSync } from "node:fs";
import { spawnSync } from "node:child_process";

// Outputs are probabilities. Sums of floats are taken in an order that depends on the width of the machine's vectors, and
// machines with fused multiply-adds round less often.
const TOLERANCE = 1e-6;

const [modulePath, modelPath, casesPath, command, ...runner] = process.argv.slice(2);
if (!casesPath) {
  console.error("node run.mjs MODULE.wasm MODEL.pte CASES.safetensors [COMMAND [RUNNER ARGUMENT...]]");
  process.exit(2);
}

const module = new WebAssembly.Module(readFileSync(modulePath));
const imports = WebAssembly.Module.imports(module);
if (imports.length > 0) throw new Error(`the module wants ${imports.length} imports`);
const { memory, room, load, run, files, answer } = new WebAssembly.Instance(module).exports;

function call(entry, bytes) {
  const at = room(bytes.length);
  // Memory that grew is another buffer: it is looked up after every call.
  new Uint8Array(memory.buffer, at, bytes.length).set(bytes);
  const length = entry();
  const result = new Uint8Array(memory.buffer, answer(), Math.abs(length)).slice();
  if (length < 0) throw new Error(new TextDecoder().decode(result));
  return result;
}

function refusal(entry, bytes) {
  try {
    call(entry, bytes);
  } catch (error) {
    // A trap is a bug, a message is an answer.
    if (error instanceof WebAssembly.RuntimeError) throw error;
    return error.message;
  }
  throw new Error("accepted");
}

function tensors(file) {
  const length = Number(file.readBigUInt64LE(0));
  const header = JSON.parse(file.toString("utf8", 8, 8 + length));
  return (name) => {
    const [from, to] = header[name]?.data_offsets ?? [];
    return from === undefined ? undefined : new Uint8Array(file.subarray(8 + length + from, 8 + length + to));
  };
}

const floats = (bytes) => new Float32Array(Uint8Array.from(bytes).buffer);
const apart = (a, b) => floats(a).reduce((most, value, i) => Math.max(most, Math.abs(value - floats(b)[i])), 0);

const model = readFileSync(modelPath);
console.log(`files: ${new TextDecoder().decode(call(files, new Uint8Array(0)))}`);
console.log(`a program cut short: ${refusal(load, model.subarray(0, model.length / 2)).split("\n")[1]?.trim()}`);
call(load, model);
console.log(`an input cut short: ${refusal(run, new Uint8Array(4))}`);

const tensor = tensors(readFileSync(casesPath));
const [inputs, outputs, recorded] = [[], [], []];
for (let i = 0; tensor(`forward.${i}.in.0`); i++) {
  inputs.push(tensor(`forward.${i}.in.0`));
  recorded.push(tensor(`forward.${i}.out.0`));
  outputs.push(call(run, inputs[i]));
}
if (outputs.length === 0) throw new Error("no cases");

function compare(name, others, tolerance) {
  const bits = outputs.every((output, i) => Buffer.compare(output, others[i]) === 0);
  const most = Math.max(...outputs.map((output, i) => apart(output, others[i])));
  const lengths = outputs.every((output, i) => output.length === others[i].length);
  console.log(`${outputs.length} cases compared with ${name}: ${bits ? "equal bit for bit" : `at most ${most} apart`}`);
  if (!lengths || !(bits || most <= tolerance)) {
    console.error(`more than ${tolerance}`);
    process.exit(1);
  }
}

function computed(file, ...args) {
  const native = spawnSync(file, [...args, modelPath], { input: Buffer.concat(inputs) });
  if (native.status !== 0) throw new Error(`${file}: ${native.error ?? native.stderr}`);
  let at = 0;
  return outputs.map((output) => native.stdout.subarray(at, (at += output.length)));
}

compare("ExecuTorch", recorded, TOLERANCE);
if (command) compare("this machine", computed(command), TOLERANCE);
if (runner.length > 0) compare(`this machine as ${runner.at(-1)}`, computed(...runner, command), 0);

const started = performance.now();
for (let i = 0; i < 100; i++) call(run, inputs[0]);
console.log(`${((performance.now() - started) / 100).toFixed(2)} ms a run`);
