"""The stylesheet read out of the plotly.js bundle, against small bundles and against what a browser sees."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, sync_playwright

from app.settings import ROOT
from app.web.asset_build import FEWEST_RULES, PlotlyRulesNotFoundError, read_rules, stylesheet

BUNDLE = ROOT / "node_modules/plotly.js-basic-dist-min/plotly-basic.min.js"
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
LOOP = 'for(k in R)s=k.replace(/^,/," ,").replace(/X/g,".plot .area").replace(/Y/g,".note"),D.addStyleRule(s,R[k])'
PADDING = "".join(f'"X .r{number}":"top:{number}px;",' for number in range(FEWEST_RULES))

CSSOM = "id => [...document.getElementById(id).sheet.cssRules].map(rule => rule.cssText)"


def test_selectors_are_expanded_and_the_order_is_that_of_insertion_at_the_top() -> None:
    bundle = f"""var a={{b:1}},R={{{PADDING}"X,X div":'font:"A";',Y:"top:0;","Y p":"content:\\"\\\\2014\\";"}};{LOOP}"""
    rules = read_rules(bundle)
    assert rules[:3] == [
        (".note p", 'content:"\\2014";'),
        (".note", "top:0;"),
        (".plot .area,.plot .area div", 'font:"A";'),
    ]
    assert len(rules) == FEWEST_RULES + 3
    assert '\n.note p{content:"\\2014";}\n.note{top:0;}\n' in stylesheet(bundle)


@pytest.mark.parametrize(
    ("bundle", "reason"),
    [
        ("var nothing={}", "the loop"),
        (LOOP, "the object"),
        (f'var R={{"X a":"top:0;"}};{LOOP}', "only 1 of at least"),
        (f"var R={{{PADDING}X:call()}};{LOOP}", r"unknown form, 'X:call"),
    ],
)
def test_a_bundle_of_another_form_is_refused(bundle: str, reason: str) -> None:
    with pytest.raises(PlotlyRulesNotFoundError, match=reason):
        stylesheet(bundle)


@pytest.fixture
def page() -> Iterator[Page]:
    if CHROMIUM is None:
        pytest.skip("NO CHROMIUM ON THIS MACHINE: plotly.css was not compared with what a browser sees")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser.new_page()
        browser.close()


@pytest.mark.browser
def test_the_sheet_equals_what_plotly_injects(page: Page, tmp_path: Path) -> None:
    bundle = BUNDLE.read_text()
    ours = tmp_path / "plotly.css"
    ours.write_text(stylesheet(bundle))
    page.set_content(f"<style id=ours>{ours.read_text()}</style>")
    page.evaluate(bundle)
    injected = page.evaluate(CSSOM, "plotly.js-style-global")
    assert page.evaluate("[...document.querySelectorAll('style')].map(style => style.id)") == [
        "ours",
        "plotly.js-style-global",
    ], "a second injected style element would need a sheet of its own"
    assert page.evaluate(CSSOM, "ours") == injected
    assert len(injected) >= FEWEST_RULES, json.dumps(injected)
