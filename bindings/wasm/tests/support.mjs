// What the tests share: files of the repository, recorded tensors, and how far numbers are apart.

import { readFileSync, readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";

const root = new URL("../../../", import.meta.url);
export const path = (name) => fileURLToPath(new URL(name, root));
export const data = (name) => path(`tests/data/${name}`);
export const read = (name) => new Uint8Array(readFileSync(data(name)));
export const names = (folder) => readdirSync(data(folder)).sort();

const ARRAYS = { F32: Float32Array, I64: BigInt64Array, I32: Int32Array, U8: Uint8Array, BOOL: Uint8Array };

/** The tensors of a safetensors file, by name. */
export const tensors = (bytes) => {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const length = Number(view.getBigUint64(0, true));
  const header = JSON.parse(new TextDecoder().decode(bytes.subarray(8, 8 + length)));
  const found = new Map();
  delete header.__metadata__;
  for (const [name, { dtype, shape, data_offsets: [from, to] }] of Object.entries(header)) {
    const array = ARRAYS[dtype];
    if (array) found.set(name, { shape, data: new array(bytes.slice(8 + length + from, 8 + length + to).buffer) });
  }
  return found;
};

/** The greatest difference of two arrays of numbers. */
export const apart = (one, other) => {
  if (one.length !== other.length) return Infinity;
  return one.reduce((most, value, index) => Math.max(most, Math.abs(Number(value) - Number(other[index]))), 0);
};
