// Draws the figures of the page: JSON from the server, colours from the theme's tokens.
import { paintedFor } from "./palette.js";

const CONFIG = {
  displayModeBar: false, // its links have no names; our own buttons stand above each chart
  displaylogo: false,
  showSendToCloud: false,
  plotlyServerURL: "",
  responsive: true,
  doubleClick: "reset",
};
const NARROW = 400; // below it the legend keeps to what is drawn
const PICTURE = { png: { width: 1200, scale: 2 }, svg: { width: 1200, scale: 1 } };

let charts = new Map();

function read(root) {
  const data = root.querySelector("#chart-data");
  return data ? JSON.parse(data.textContent) : null;
}

function draw(chart) {
  const node = document.getElementById(`plot-${chart.id}`);
  if (!node) return;
  const figure = paintedFor(null, chart.figure);
  figure.layout.font.family = getComputedStyle(document.body).fontFamily;
  if (node.clientWidth < NARROW) {
    for (const trace of figure.data) if (trace.visible === "legendonly") trace.showlegend = false;
  }
  if (matchMedia("(pointer: fine)").matches) figure.layout.dragmode = "zoom";
  window.Plotly.react(node, figure.data, figure.layout, CONFIG);
}

export function drawCharts(root) {
  const found = read(root);
  if (!found || !window.Plotly) return;
  charts = new Map(found.map((chart) => [chart.id, chart]));
  for (const chart of found) draw(chart);
  for (const button of root.querySelectorAll("[data-picture]")) {
    button.hidden = false;
    if (button.dataset.live) continue;
    button.dataset.live = "true";
    button.addEventListener("click", () => download(button.dataset.chart, button.dataset.picture));
  }
}

export function redrawForTheme() {
  for (const chart of charts.values()) draw(chart);
}

// A picture is always light, and carries its title, its inputs and its versions.
async function download(id, format) {
  const chart = charts.get(id);
  const figure = paintedFor("light", chart.figure);
  const { layout } = figure;
  const height = layout.height + 96;
  layout.font.family = getComputedStyle(document.body).fontFamily;
  layout.paper_bgcolor = "#ffffff";
  layout.height = height;
  layout.margin = { ...layout.margin, t: (layout.margin.t ?? 34) + 44, b: (layout.margin.b ?? 48) + 52 };
  layout.title = { text: chart.title, x: 0.01, xanchor: "left", y: 0.985, yanchor: "top", font: { size: 16 } };
  const day = new Date().toISOString().slice(0, 10);
  layout.annotations = [
    ...(layout.annotations ?? []),
    {
      text: `${escapeText(chart.caption)} · ${day}`,
      xref: "paper", yref: "paper", x: 0, xanchor: "left", y: 0, yanchor: "top", yshift: -52,
      showarrow: false, font: { size: 10 }, align: "left",
    },
  ];
  const url = await window.Plotly.toImage({ data: figure.data, layout }, { format, height, ...PICTURE[format] });
  const link = document.createElement("a");
  link.href = url;
  link.download = `tokenroof-${id}.${format}`;
  link.click();
}

// Plotly reads a few tags, templates and formulas in text; what a person typed must stay text.
function escapeText(text) {
  const signs = { "&": "&amp;", "<": "&lt;", ">": "&gt;", "$": "&#36;", "%": "&#37;" };
  return text.replace(/[&<>$%]/g, (sign) => signs[sign]);
}
