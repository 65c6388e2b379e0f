"""Benchmarks in a browser: drawn under the policy, used in the workbench and dropped there; dropped files are read."""

import json
import re
from typing import Any

from playwright.sync_api import Page, expect

from tests.browser.axe import findings_in_both_themes
from tests.browser.driving import Opener, field, following, rest
from tests.browser.test_layout import PHONE
from tests.features.benchmarks.files import FOLDER, contents

SWEEP = contents("vllm_serve_appended.jsonl").decode()
FEW = "".join(SWEEP.splitlines(keepends=True)[::3])
DROP = """(files) => {
  const dataTransfer = new DataTransfer();
  for (const [name, text] of Object.entries(files)) dataTransfer.items.add(new File([text], name));
  const event = new DragEvent("drop", { dataTransfer, bubbles: true, cancelable: true });
  document.getElementById("bench").dispatchEvent(event);
}"""


def measured(page: Page, figure: str) -> Any:
    """What is drawn as measured."""
    chart = f"document.getElementById('plot-bench-{figure}')"
    expect(page.locator(f"#plot-bench-{figure} .main-svg").first).to_be_attached()
    return page.evaluate(f"Array.from({chart}.data.find(({{name}}) => name === 'Measured').y)")


def test_a_pasted_sweep_is_drawn_and_its_fit_used_and_dropped_in_the_workbench(visit: Opener) -> None:
    page = visit("/benchmarks?model=llama-3.1-8b&hw=h100-sxm-80gb&w=bf16")
    field(page, "text").fill(FEW)
    field(page, "name").fill("Night run")
    page.get_by_role("button", name="Lay it over the prediction").click()
    expect(page.locator("#fit-title")).to_contain_text("3 runs of vllm bench serve")
    told = [json.loads(line) for line in FEW.splitlines()]
    assert measured(page, "tpot_s") == [run["median_tpot_ms"] * 1e-3 for run in told]
    assert len(measured(page, "ttft_s")) == len(told)
    assert findings_in_both_themes(page) == {}
    page.get_by_role("link", name="Use this calibration in the workbench").click()
    rest(page)
    expect(page.get_by_label("Calibrated by")).to_have_value("Night run")
    expect(page.locator("#results")).to_contain_text("your calibration «Night run»")
    with following(page):
        page.get_by_label("Calibrated by").select_option("")
    expect(page.locator("#results")).not_to_contain_text("Night run")
    assert "cal_decode=" not in page.url


def test_dropped_files_are_all_read_and_too_many_bytes_are_told(visit: Opener) -> None:
    page = visit("/benchmarks?model=llama-3.1-8b&hw=h100-sxm-80gb&w=bf16", **PHONE)
    expect(page.locator("#bench")).to_have_attribute("data-live", "true")
    page.evaluate(DROP, {"large.json": "x" * 2_097_153, "small.json": SWEEP.splitlines()[0]})
    expect(page.locator("#msg-text")).to_have_text("The file is larger than is read here.")
    expect(field(page, "text")).to_have_value("")
    wide = SWEEP.splitlines()[0]
    page.evaluate(DROP, {"one.json": wide, "two.json": contents("aiperf.json").decode()})
    expect(page.locator("#fit-title")).to_have_text(re.compile("2 runs of vllm bench serve, AIPerf"))
    assert len(measured(page, "tpot_s")) == 2
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["viewport"]["width"]


def test_chosen_files_are_read_without_script(visit: Opener) -> None:
    page = visit("/benchmarks?model=llama-3.1-8b&hw=h100-sxm-80gb&w=bf16", java_script_enabled=False)
    page.set_input_files("#f-file", [FOLDER / "vllm_serve.json", FOLDER / "aiperf.json"])
    page.get_by_role("button", name="Lay it over the prediction").click()
    expect(page.locator("#fit-title")).to_contain_text("2 runs of vllm bench serve, AIPerf")
    page.get_by_role("button", name="Keep it").click()
    expect(page.get_by_role("heading", name="Keep this edit token")).to_be_visible()
    token = page.locator("#edit-token").inner_text()
    page.get_by_text("With the edit token").click()
    page.get_by_role("textbox", name="Edit token").fill(token)
    page.get_by_role("button", name="Revoke the link").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("evoked")
