/** Elements of a tensor. Types without an array of their own are arrays of their bits: `f16` and `bf16` are `Uint16Array`. */
export type Elements =
  | Float32Array | Float64Array
  | Int8Array | Uint8Array | Uint8ClampedArray | Int16Array | Uint16Array | Int32Array | Uint32Array
  | BigInt64Array | BigUint64Array;

/** Element types by their short names; others come as bytes. */
export type Dtype =
  | "f32" | "f64" | "f16" | "bf16"
  | "i8" | "u8" | "bool" | "i16" | "u16" | "i32" | "u32" | "i64" | "u64" | (string & {});

/** A tensor in index order. */
export interface Tensor {
  dtype?: Dtype;
  shape?: ArrayLike<number>;
  data: Elements | number[];
}

/** An input of a run. */
export type Input = Elements | Tensor | number[] | number | bigint | boolean | undefined;

/** An output of a run. */
export type Output =
  | { kind: "tensor"; dtype: Dtype; shape: number[]; data: Elements }
  | { kind: "int"; value: bigint }
  | { kind: "double"; value: number }
  | { kind: "bool"; value: boolean }
  | { kind: "text" | "list"; value: string }
  | { kind: "none"; value: undefined };

/** An input or output as the method declares it. */
export interface Signature {
  kind: "tensor" | "int" | "bool" | "double" | "text" | "none" | "list";
  name?: string;
  dtype?: Dtype;
  /** Sizes; upper bounds if `dynamic`. */
  shape?: number[];
  dynamic: boolean;
  /** The value of a number or text with which the method was traced. */
  traced?: string;
}

/** A setting of a program: `null` removes it. Whole numbers are integers. */
export type Setting = number | bigint | string | number[] | null;

/** What a command printed, and its exit status: 0 fine, 1 findings, 2 wrong usage, 3 unreadable, 4 cannot run. */
export interface Answer {
  status: number;
  text: string;
  errors: string;
}

/** A JSON document of the command, as `docs/json` of the project describes it. */
export type Document = Record<string, any>;

/** A failure that leaves everything as it was. */
export class EdgepackError extends Error {
  readonly kind: "usage" | "file" | "run";
  readonly document?: Document;
}

/** The end of the module: a panic, or no memory was left. */
export class EdgepackCrash extends Error {}

/**
 * Makes the module ready. `source` is what it comes from if that is not the file next to this one: an address, a
 * response, bytes, or a compiled module.
 */
export function start(source?: string | URL | Request | Response | BufferSource | WebAssembly.Module): Promise<void>;

/** Bytes of memory that the module has. */
export function memoryBytes(): number;

/** The version of the package. */
export function version(): string;

/** Panics, to test what recovers from it. */
export function panicForTest(message: string): never;

/** Files in memory under names. No others are read or written. */
export class Files {
  add(name: string, content: Blob | ArrayBuffer | ArrayBufferView): Promise<void>;
  addBytes(name: string, content: ArrayBuffer | ArrayBufferView): void;
  remove(name: string): boolean;
  get(name: string): Uint8Array;
  command(...args: string[]): Answer;
  document(...args: string[]): Document;
  inspect(name: string): Document;
  verify(name: string, options?: { data?: string[] }): Document;
  size(name: string): Document;
  graphs(name: string): Document;
  setMetadata(name: string, settings: Record<string, Setting>, output: string): Document;
  load(name: string, options?: { method?: string; data?: string[] }): Method;
}

/** A method that is loaded. */
export class Method {
  private constructor();
  readonly name: string;
  readonly inputs: Signature[];
  readonly outputs: Signature[];
  readonly memoryBytes: number;
  set(index: number, value: Exclude<Input, undefined>): void;
  /** `preparation` is that of `edgepack run --image`: `imagenet`, or `resize=224,mean=0.5,std=0.5`. */
  setPicture(index: number, image: { data: Uint8ClampedArray | Uint8Array; width: number; height: number }, preparation: string): void;
  run(inputs?: Input[]): Output[];
  runOnly(): void;
  free(): void;
}

/** An array of this element type with these numbers. */
export function fromNumbers(dtype: Dtype, numbers: Iterable<number | bigint>): Elements;

/** The numbers of a tensor: halves become single-precision floats. */
export function toNumbers(dtype: Dtype, data: Elements): Elements;
