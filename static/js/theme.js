// Runs before the first paint, so that a chosen theme does not flash. Without a choice the system decides.
(() => {
  document.documentElement.classList.add("scripted");
  let chosen = null;
  try {
    chosen = localStorage.getItem("theme");
  } catch {
    // Storage may be off; the system's theme serves.
  }
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
})();
