// Elements of tensors as typed arrays. Types without an array of their own are arrays of their bits.

const ARRAYS = {
  f32: Float32Array,
  f64: Float64Array,
  i8: Int8Array,
  u8: Uint8Array,
  bool: Uint8Array,
  i16: Int16Array,
  u16: Uint16Array,
  i32: Int32Array,
  u32: Uint32Array,
  i64: BigInt64Array,
  u64: BigUint64Array,
  f16: Uint16Array,
  bf16: Uint16Array,
};

const NAMES = new Map([
  [Float32Array, "f32"],
  [Float64Array, "f64"],
  [Int8Array, "i8"],
  [Uint8Array, "u8"],
  [Uint8ClampedArray, "u8"],
  [Int16Array, "i16"],
  [Uint16Array, "u16"],
  [Int32Array, "i32"],
  [Uint32Array, "u32"],
  [BigInt64Array, "i64"],
  [BigUint64Array, "u64"],
]);

/** The elements of a tensor as an array of their type; of a type without one, its bytes. */
export const typed = (dtype, bytes) => {
  const type = ARRAYS[dtype] ?? Uint8Array;
  // A copy of outputs begins where every element is aligned.
  return new type(bytes.buffer, bytes.byteOffset, bytes.byteLength / type.BYTES_PER_ELEMENT);
};

/** The element type that an array has by itself. */
export const named = (array) => NAMES.get(array.constructor);

/** The bytes of an array, not copied. */
export const bytesOf = (array) => new Uint8Array(array.buffer, array.byteOffset, array.byteLength);

/** An array of this element type with these numbers. */
export const fromNumbers = (dtype, numbers) => {
  const type = ARRAYS[dtype];
  if (!type || dtype === "f16" || dtype === "bf16") throw new TypeError(`numbers do not become ${dtype}`);
  const wide = type === BigInt64Array || type === BigUint64Array;
  return type.from(numbers, (number) => (wide ? BigInt(number) : Number(number)));
};

/** The numbers of an array of a tensor: halves become numbers. */
export const toNumbers = (dtype, array) => {
  if (dtype === "bf16") {
    const words = new Uint32Array(array.length);
    array.forEach((half, index) => { words[index] = half << 16; });
    return new Float32Array(words.buffer);
  }
  return dtype === "f16" ? Float32Array.from(array, half) : array;
};

const half = (bits) => {
  const [sign, exponent, fraction] = [bits & 0x8000 ? -1 : 1, (bits >> 10) & 31, bits & 1023];
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  return exponent ? sign * 2 ** (exponent - 15) * (1 + fraction / 1024) : sign * 2 ** -24 * fraction;
};
