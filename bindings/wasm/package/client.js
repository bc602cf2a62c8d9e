// edgepack in a worker: the page stays responsive, and what ends the module ends the worker alone, which is made again.

export class EdgepackError extends Error {
  constructor({ message, kind, document }) {
    super(message);
    this.name = "EdgepackError";
    this.kind = kind;
    this.document = document;
  }
}

/** The worker came to an end, `stopped` or by a panic or for want of memory; a new one takes its place. */
export class EdgepackEnd extends Error {
  constructor(message, stopped) {
    super(message);
    this.name = "EdgepackEnd";
    this.stopped = stopped;
  }
}

/** A worker with files in memory. Files that were added as `Blob`s are there again after its end; methods are not. */
export class Client {
  #worker = null;
  #waiting = new Map();
  #last = 0;
  #blobs = new Map();
  #missing = new Set();
  #make;
  #source;

  /** Times that the worker was made again. */
  restarts = 0;
  /** Called when the worker came to an end, with the reason. */
  onend = null;

  /** `make` makes the worker if `worker.js` is not next to this file; `source` is given to `start`. */
  constructor({ make, source } = {}) {
    this.#make = make ?? (() => new Worker(new URL("./worker.js", import.meta.url), { type: "module" }));
    this.#source = source;
  }

  #ask(call, args, transfer = []) {
    return new Promise((resolve, reject) => {
      this.#last += 1;
      this.#waiting.set(this.#last, { resolve, reject });
      this.#worker.postMessage({ id: this.#last, call, args }, transfer);
    });
  }

  #begin() {
    if (this.#worker) return;
    const worker = this.#make();
    this.#worker = worker;
    worker.addEventListener("message", ({ data }) => {
      if (worker !== this.#worker) return;
      if (data.crash !== undefined) return this.#end(new EdgepackEnd(data.crash, false));
      const { resolve, reject } = this.#waiting.get(data.id);
      this.#waiting.delete(data.id);
      data.failure ? reject(new EdgepackError(data.failure)) : resolve(data.value);
    });
    worker.addEventListener("error", (event) => {
      event.preventDefault();
      if (worker === this.#worker) this.#end(new EdgepackEnd(event.message || "the worker cannot be loaded", false));
    });
    this.#missing = new Set(this.#blobs.keys());
    // A failure to start is told by the question that follows.
    this.#ask("start", [this.#source]).catch(() => {});
  }

  #end(reason) {
    this.#worker?.terminate();
    this.#worker = null;
    this.restarts += 1;
    const waiting = [...this.#waiting.values()];
    this.#waiting.clear();
    waiting.forEach(({ reject }) => reject(reason));
    this.onend?.(reason);
  }

  /** Asks about a method of this worker, which is gone if the worker is. */
  callMethod(restarts, call, ...args) {
    if (restarts === this.restarts) return this.call(call, ...args);
    return Promise.reject(new EdgepackError({ message: "the worker that loaded the method has ended", kind: "usage" }));
  }

  /** Asks the worker, which first gets the files that an earlier one had. */
  async call(call, ...args) {
    this.#begin();
    const again = [...this.#missing].map((name) => [name, this.#blobs.get(name)]);
    this.#missing.clear();
    const added = again.map(([name, blob]) => this.#ask("add", [name, blob]));
    const answer = this.#ask(call, args);
    await Promise.all([...added, answer]);
    return answer;
  }

  /** Ends what the worker is doing. */
  stop() {
    if (this.#worker) this.#end(new EdgepackEnd("stopped", true));
  }

  /** Adds a file. A `Blob` is not copied on the way; the buffer of an array is given away. */
  async add(name, content) {
    this.#begin();
    this.#missing.delete(name);
    this.#blobs.delete(name);
    if (!(content instanceof Blob)) {
      const buffer = content instanceof ArrayBuffer ? content : content.buffer;
      return this.#ask("add", [name, content], [buffer]);
    }
    await this.#ask("add", [name, content]);
    this.#blobs.set(name, content);
  }

  /** Removes a file. */
  remove(name) {
    this.#blobs.delete(name);
    return this.call("remove", name);
  }

  /** Returns the bytes of a file. */
  get(name) {
    return this.call("get", name);
  }

  /** Runs the command: `{ status, text, errors }`. */
  command(...args) {
    return this.call("command", ...args);
  }

  /** Runs the command with `--json`: the document. */
  document(...args) {
    return this.call("document", ...args);
  }

  /** Writes a program with other settings. */
  setMetadata(name, settings, output) {
    return this.call("setMetadata", name, settings, output);
  }

  /** Loads a method. */
  async load(name, options) {
    const { handle, ...about } = await this.call("load", name, options);
    return new RemoteMethod(this, handle, about);
  }

  /** Bytes of memory that the module has. */
  memoryBytes() {
    return this.call("memory");
  }
}

/** A method that is loaded in a worker. */
export class RemoteMethod {
  #client;
  #handle;
  #restarts;

  constructor(client, handle, { name, inputs, outputs, memoryBytes, milliseconds }) {
    this.#client = client;
    this.#handle = handle;
    this.#restarts = client.restarts;
    Object.assign(this, { name, inputs, outputs, memoryBytes, milliseconds });
  }

  /** Sets one input, as `Method.set`. */
  set(index, value) {
    return this.#client.callMethod(this.#restarts, "set", this.#handle, index, value);
  }

  /** Sets one input to a picture, as `Method.setPicture`. */
  setPicture(index, { data, width, height }, preparation) {
    return this.#client.callMethod(this.#restarts, "setPicture", this.#handle, index, { data, width, height }, preparation);
  }

  /** Runs: `{ outputs, milliseconds }`. */
  run(inputs) {
    return this.#client.callMethod(this.#restarts, "run", this.#handle, inputs);
  }

  /** Runs again and again for some time: `{ times, milliseconds }`. */
  time(milliseconds) {
    return this.#client.callMethod(this.#restarts, "time", this.#handle, milliseconds);
  }

  /** Gives the memory of the method back. */
  free() {
    return this.#client.callMethod(this.#restarts, "free", this.#handle);
  }
}
