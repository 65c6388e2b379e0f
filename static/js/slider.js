// A native range beside each number box that asks for one. The box is the truth; the range is a way to move it.
const STEPS = 1000;

function scaleOf(range) {
  const low = Number(range.dataset.low);
  const high = Number(range.dataset.high);
  if (range.dataset.scale === "log") {
    const ratio = Math.log(high / low);
    return { to: (v) => (STEPS * Math.log(v / low)) / ratio, from: (p) => low * Math.exp((ratio * p) / STEPS) };
  }
  return { to: (v) => (STEPS * (v - low)) / (high - low), from: (p) => low + ((high - low) * p) / STEPS };
}

// Round to what a person would have typed: two digits, and powers of two where they are near.
function tidy(value, whole) {
  const digits = 10 ** (Math.floor(Math.log10(value)) - 1);
  const rounded = Math.round(value / digits) * digits;
  const power = 2 ** Math.round(Math.log2(value));
  const near = Math.abs(power / value - 1) < 0.04 ? power : rounded;
  return whole ? String(Math.max(1, Math.round(near))) : String(Number(value.toFixed(2)));
}

export function setUpSliders(root) {
  for (const range of root.querySelectorAll("[data-slider]")) {
    const box = document.getElementById(`f-${range.dataset.slider}`);
    const scale = scaleOf(range);
    const follow = () => {
      const value = Number(box.value);
      if (Number.isFinite(value) && box.value.trim() !== "") range.value = String(scale.to(Math.max(value, 1e-9)));
      range.setAttribute("aria-valuetext", box.value.trim() || box.placeholder);
    };
    follow();
    if (range.dataset.live) continue;
    range.dataset.live = "true";
    range.hidden = false;
    box.addEventListener("input", follow);
    range.addEventListener("input", () => {
      box.value = tidy(scale.from(Number(range.value)), box.dataset.step === "1");
      range.setAttribute("aria-valuetext", box.value);
    });
  }
}
