// Buttons that copy: the address of this view, or a secret shown once.
const SAID_MS = 1600;
// A second click must not take "Copied" for the button's name; an attribute would not outlive a swap.
const names = new WeakMap();

async function copy(text, button) {
  if (!names.has(button)) names.set(button, button.textContent);
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
  } catch {
    button.textContent = "Copying is not allowed here";
  }
  setTimeout(() => (button.textContent = names.get(button)), SAID_MS);
}

export function setUpCopying(root) {
  for (const button of root.querySelectorAll("[data-copy-link], [data-copy-text]")) {
    button.hidden = false;
    if (button.dataset.live) continue;
    button.dataset.live = "true";
    button.addEventListener("click", () => copy(button.dataset.copyText ?? location.href, button));
  }
}
