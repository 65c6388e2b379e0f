// The live page's pulse: says whether what stands there is fresh, and holds it still when asked to.
const stream = document.querySelector("[data-interval]");
const state = document.getElementById("live-state");
const button = document.getElementById("pause");
const interval = Number(stream.dataset.interval) * 1000;
const MISSED = 2.5; // two polls have passed, and a little for the way
let paused = false;
let last = Date.now();

function show() {
  const age = Date.now() - last;
  const word = paused ? "paused" : age > MISSED * interval ? "stale" : "live";
  if (state.dataset.state !== word) state.dataset.state = word;
  const text = word === "stale" ? `stale for ${Math.round(age / 1000)} s` : word;
  if (state.textContent !== text) state.textContent = text;
}

stream.addEventListener("htmx:sse:before:message", (event) => {
  last = Date.now();
  if (paused) event.detail.cancelled = true;
  show();
});
button.hidden = false;
button.addEventListener("click", () => {
  paused = !paused;
  button.setAttribute("aria-pressed", String(paused));
  button.textContent = paused ? "Resume" : "Pause";
  show();
});
// The stream rests while nobody looks; what stands there then is as old as it says.
document.addEventListener("visibilitychange", show);
setInterval(show, 500);
show();
