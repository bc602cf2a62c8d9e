// The page: files come in, the worker is asked about them, and what it says is shown.

import { at, bytes, element, field } from "./parts.js";
import { forget, showRun, startRun } from "./run.js";
import { showSettings, startSettings } from "./settings.js";
import { clearShown, showFindings, showSizes, showSummary } from "./show.js";
import { Client } from "./package/client.js";

const TABS = [["summary", "Summary"], ["findings", "Findings"], ["needs", "Operators"], ["sizes", "Sizes"], ["graph", "Graph"], ["metadata", "Settings"], ["run", "Run"]];

let client = null;
let main = null;
let data = [];
let paths = 0;
let busy = 0;

// Names in the worker are the page's own, so that no name of a file can be taken for something else.
const about = () => ({ path: main.path, name: main.file.name, data: data.map(({ path }) => path) });

const trouble = (message) => {
  at("trouble").hidden = !message;
  at("trouble").textContent = message ?? "";
};

// The worker's names of files, in what it says, are those of the person.
const readable = (text) => [main, ...data].filter(Boolean).reduce((shown, { path, file }) => shown.replaceAll(path, file.name), text);

const waiting = (text) => {
  at("state").classList.toggle("busy", busy > 0);
  at("stop").disabled = busy === 0;
  at("doing").textContent = busy ? `${text} …` : text;
};

/** Does one thing after another; what goes wrong is shown, and the page goes on. */
let tasks = Promise.resolve();
const task = (what, work) => {
  tasks = tasks.then(async () => {
    trouble(null);
    busy += 1;
    waiting(what);
    let end;
    try {
      await work();
    } catch (error) {
      if (error.name === "EdgepackEnd") {
        end = error.stopped ? "Stopped; a new worker is ready" : "The worker ended; a new one is ready";
        if (!error.stopped) trouble(`The module came to an end while ${what}: ${readable(error.message)}`);
      } else {
        trouble(readable(error.message));
      }
    }
    busy -= 1;
    waiting(end ?? (main ? "Ready" : "Choose a file"));
  });
  return tasks;
};

const show = (id) => {
  for (const [tab] of TABS) at(tab).hidden = tab !== id;
  for (const button of at("tabs").children) button.setAttribute("aria-selected", String(button.dataset.tab === id));
  if (id === "graph" && !drawn) task("drawing the graph", drawGraph);
};

const mark = (id, count, level) => {
  const badge = element("span", String(count));
  badge.className = `count ${level}`;
  const button = [...at("tabs").children].find(({ dataset }) => dataset.tab === id);
  button.querySelector(".count")?.remove();
  if (count) button.append(badge);
};

// What fails is told in the place of what it would have said; only the end of the worker ends all of it.
const told = async (question, otherwise) => {
  try {
    return await question;
  } catch (error) {
    if (error.name === "EdgepackEnd") throw error;
    return otherwise(readable(error.message));
  }
};

// The graph is worked out when it is first looked at: a frame that is not seen has no size to fit it into.
let drawing = null;
const draw = (view, message) => {
  at("undrawn").hidden = Boolean(view);
  at("undrawn").textContent = message ?? "";
  at("drawing").hidden = !view;
  drawing = view;
  if (view) at("drawing").src = `graph.html?${paths}`;
};
let drawn = true;
const drawGraph = async () => {
  if (drawn) return;
  drawn = true;
  let why = "There is no graph in this file.";
  const view = await told(client.document("view", about().path), (message) => { why = message; });
  if (view) view.file = main.file.name;
  draw(view?.graphs?.length ? view : null, why);
};
addEventListener("message", ({ source, data: question }) => {
  if (source === at("drawing").contentWindow && question === "graph" && drawing) source.postMessage(drawing, location.origin);
});

