// Buttons that copy: the address of this view, or a secret shown once.
const SAID_MS = 1600;

async function copy(text, button) {
  button.dataset.words ??= button.textContent; // a second click must not take "Copied" for the button's name
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
  } catch {
    button.textContent = "Copying is not allowed here";
  }
  setTimeout(() => (button.textContent = button.dataset.words), SAID_MS);
}

export function setUpCopying(root) {
  for (const button of root.querySelectorAll("[data-copy-link], [data-copy-text]")) {
    button.hidden = false;
    if (button.dataset.live) continue;
    button.dataset.live = "true";
    button.addEventListener("click", () => copy(button.dataset.copyText ?? location.href, button));
  }
}
