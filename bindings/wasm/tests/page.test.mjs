// The page in Chromium, from the first file to the last: what it shows, what it computes, how it recovers, that it asks
// nobody. `EDGEPACK_SCREENSHOTS` names a folder for pictures of it.

import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { freemem, tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { chromium } from "playwright-core";

import { makeLarge } from "./large.mjs";
import { apart, data, names, path, read, tensors } from "./support.mjs";
import { serve } from "./server.mjs";

const CLASSIFIER = "corpus/models/classifier_portable";
const QUIET = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];

// A package that TVM made, if there is a corpus of such; else the one here whose only fault is a warning.
const corpus = `${process.env.EDGEPACK_CORPUS}/mlf/cnn_f32/cnn_f32.v5.graph.tar`;
const MLF = existsSync(corpus) ? corpus : data("hostile/mlf/no_end.tar");

const folder = mkdtempSync(join(tmpdir(), "edgepack-page-"));
const seen = { errors: [], foreign: [] };
let [server, context, page] = [];

before(async () => {
  server = await serve();
  context = await chromium.launchPersistentContext(join(folder, "profile"), {
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    args: QUIET,
    viewport: { width: 1180, height: 860 },
    acceptDownloads: true,
  });
  page = await context.newPage();
  page.on("console", (message) => { if (["error", "warning"].includes(message.type())) seen.errors.push(message.text()); });
  page.on("pageerror", (error) => seen.errors.push(error.stack));
  page.on("dialog", (dialog) => { seen.errors.push(`a dialog: ${dialog.message()}`); dialog.dismiss(); });
  context.on("request", (request) => { if (!request.url().startsWith(server.address) && !request.url().startsWith("blob:")) seen.foreign.push(request.url()); });
  await page.goto(server.address);
  await page.waitForSelector("html[data-ready=yes]");
});

after(async () => {
  await context?.close();
  await server?.stop().catch(() => {});
  rmSync(folder, { recursive: true, force: true });
});

const picture = async (name) => {
  const to = process.env.EDGEPACK_SCREENSHOTS;
  if (to) await page.screenshot({ path: join(to, `${name}.png`) });
};
const text = (selector) => page.textContent(selector);
const settled = (wanted = "Ready") => page.waitForFunction((wanted) => !document.getElementById("state").classList.contains("busy") && document.getElementById("doing").textContent.startsWith(wanted), wanted);
const tab = (name) => page.click(`nav button[data-tab=${name}]`);
const open = async (...files) => {
  await page.setInputFiles("#choose", files);
  await page.waitForFunction((name) => document.getElementById("files").textContent.includes(name), typeof files[0] === "string" ? files[0].split("/").at(-1) : files[0].name);
  await settled();
};
const trouble = async () => ((await page.isVisible("#trouble")) ? text("#trouble") : "");
const run = async () => {
  await tab("run");
  await page.click("#go");
  await page.waitForFunction(() => document.querySelector("#outputs .output") || !document.getElementById("trouble").hidden);
  await settled();
};

test("a classifier is shown, is sound, and computes what was recorded", async () => {
  await open(data(`${CLASSIFIER}.pte`));
  assert.match(await text("#facts"), /program/);
  assert.match(await text("#listing"), /aten::/);
  assert.match(await text("#verdict"), /^Nothing/);
  await picture("summary");
  await tab("sizes");
  assert.match(await text("#parts"), /tables/);
  await picture("sizes");
  await tab("needs");
  assert.match(await text("#operators"), /convolution/);
  const recorded = tensors(read(`${CLASSIFIER}.safetensors`));
  await tab("run");
  await page.selectOption("#inputs select", "numbers");
  await page.fill("#inputs textarea", [...recorded.get("forward.0.in.0").data].join(" "));
  await run();
  assert.equal(await trouble(), "");
  const wanted = recorded.get("forward.0.out.0").data;
  const shown = (await text("#outputs .output p:nth-of-type(2)")).split(", ").filter((word) => word !== "…").map(Number);
  assert.ok(shown.length > 0 && apart(shown, wanted.slice(0, shown.length)) <= 1e-6, shown.join());
  await picture("run");
});

test("a picture becomes an input", async () => {
  await tab("run");
  await page.selectOption("#inputs select", "picture");
  await page.setInputFiles("#inputs input[type=file]", data("corpus/inputs/picture.png"));
  await page.waitForSelector("#inputs canvas:not([hidden])");
  await page.selectOption("#inputs fieldset div select", "unit");
  await run();
  assert.equal(await trouble(), "");
  assert.match(await text("#outputs"), /f32/);
  await picture("picture");
  await page.click("#time");
  await page.waitForFunction(() => document.getElementById("ran").textContent.includes("median"));
  await settled();
});

