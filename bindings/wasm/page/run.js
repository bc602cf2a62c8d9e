// Runs a method of a program on inputs of the page; files that hold no program are run by the command.

import { inputPart } from "./inputs.js";
import { at, bytes, element, milliseconds } from "./parts.js";
import { toNumbers } from "./package/elements.js";

/** Elements of an output that the page shows. */
const SHOWN = 16;
const TOP = 5;

let loaded = null;
let parts = [];

/** Forgets the method: another file is shown, or the worker has ended. */
export const forget = () => {
  loaded = null;
};

const chosen = () => at("method").value || undefined;

const load = async (client, about) => {
  const { path, data } = about();
  if (loaded && loaded.method === chosen() && loaded.path === path) return loaded.it;
  const it = await client.load(path, { method: chosen(), data });
  loaded = { it, path, method: chosen() };
  return it;
};

/** Shows the form of a program's inputs. */
export const showRun = async (client, about, inspected, broken) => {
  loaded = null;
  parts = [];
  at("inputs").replaceChildren();
  at("outputs").replaceChildren();
  at("ran").textContent = "";
  const methods = broken ? [] : (inspected?.methods ?? inspected?.program?.methods ?? []);
  at("go").disabled = broken;
  at("method").replaceChildren(...methods.map(({ name }) => element("option", name)));
  if (methods.some(({ name }) => name === "forward")) at("method").value = "forward";
  at("methods").hidden = !methods.length;
  at("time").hidden = !methods.length;
  if (methods.length) await showInputs(client, about);
  else at("inputs").replaceChildren(element("p", broken ? "The file has errors: it does not run." : "This file holds no program: what it holds is run by the command, on random inputs."));
};

const showInputs = async (client, about) => {
  parts = [];
  at("inputs").replaceChildren();
  const method = await load(client, about);
  parts = method.inputs.map(inputPart);
  at("inputs").replaceChildren(...parts.map(({ part }) => part));
  if (!parts.length) at("inputs").replaceChildren(element("p", "The method takes nothing."));
};

const give = async (method) => {
  for (const { give } of parts) await give(method);
};

const ranked = (numbers) => [...numbers.keys()].sort((a, b) => (numbers[a] < numbers[b] ? 1 : numbers[a] > numbers[b] ? -1 : a - b)).slice(0, TOP);

const text = (number) => (typeof number === "number" && !Number.isInteger(number) ? Number(number.toPrecision(7)).toString() : String(number));

const outputPart = (output, index) => {
  const part = element("div");
  part.className = "output";
  if (output.kind !== "tensor") {
    part.append(element("p", `output ${index}: ${output.kind} ${output.value ?? ""}`));
    return part;
  }
  const { dtype, shape, data } = output;
  const numbers = toNumbers(dtype, data);
  const more = numbers.length > SHOWN ? ", …" : "";
  part.append(element("p", `output ${index}: ${dtype}[${shape.join(", ")}]`), element("p", [...numbers.slice(0, SHOWN)].map(text).join(", ") + more));
  // Rows of classes.
  if (shape.length && shape.at(-1) > TOP && numbers.length === shape.at(-1)) {
    const rows = ranked(numbers).map((place) => {
      const [at, value] = [element("td", String(place)), element("td", text(numbers[place]))];
      at.className = value.className = "number";
      return element("tr", undefined, at, value);
    });
    part.append(element("table", undefined, element("thead", undefined, element("tr", undefined, element("th", "greatest at"), element("th", "value"))), element("tbody", undefined, ...rows)));
  }
  return part;
};

const runByCommand = async (client, about) => {
  const { path } = about();
  const began = performance.now();
  const { method, outputs } = await client.document("run", path, "--random", "1");
  at("ran").textContent = `${method} ran, opened and loaded as well, in ${milliseconds(performance.now() - began)}.`;
  at("outputs").replaceChildren(...outputs.map(({ index, type, values, elements }) => {
    const part = element("div", undefined, element("p", `output ${index}: ${type}`), element("p", values.slice(0, SHOWN).join(", ") + (elements > SHOWN ? ", …" : "")));
    part.className = "output";
    return part;
  }));
};

/** Makes the form work. */
export const startRun = (client, about, task) => {
  at("method").addEventListener("change", () => task("loading", () => showInputs(client, about)));
  at("running").addEventListener("submit", (event) => {
    event.preventDefault();
    task("running", async () => {
      at("outputs").replaceChildren();
      at("ran").textContent = "";
      if (at("methods").hidden) return runByCommand(client, about);
      const method = await load(client, about);
      await give(method);
      const { outputs, milliseconds: time } = await method.run();
      at("ran").textContent = `Loaded in ${milliseconds(method.milliseconds)}, ran in ${milliseconds(time)}; the method takes ${bytes(method.memoryBytes)}.`;
      at("outputs").replaceChildren(...outputs.map(outputPart));
      return undefined;
    });
  });
  at("time").addEventListener("click", () => task("timing", async () => {
    const method = await load(client, about);
    await give(method);
    await method.run();
    const { times } = await method.time(1500);
    times.sort((a, b) => a - b);
    const quantile = (share) => milliseconds(times[Math.min(times.length - 1, Math.floor(times.length * share))]);
    at("ran").textContent = `${times.length} runs: fastest ${quantile(0)}, median ${quantile(0.5)}, nine of ten within ${quantile(0.9)}.`;
  }));
};
