"use strict";
// Asks the page around it for a graph; then the scripts of the command's own page show it.
addEventListener("message", ({ source, origin, data }) => {
  if (source !== parent || origin !== location.origin || document.getElementById("data").textContent) return;
  document.getElementById("data").textContent = JSON.stringify(data);
  const script = document.createElement("script");
  script.src = "view.js";
  document.body.append(script);
});
parent.postMessage("graph", location.origin);