test("the graph is drawn", async () => {
  await tab("graph");
  await page.waitForSelector("#drawing:not([hidden])");
  const frame = await (await page.$("#drawing")).contentFrame();
  await frame.waitForSelector("#canvas rect.node");
  assert.ok(await frame.locator("#canvas rect.node").count() > 3);
  await picture("graph");
});

test("settings are changed in a copy", async () => {
  await tab("metadata");
  await page.click("#more");
  await page.fill("#rows .setting:last-child input:nth-of-type(1)", "metadata.note");
  await page.fill("#rows .setting:last-child input:nth-of-type(2)", "</script><img src=x onerror=alert(1)>");
  await page.click("#more");
  await page.fill("#rows .setting:last-child input:nth-of-type(1)", "metadata.count");
  await page.fill("#rows .setting:last-child input:nth-of-type(2)", "7");
  await picture("settings");
  const [download] = await Promise.all([page.waitForEvent("download"), page.click("#change")]);
  const changed = join(folder, "changed.pte");
  await download.saveAs(changed);
  await settled();
  assert.match(await text("#changed"), /metadata.note/);
  await open(changed);
  assert.match(await text("#listing"), /metadata\.count +7\n/);
  assert.match(await text("#listing"), /<\/script><img src=x onerror=alert\(1\)>/);
  assert.equal(await page.locator("#about img").count(), 0);
  assert.equal(await page.inputValue("#rows .setting input:nth-of-type(2)"), "7");
});

test("other kinds of files are shown", async () => {
  for (const [file, kind, runs] of [
    ["corpus/models/encoder_xnnpack_dynamic.pte", /program/, true],
    ["corpus/edgetpu/left.tflite", /tflite/, null],
    ["corpus/edgetpu/alone.dwn", /darwinn/, null],
    [MLF, /mlf|model library/, false],
  ]) {
    await open(file === MLF ? MLF : data(file));
    assert.match(await text("#facts"), kind, file);
    assert.match(await text("#verdict"), /^Nothing| 0 errors/, file);
    await tab("graph");
    await settled();
    const frame = await (await page.$("#drawing")).contentFrame();
    await frame.waitForSelector("#canvas rect.node");
    await picture(`graph-${file.split("/").at(-1)}`);
    if (runs === null) continue;
    await run();
    assert.equal((await trouble()) === "", runs, `${file}: ${await trouble()}`);
  }
});

test("what hostile files say stays text", async () => {
  const name = "<img src=x onerror=alert(1)>.pte";
  await open({ name, mimeType: "application/octet-stream", buffer: Buffer.from(read(`${CLASSIFIER}.pte`)) });
  assert.ok((await text("#files")).includes(name));
  assert.ok((await text("#facts")).includes(name));
  // The name of an operator, in the file itself.
  const bytes = Buffer.from(read(`${CLASSIFIER}.pte`));
  const evil = "<b>x</b><img>";
  const place = bytes.indexOf("aten::convolution");
  assert.ok(place > 0);
  bytes.write(evil, place);
  await open({ name: "names.pte", mimeType: "application/octet-stream", buffer: bytes });
  assert.ok((await text("#listing")).includes("<b>x</b><img>"), await text("#listing"));
  await tab("graph");
  await settled();
  const frame = await (await page.$("#drawing")).contentFrame();
  await frame.waitForSelector("#canvas rect.node");
  assert.equal(await frame.locator("img, b").count(), 0);
  assert.equal(await page.locator("main img, main b").count(), 0);
});

test("files that are broken have findings, and the page goes on", async () => {
  let told = 0;
  for (const family of ["pte", "ptd", "bundle", "tflite", "darwinn", "mlf", "exir", "trace"]) {
    const manifest = JSON.parse(readFileSync(data(`hostile/${family}/manifest.json`)));
    const errors = manifest.filter(({ file, severity }) => severity === "error" && names(`hostile/${family}`).includes(file));
    for (const { file, rule } of errors.filter((_, index) => index % Math.ceil(errors.length / 4) === 0)) {
      await open(data(`hostile/${family}/${file}`));
      const shown = (await text("#found")) + (await text("#verdict"));
      assert.ok(shown.length > 0);
      told += Number(shown.includes(rule));
      if (told === 3) {
        await tab("findings");
        await picture("findings");
      }
    }
  }
  assert.ok(told >= 20, `${told} told by their rule`);
  assert.equal(await page.evaluate(() => document.documentElement.dataset.ready), "yes");
});

