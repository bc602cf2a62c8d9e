// Inputs of a method as parts of the page: numbers that are typed, pictures, random numbers, zeros.

import { element, field, labelled } from "./parts.js";
import { fromNumbers } from "./package/elements.js";

const PRESETS = ["imagenet", "signed", "unit", "bytes"];

const count = (shape) => shape.reduce((product, size) => product * size, 1);
const isPicture = ({ kind, shape }) => {
  if (kind !== "tensor" || shape.length < 3 || shape.length > 4 || (shape.length === 4 && shape[0] !== 1)) return false;
  const [first, , last] = shape.slice(-3);
  return [1, 3].includes(first) || [1, 3].includes(last);
};
// Three dimensions of which one is 1 may as well be a batch of rows.
const isLikelyPicture = (input) => isPicture(input) && (input.shape.length === 4 || input.shape.includes(3));

// An equal seed gives equal numbers.
const random = (seed) => () => {
  seed = (seed + 0x6d2b79f5) | 0;
  let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
  t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
  return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
};

const filled = ({ dtype, shape }, next) => {
  const [float, small] = [/^b?f/.test(dtype), ["u8", "i8", "bool"].includes(dtype)];
  const one = () => (!next ? 0 : float ? next() * 2 - 1 : dtype === "bool" ? Math.round(next()) : dtype === "i8" ? Math.floor(next() * 256) - 128 : small ? Math.floor(next() * 256) : Math.round(next()));
  const numbers = Array.from({ length: count(shape) }, one);
  if (dtype === "f16" || dtype === "bf16") return { dtype, shape, data: Uint16Array.from(numbers, (number) => bits(dtype, number)) };
  return { dtype, shape, data: fromNumbers(dtype, numbers) };
};

// The nearest half to a number of this page; numbers that are typed have few digits.
const bits = (dtype, number) => {
  const word = new Uint32Array(new Float32Array([number]).buffer)[0];
  if (dtype === "bf16") return Math.min(0xffff, (word + 0x7fff + ((word >> 16) & 1)) >>> 16);
  const sign = (word >>> 16) & 0x8000;
  const size = Math.abs(number);
  if (Number.isNaN(number)) return 0x7e00;
  if (size >= 65520) return sign | 0x7c00;
  if (size < 2 ** -14) return sign | Math.round(size * 2 ** 24);
  const exponent = Math.floor(Math.log2(size));
  return sign | (((exponent + 15) << 10) + Math.round((size / 2 ** exponent - 1) * 1024));
};

// The sizes in front, `2x3:`, are those of a dynamic input; without them they are those of the method.
const typedNumbers = (input, text) => {
  const [, sizes, rest] = /^\s*(?:([\dx\s]+):)?([\s\S]*)$/.exec(text);
  const shape = sizes ? sizes.split("x").map(Number) : input.shape;
  const words = rest.split(/[\s,;[\]]+/).filter(Boolean);
  const wrong = words.find((word) => !/^(true|false|nan|[+-]?inf)$/i.test(word) && !Number.isFinite(Number(word)));
  if (wrong !== undefined) throw new Error(`${wrong} is not a number`);
  const number = (word) => (/^true$/i.test(word) ? 1 : /^false$/i.test(word) ? 0 : /^[+-]?inf$/i.test(word) ? (word[0] === "-" ? -Infinity : Infinity) : Number(word));
  const want = count(shape);
  if (words.length !== want && words.length !== 1) throw new Error(`${words.length} numbers, ${input.dtype}[${shape.join(", ")}] has ${want}`);
  const wide = input.dtype === "i64" || input.dtype === "u64";
  const numbers = words.map((word) => (wide && /^[+-]?\d+$/.test(word) ? BigInt(word) : number(word)));
  const all = words.length === want ? numbers : new Array(want).fill(numbers[0]);
  if (input.dtype === "f16" || input.dtype === "bf16") return { dtype: input.dtype, shape, data: Uint16Array.from(all, (one) => bits(input.dtype, one)) };
  return { dtype: input.dtype, shape, data: fromNumbers(input.dtype, all) };
};

/** Makes the parts of one input; `give` sets it, before a run. */
export const inputPart = (input, index) => {
  const title = input.kind === "tensor" ? `${input.dtype}[${input.shape.join(", ")}]${input.dynamic ? ", or smaller" : ""}` : input.kind;
  const part = element("fieldset", undefined, element("legend", `input ${index}${input.name ? ` ${input.name}` : ""}: ${title}`));
  if (input.kind !== "tensor") return plainPart(part, input, index);
  const how = field("select");
  for (const [value, text] of [["random", "random numbers"], ["zeros", "zeros"], ["numbers", "numbers"], ...(isPicture(input) ? [["picture", "a picture"]] : [])]) how.append(field("option", { value, textContent: text }));
  if (isLikelyPicture(input)) how.value = "picture";
  const seed = labelled("seed", field("input", { type: "number", value: "1", min: "0" }));
  const text = field("textarea", { rows: 3, spellcheck: false, placeholder: input.dynamic ? "numbers, or sizes and numbers: 2x3: 1 2 3 4 5 6" : "numbers in index order, or one for all", ariaLabel: `numbers of input ${index}` });
  const file = labelled("picture", field("input", { type: "file", accept: "image/*" }));
  const preset = field("select");
  for (const name of PRESETS) preset.append(field("option", { value: name, textContent: name }));
  const finer = field("input", { placeholder: "resize=256,mean=0.5,std=0.5", spellcheck: false });
  const canvas = field("canvas", { hidden: true });
  const picture = element("div", undefined, file, labelled("preset", preset), labelled("settings", finer), canvas);
  part.append(labelled("from", how), seed, text, picture);
  const choose = () => {
    seed.hidden = how.value !== "random";
    text.hidden = how.value !== "numbers";
    picture.hidden = how.value !== "picture";
  };
  how.addEventListener("change", choose);
  choose();
  let pixels = null;
  file.querySelector("input").addEventListener("change", async (event) => {
    pixels = null;
    const [chosen] = event.target.files;
    if (!chosen) return;
    try {
      const image = await createImageBitmap(chosen);
      [canvas.width, canvas.height, canvas.hidden] = [image.width, image.height, false];
      const context = canvas.getContext("2d", { willReadFrequently: true });
      context.drawImage(image, 0, 0);
      image.close();
      pixels = context.getImageData(0, 0, canvas.width, canvas.height);
    } catch {
      canvas.hidden = true;
    }
    part.dispatchEvent(new Event("ready"));
  });
  const give = async (method) => {
    const about = (error) => new Error(`input ${index}: ${error.message}`);
    if (how.value === "picture") {
      if (!pixels) throw new Error(`input ${index}: choose a picture that this browser can show`);
      return method.setPicture(index, pixels, [preset.value, finer.value.trim()].filter(Boolean).join(","));
    }
    let tensor;
    try {
      tensor = how.value === "numbers" ? typedNumbers(input, text.value) : filled(input, how.value === "random" ? random(Number(seed.querySelector("input").value)) : null);
    } catch (error) {
      throw about(error);
    }
    return method.set(index, tensor);
  };
  return { part, give };
};

const plainPart = (part, input, index) => {
  const control = field("input", { value: input.traced ?? "", disabled: !["int", "bool", "double"].includes(input.kind), ariaLabel: `value of input ${index}` });
  part.append(control);
  const give = async (method) => {
    if (control.disabled || control.value === input.traced) return undefined;
    const value = input.kind === "bool" ? control.value === "true" : input.kind === "int" ? BigInt(control.value) : Number(control.value);
    return method.set(index, value);
  };
  return { part, give };
};
