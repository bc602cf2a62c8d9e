// edgepack in the thread that calls it. `client.js` does the same in a worker, which survives what ends this module.

import init, { LoadedMethod, Room, Workspace, panicForTest as wasmPanic, version as wasmVersion } from "./wasm/edgepack.js";
import { bytesOf, fromNumbers, named, toNumbers, typed } from "./elements.js";

export { fromNumbers, toNumbers };

/** A failure that leaves everything as it was: `kind` is `usage`, `file` or `run`. */
export class EdgepackError extends Error {
  constructor(message, kind, document) {
    super(message);
    this.name = "EdgepackError";
    this.kind = kind;
    this.document = document;
  }
}

/** The end of the module: a panic, or no memory was left. Nothing works after it until the worker, or page, is new. */
export class EdgepackCrash extends Error {
  constructor(message) {
    super(message);
    this.name = "EdgepackCrash";
  }
}

/** Bytes of a file that are read at a time. */
const PIECE = 4 << 20;

let ready = null;
let memory = null;
let crashed = null;

/**
 * Makes the module ready; later calls do nothing. `source` is what the module comes from if it is not the file next to
 * this one: an address, a response, bytes, or a `WebAssembly.Module`.
 */
export const start = (source) => {
  ready ??= (async () => {
    const address = new URL("./wasm/edgepack_bg.wasm", import.meta.url);
    let module_or_path = source ?? address;
    if (source === undefined && address.protocol === "file:") {
      const { readFile } = await import("node:fs/promises");
      module_or_path = await readFile(address);
    }
    ({ memory } = await init({ module_or_path }));
  })();
  return ready;
};

/** Bytes of memory that the module has: it never gives any back. */
export const memoryBytes = () => memory?.buffer.byteLength ?? 0;

/** The version of the package. */
export const version = () => guarded(wasmVersion);

/** Panics, to test what recovers from it. */
export const panicForTest = (message) => guarded(() => wasmPanic(message));

const guarded = (call) => {
  if (crashed) throw new EdgepackCrash(crashed);
  if (!memory) throw new EdgepackError("start() has not ended yet", "usage");
  try {
    return call();
  } catch (error) {
    if (error?.name === "EdgepackError") throw new EdgepackError(error.message, error.kind);
    crashed = error?.message ?? String(error);
    throw new EdgepackCrash(crashed);
  }
};

/** Files in memory under names, and what can be asked about them. No other files are read or written. */
export class Files {
  #workspace = guarded(() => new Workspace());

