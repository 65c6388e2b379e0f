// What a person is told while the numbers follow the inputs: busy, mended or not, and the verdict once it rests.
const REST_MS = 1000;
let resting = 0;

function markInvalid() {
  for (const message of document.querySelectorAll(".message")) {
    const name = message.id.replace("msg-", "");
    const invalid = message.textContent.trim() !== "";
    for (const id of [`f-${name}`, `f-${name}-search`]) {
      const field = document.getElementById(id);
      if (invalid) field?.setAttribute("aria-invalid", "true");
      else field?.removeAttribute("aria-invalid");
    }
  }
}

function sayVerdict() {
  clearTimeout(resting);
  resting = setTimeout(() => {
    const stale = document.getElementById("stale")?.textContent.trim();
    const verdict = document.getElementById("verdict")?.textContent ?? "";
    document.getElementById("status").textContent = stale || verdict;
  }, REST_MS);
}

function busy(state) {
  document.getElementById("results")?.setAttribute("aria-busy", String(state));
}

export function setUpFeedback() {
  // The address says everything from the start, so that a default that changes later changes no link.
  const results = document.querySelector("[data-address]");
  if (results && location.pathname === "/" && !location.search) history.replaceState(history.state, "", results.dataset.address);
  document.addEventListener("htmx:before:request", () => busy(true));
  document.addEventListener("htmx:finally:request", () => busy(false));
  document.addEventListener("htmx:after:swap", () => {
    markInvalid();
    sayVerdict();
  });
}