const restarts = async () => {
  await open(data(`${CLASSIFIER}.pte`));
  return Number(/made again (\d+) times/.exec(await text("#module"))[1]);
};

test("what is stopped ends, and the page goes on", async () => {
  const before = await restarts();
  await tab("run");
  await page.selectOption("#inputs select", "zeros");
  await page.click("#time");
  await page.waitForSelector("#stop:not([disabled])");
  await page.click("#stop");
  await settled("Stopped");
  // The file is there again for the new worker.
  await run();
  assert.equal(await trouble(), "");
  assert.match(await text("#outputs"), /f32/);
  assert.equal(await restarts(), before + 1);
});

// Asks the worker something that the page does not ask.
const askWorker = (question) => page.workers().at(-1).evaluate(({ call, args, repeat }) => {
  const big = repeat ? new Array(repeat).fill("x".repeat(1 << 28)) : args;
  dispatchEvent(new MessageEvent("message", { data: { id: -1, call, args: big } }));
}, question);

test("after a panic there is a new worker", async () => {
  const before = await restarts();
  await askWorker({ call: "panicForTest", args: ["a fault on purpose"] });
  await page.waitForFunction(() => document.getElementById("trouble").textContent.includes("a fault on purpose"));
  await picture("panic");
  assert.equal(await restarts(), before + 1);
  await tab("run");
  await page.selectOption("#inputs select", "zeros");
  await run();
  assert.equal(await trouble(), "");
});

const room = freemem() > 7 * 2 ** 30;
test("after memory is exhausted there is a new worker", { skip: room ? false : "less than 7 GiB of memory are free" }, async () => {
  const before = await restarts();
  await askWorker({ call: "command", repeat: 17 });
  await page.waitForFunction(() => !document.getElementById("trouble").hidden, undefined, { timeout: 120_000 });
  assert.equal(await restarts(), before + 1);
});

test("a program of 100 MB is in memory once", async () => {
  const large = join(folder, "large.pte");
  const { size, weight } = await makeLarge(large);
  await page.reload();
  await page.waitForSelector("html[data-ready=yes]");
  await open(large);
  assert.match(await text("#verdict"), /^Nothing/);
  await tab("run");
  await page.selectOption("#inputs select", "numbers");
  await page.fill("#inputs textarea", "3");
  await run();
  assert.equal(await trouble(), "");
  assert.ok((await text("#outputs")).includes(String(weight)), await text("#outputs"));
  const used = await page.evaluate(() => document.getElementById("module").dataset.bytes);
  console.log(`a program of ${size} bytes: ${used} bytes of memory`);
  assert.ok(Number(used) < size * 1.3, `${used} bytes of memory for a file of ${size}`);
});

test("the example of the documentation", async () => {
  const [code] = [...readFileSync(path("docs/web.md"), "utf8").matchAll(/```js\n([\s\S]*?)```/g)].map(([, code]) => code).filter((code) => code.includes("edgepack/client"));
  const [, rest] = code.split('import { Client } from "edgepack/client";\n');
  const logged = await page.evaluate(`(async () => {
    const { Client } = await import(new URL("package/client.js", location.href));
    const said = [];
    const console = { log: (...words) => said.push(...words.map(String)) };
    const file = new File([Uint8Array.from([${[...read("corpus/models/mlp_portable.pte")]}])], "model.pte");
    ${rest}
    return [...said, findings.length, milliseconds >= 0];
  })()`);
  assert.deepEqual([logged[0], logged[1], ...logged.slice(3)], ["f32", "3,4", 0, true]);
  assert.equal(logged[2].split(",").length, 12);
});

test("without the server everything still works", async () => {
  await page.waitForFunction(() => navigator.serviceWorker.controller);
  await server.stop();
  await page.reload();
  await page.waitForSelector("html[data-ready=yes]");
  await open(data(`${CLASSIFIER}.pte`));
  await tab("run");
  await page.selectOption("#inputs select", "zeros");
  await run();
  assert.match(await text("#outputs"), /f32/);
  await tab("graph");
  const frame = await (await page.waitForSelector("#drawing:not([hidden])")).contentFrame();
  await frame.waitForSelector("#canvas rect.node");
});

test("nothing was asked of others, and nothing was complained of", () => {
  assert.deepEqual(seen.foreign, []);
  assert.deepEqual(seen.errors, []);
});
