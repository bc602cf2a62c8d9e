// Stores the page, so that it works without the server it came from. The name changes with any of its files.
const CACHE = "edgepack-VERSION";
const FILES = [/* files */];

addEventListener("install", (event) => {
  event.waitUntil(caches.open(CACHE).then((cache) => cache.addAll(FILES)).then(() => skipWaiting()));
});
addEventListener("activate", (event) => {
  const old = (names) => names.filter((name) => name.startsWith("edgepack-") && name !== CACHE);
  event.waitUntil(caches.keys().then((names) => Promise.all(old(names).map((name) => caches.delete(name)))).then(() => clients.claim()));
});
addEventListener("fetch", (event) => {
  const { url, method } = event.request;
  if (method !== "GET" || !url.startsWith(registration.scope)) return;
  event.respondWith(caches.match(event.request, { ignoreSearch: true }).then((stored) => stored ?? fetch(event.request)));
});
