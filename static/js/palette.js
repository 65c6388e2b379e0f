// Turns the colour roles of a figure ("@decode") into the colours of a theme.

// Custom properties come back unresolved (light-dark(…)); a painted element tells the colour they amount to.
export function paintedFor(theme, figure) {
  const probe = document.createElement("span");
  probe.hidden = true;
  if (theme) probe.dataset.theme = theme;
  document.body.append(probe);
  const known = new Map();
  const colour = (role) => {
    if (!known.has(role)) {
      probe.style.color = `var(--chart-${role})`;
      known.set(role, getComputedStyle(probe).color);
    }
    return known.get(role);
  };
  const painted = paint(figure, colour);
  probe.remove();
  return painted;
}

function paint(value, colour) {
  if (typeof value === "string") return value.startsWith("@") ? colour(value.slice(1)) : value;
  if (Array.isArray(value)) return value.map((item) => paint(item, colour));
  if (value && typeof value === "object") {
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, paint(item, colour)]));
  }
  return value;
}