  /** Adds a file, in place of another of that name. A `Blob` (a `File` is one) is read piece by piece: it is in memory once. */
  async add(name, content) {
    if (!(content instanceof Blob)) return this.addBytes(name, content);
    const room = guarded(() => new Room(content.size));
    try {
      for (let at = 0; at < content.size; at += PIECE) {
        const piece = new Uint8Array(await content.slice(at, at + PIECE).arrayBuffer());
        guarded(() => room.write(at, piece));
      }
    } catch (error) {
      if (!crashed) room.free();
      throw error;
    }
    guarded(() => this.#workspace.put(name, room));
  }

  /** Adds a file from bytes that are in memory. */
  addBytes(name, content) {
    const bytes = content instanceof ArrayBuffer ? new Uint8Array(content) : bytesOf(content);
    guarded(() => {
      const room = new Room(bytes.length);
      room.write(0, bytes);
      this.#workspace.put(name, room);
    });
  }

  /** Removes a file; returns whether there was one. */
  remove(name) {
    return guarded(() => this.#workspace.remove(name));
  }

  /** Returns a copy of a file, such as one that a command wrote. */
  get(name) {
    return guarded(() => this.#workspace.get(name));
  }

  /** Runs the `edgepack` command with these arguments: its status, what it printed, and its complaints. */
  command(...args) {
    return guarded(() => {
      const answer = this.#workspace.command(args);
      const [status, text, errors] = [answer.status, answer.takeText(), answer.takeErrors()];
      answer.free();
      return { status, text, errors };
    });
  }

  /** Runs the command with `--json`: the document that it prints. Throws if it could not finish. */
  document(...args) {
    const { status, text, errors } = this.command(...args, "--json");
    if (!text) throw new EdgepackError(errors.trim(), status === 2 ? "usage" : "file");
    const document = JSON.parse(text);
    if (document.error) throw new EdgepackError(document.error.message, kindOf(document.error.status), document);
    return document;
  }

  /** Describes a file, broken or not. */
  inspect(name) {
    return this.document("inspect", name);
  }

  /** Returns all findings about a file, `data` being the data files that it needs. */
  verify(name, { data = [] } = {}) {
    return this.document("verify", name, ...data.flatMap((file) => ["--data", file])).files[0];
  }

  /** Measures the parts of a file. */
  size(name) {
    return this.document("size", name);
  }

  /** Returns the graphs of a file. */
  graphs(name) {
    return this.document("view", name);
  }

  /** Writes a program with other settings, whose names begin with `metadata.`: numbers, texts, lists of integers; `null` removes one. */
  setMetadata(name, settings, output) {
    const args = Object.entries(settings).flatMap(([key, value]) =>
      value === null ? ["--remove", key] : ["--set", `${key}=${spelled(value)}`]);
    this.remove(output);
    return this.document("patch", name, ...args, "-o", output);
  }

  /** Loads a method of a program: the one of this name, the only one, or `forward`. */
  load(name, { method, data = [] } = {}) {
    return new Method(guarded(() => this.#workspace.load(name, method, data)));
  }
}

const kindOf = (status) => (status === 2 ? "usage" : status === 4 ? "run" : "file");

// Text is in quotes, so that it is text whatever it looks like.
const spelled = (value) => (Array.isArray(value) ? `[${value.join(", ")}]` : typeof value === "string" ? JSON.stringify(value) : String(value));

/** A method that is loaded. It is freed by `free`. */
export class Method {
  #loaded;

  constructor(loaded) {
    if (!(loaded instanceof LoadedMethod)) throw new EdgepackError("methods are loaded by Files.load", "usage");
    this.#loaded = loaded;
    [this.inputs, this.outputs] = JSON.parse(guarded(() => loaded.signature()));
    this.name = guarded(() => loaded.name);
  }

  /** Bytes of memory that the method takes, with weights that were repacked. */
  get memoryBytes() {
    return guarded(() => this.#loaded.memoryBytes());
  }

  /** Sets one input: a typed array, `{ dtype, shape, data }`, numbers in an array, a number or a bool. */
  set(index, value) {
    guarded(() => this.#set(index, value));
  }

  #set(index, value) {
    const wanted = this.inputs[index];
    if (wanted && wanted.kind !== "tensor") return this.#loaded.setNumber(index, value);
    const { dtype, shape, data } = ArrayBuffer.isView(value) || Array.isArray(value) ? { data: value } : value;
    const own = Array.isArray(data) ? undefined : named(data);
    // Bits of halves, and bools, come in arrays that say less.
    const type = dtype ?? (wanted && fits(wanted.dtype, own) ? wanted.dtype : own);
    const elements = Array.isArray(data) ? fromNumbers(type, data.flat(Infinity)) : data;
    return this.#loaded.setTensor(index, type, shape && Uint32Array.from(shape), bytesOf(elements));
  }

  /** Sets one input to the pixels of a canvas (`ImageData`), prepared as `edgepack run --image` says: `imagenet`. */
  setPicture(index, image, preparation) {
    guarded(() => this.#loaded.setPicture(index, bytesOf(image.data), image.width, image.height, preparation));
  }

  /** Runs on these inputs, or on what was set: `undefined` leaves an input as it was set. Returns the outputs. */
  run(inputs = []) {
    return guarded(() => {
      inputs.forEach((input, index) => { if (input !== undefined) this.#set(index, input); });
      this.#loaded.run();
      return this.#loaded.outputs().map(shown);
    });
  }

  /** Runs without copying the outputs, to time it. */
  runOnly() {
    guarded(() => this.#loaded.run());
  }

  /** Gives the memory of the method back. */
  free() {
    guarded(() => this.#loaded.free());
  }
}

const fits = (dtype, own) => own === undefined || dtype === own || (dtype === "bool" && own === "u8") || ((dtype === "f16" || dtype === "bf16") && own === "u16");

const shown = ([kind, ...rest]) => {
  if (kind !== "tensor") return { kind, value: rest[0] };
  const [dtype, shape, bytes] = rest;
  return { kind, dtype, shape, data: typed(dtype, bytes) };
};
