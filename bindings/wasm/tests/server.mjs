// Serves the page as a server for it would: with a policy of its own, and from one folder alone.

import { createServer } from "node:http";
import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";

const KINDS = { html: "text/html; charset=utf-8", css: "text/css", js: "text/javascript", svg: "image/svg+xml", wasm: "application/wasm" };
const POLICY = "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'; connect-src 'self'; object-src 'none'";
const folder = fileURLToPath(new URL("../dist/page/", import.meta.url));

/** Starts at some port; `stop` ends all connections. */
export const serve = async () => {
  const server = createServer(async (request, response) => {
    const name = new URL(request.url, "http://localhost").pathname.slice(1) || "index.html";
    try {
      if (!/^[\w./-]+$/.test(name) || name.includes("..")) throw new Error(name);
      const content = await readFile(folder + name);
      response.writeHead(200, { "content-type": KINDS[name.split(".").at(-1)] ?? "application/octet-stream", "content-security-policy": POLICY });
      response.end(content);
    } catch {
      response.writeHead(404, { "content-type": "text/plain" });
      response.end("there is no such file");
    }
  });
  await new Promise((resolve) => { server.listen(0, "127.0.0.1", resolve); });
  const stop = () => new Promise((resolve) => {
    server.close(resolve);
    server.closeAllConnections();
  });
  return { address: `http://localhost:${server.address().port}/`, stop };
};
