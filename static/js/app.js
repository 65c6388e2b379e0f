// Wires the page: each concern is a module; this file only says when they run.
import { drawCharts, redrawForTheme } from "./charts.js";
import { setUpPickers } from "./picker.js";
import { setUpSliders } from "./slider.js";
import { setUpCopying } from "./copying.js";
import { setUpDropping } from "./dropping.js";
import { setUpFeedback } from "./feedback.js";
import { setUpThemeButton } from "./theme_button.js";

function bring(root) {
  setUpPickers(root);
  setUpSliders(root);
  setUpCopying(root);
  setUpDropping(root);
  drawCharts(root);
}

setUpFeedback();
setUpThemeButton(redrawForTheme);
bring(document);

// A swap brings new data, and after Back a new body: what is set up already is left alone.
document.addEventListener("htmx:after:swap", () => {
  setUpThemeButton(redrawForTheme);
  bring(document);
});
