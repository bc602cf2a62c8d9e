import type { Answer, Document, Input, Output, Setting, Signature } from "./edgepack.js";

/** A failure that leaves everything as it was. */
export class EdgepackError extends Error {
  readonly kind: "usage" | "file" | "run";
  readonly document?: Document;
}

/** The worker came to an end: it was stopped, the module panicked, or no memory was left. */
export class EdgepackEnd extends Error {
  readonly stopped: boolean;
}

/** A worker with files in memory. It is made when it is first asked, and again after its end. */
export class Client {
  constructor(options?: { make?: () => Worker; source?: string | BufferSource | WebAssembly.Module });
  readonly restarts: number;
  onend: ((reason: EdgepackEnd) => void) | null;
  /** Ends what the worker is doing: all that waits is rejected with `EdgepackEnd`. */
  stop(): void;
  /** A `Blob` is read piece by piece in the worker, and is there again after its end; the buffer of an array is given away. */
  add(name: string, content: Blob | ArrayBuffer | ArrayBufferView): Promise<void>;
  remove(name: string): Promise<boolean>;
  get(name: string): Promise<Uint8Array>;
  command(...args: string[]): Promise<Answer>;
  document(...args: string[]): Promise<Document>;
  setMetadata(name: string, settings: Record<string, Setting>, output: string): Promise<Document>;
  load(name: string, options?: { method?: string; data?: string[] }): Promise<RemoteMethod>;
  memoryBytes(): Promise<number>;
}

/** A method that is loaded in a worker. It ends with the worker. */
export class RemoteMethod {
  private constructor();
  readonly name: string;
  readonly inputs: Signature[];
  readonly outputs: Signature[];
  readonly memoryBytes: number;
  /** Time of loading it. */
  readonly milliseconds: number;
  set(index: number, value: Exclude<Input, undefined>): Promise<void>;
  setPicture(index: number, image: { data: Uint8ClampedArray | Uint8Array; width: number; height: number }, preparation: string): Promise<void>;
  run(inputs?: Input[]): Promise<{ outputs: Output[]; milliseconds: number }>;
  time(milliseconds: number): Promise<{ times: number[]; milliseconds: number }>;
  free(): Promise<void>;
}
