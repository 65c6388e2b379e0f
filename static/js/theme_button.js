// One button: system, light, dark. The choice is kept; the charts follow.
const ORDER = ["system", "light", "dark"];

function current() {
  return document.documentElement.dataset.theme ?? "system";
}

function choose(theme) {
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  try {
    if (theme === "system") localStorage.removeItem("theme");
    else localStorage.setItem("theme", theme);
  } catch {
    // Storage may be off; the choice then lasts as long as the page.
  }
}

export function setUpThemeButton(changed) {
  const button = document.getElementById("theme");
  if (!button || button.dataset.live) return;
  button.dataset.live = "true";
  button.hidden = false;
  const show = () => (button.querySelector("[data-chosen]").textContent = current());
  show();
  button.addEventListener("click", () => {
    choose(ORDER[(ORDER.indexOf(current()) + 1) % ORDER.length]);
    show();
    changed();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", changed);
}