const examine = async () => {
  const { path, data: others } = about();
  clearShown();
  at("about").hidden = false;
  const files = data.map(({ file }) => file);
  const inspected = await told(client.document("inspect", path), () => null);
  const listing = await client.command("inspect", path);
  showSummary(main.file, files, inspected, readable(listing.text + listing.errors));
  const verified = await told(client.document("verify", path, ...others.flatMap((name) => ["--data", name])), (error) => ({ files: [{ findings: [], more: 0, error }] }));
  const [one] = verified.files;
  const { total, errors } = showFindings({ ...one, error: one.error && readable(one.error) });
  mark("findings", total || Number(Boolean(one.error)), errors || one.error ? "error" : "");
  showSettings(inspected?.named_data ?? []);
  const needs = await client.command("ops", path);
  at("operators").textContent = readable(needs.text + needs.errors);
  const sizes = await told(client.document("size", path), (message) => { at("measured").textContent = message; });
  if (sizes) showSizes(sizes);
  await told(showRun(client, about, inspected, errors > 0), (message) => {
    at("inputs").replaceChildren(element("p", `It cannot be run here: ${message}`));
  });
  const used = await client.memoryBytes();
  at("module").dataset.bytes = String(used);
  at("module").textContent = `The module has ${bytes(used)} of memory; its worker was made again ${client.restarts} times.`;
};

const listed = () => {
  const item = ({ file }, is) => {
    const made = element("li", `${file.name}, ${bytes(file.size)}`);
    made.className = is;
    return made;
  };
  at("files").replaceChildren(...(main ? [item(main, "main")] : []), ...data.map((one) => item(one, "")));
};

// Of several files the data files belong to the other one.
const isData = async (file) => {
  const head = new TextDecoder("latin1").decode(await file.slice(4, 8).arrayBuffer());
  return head === "FT01" || head === "FD01";
};

const open = (files) => task("reading", async () => {
  for (const { path } of [main, ...data].filter(Boolean)) await client.remove(path);
  [main, data] = [null, []];
  clearShown();
  draw(null);
  drawn = false;
  at("about").hidden = true;
  const kinds = await Promise.all(files.map(isData));
  const first = Math.max(0, kinds.indexOf(false));
  for (const [index, file] of files.entries()) {
    paths += 1;
    const one = { file, path: `./file${paths}` };
    await client.add(one.path, file);
    if (index === first) main = one;
    else data.push(one);
  }
  listed();
  at("drop").classList.add("small");
  show("summary");
  await examine();
});

const begin = async () => {
  at("tabs").replaceChildren(...TABS.map(([id, text]) => {
    const button = field("button", { type: "button", role: "tab", textContent: text });
    button.dataset.tab = id;
    button.addEventListener("click", () => show(id));
    return button;
  }));
  show("summary");
  // Compiled once: every worker gets the same module.
  const module = await WebAssembly.compileStreaming(fetch(new URL("package/wasm/edgepack_bg.wasm", import.meta.url)));
  client = new Client({ source: module });
  client.onend = ({ message, stopped }) => {
    forget();
    // What waits for the worker tells the rest.
    if (!stopped && !busy) trouble(`The module came to an end: ${message}`);
  };
  at("stop").addEventListener("click", () => client.stop());
  at("choose").addEventListener("change", ({ target }) => {
    if (target.files.length) open([...target.files]);
    target.value = "";
  });
  const drop = at("drop");
  addEventListener("dragover", (event) => { event.preventDefault(); drop.classList.add("over"); });
  addEventListener("dragleave", (event) => { if (!event.relatedTarget) drop.classList.remove("over"); });
  addEventListener("drop", (event) => {
    event.preventDefault();
    drop.classList.remove("over");
    if (event.dataTransfer.files.length) open([...event.dataTransfer.files]);
  });
  startSettings(client, about, task);
  startRun(client, about, task);
  await task("starting", () => client.memoryBytes());
  if ("serviceWorker" in navigator) await navigator.serviceWorker.register("offline.js").catch(() => {});
  document.documentElement.dataset.ready = "yes";
};

begin().catch((error) => {
  waiting("This browser cannot run the module");
  trouble(error.message);
});
