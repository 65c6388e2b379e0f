"""Charts in the browser: the theme's colours, pictures to keep, and nothing of the library's own ways out."""

import re
from pathlib import Path
from urllib.parse import unquote

import pytest
from playwright.sync_api import Page, expect

from tests.browser.drawing import fitted
from tests.browser.driving import CHARTS, Opener, change, rest
from tests.browser.test_layout import assert_fits

PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"
WORDS = "(all) => all.map(({ textContent, title, dataset }) => `${textContent} ${title} ${dataset.title}`)"
WAYS_OUT = re.compile("share|cloud|edit chart|plotly", re.IGNORECASE)


@pytest.fixture
def page(visit: Opener) -> Page:
    opened = visit()
    rest(opened)
    return opened


def ink(page: Page) -> str:
    """The colour in which a chart draws what stands on the page as text."""
    colour: str = page.evaluate("document.getElementById('plot-batch').layout.font.color")
    return colour


def surface(page: Page) -> str:
    colour: str = page.evaluate("getComputedStyle(document.body).backgroundColor")
    return colour


def test_the_theme_cycles_stays_and_reaches_the_charts(page: Page) -> None:
    button = page.locator("#theme")
    light = (surface(page), ink(page))
    page.emulate_media(color_scheme="dark")
    expect(button).to_contain_text("system")
    assert surface(page) != light[0]
    assert ink(page) != light[1]
    page.emulate_media(color_scheme="light")
    assert (surface(page), ink(page)) == light
    seen = {}
    for theme in ("light", "dark", "system", "light", "dark"):
        button.click()
        expect(button).to_contain_text(theme)
        seen[theme] = (surface(page), ink(page))
    assert seen["system"] == seen["light"] != seen["dark"]
    page.reload()
    rest(page)
    expect(button).to_contain_text("dark")
    assert (surface(page), ink(page)) == seen["dark"]
    page.goto("/docs")
    assert surface(page) == seen["dark"][0]
    button.click()
    page.reload()
    expect(button).to_contain_text("system")


def test_every_chart_is_drawn_and_none_leads_to_the_librarys_own_services(page: Page) -> None:
    for chart in CHARTS:
        plot = page.locator(f"#plot-{chart}")
        expect(plot.locator(".main-svg").first).to_be_visible()
        assert not page.evaluate(
            "(id) => JSON.stringify(document.getElementById(id).layout).includes('\"@')", f"plot-{chart}"
        )
        assert plot.evaluate("(node) => node.querySelectorAll('.trace, .points path, .bars path').length") > 0
    page.locator("#plot-roofline").hover()
    page.locator("#plot-roofline .main-svg").first.dblclick(force=True)
    expect(page.locator(".modebar-btn")).to_have_count(0)
    assert page.locator("[id^=plot-] :is(a, button, input, [tabindex])").count() == 0
    for words in page.locator("a, button").evaluate_all(WORDS):
        assert not WAYS_OUT.search(words.replace("Save and share", "")), words


def download(page: Page, chart: str, kind: str, folder: Path) -> bytes:
    """What a chart's button gives. Chromium lets a tab have ten downloads without asking."""
    with page.expect_download() as caught:
        page.locator(f"#chart-{chart}").get_by_text(re.compile(f"^{kind}")).click()
    assert caught.value.suggested_filename == f"tokenroof-{chart}.{kind.lower()}"
    path = folder / caught.value.suggested_filename
    caught.value.save_as(path)
    return path.read_bytes()


def test_pictures_and_numbers_are_downloads_with_a_name(page: Page, tmp_path: Path) -> None:
    change(page, "prompt", "2000")
    for chart in CHARTS:
        title = page.locator(f"#chart-{chart}").get_by_role("heading").inner_text()
        text = unquote(download(page, chart, "SVG", tmp_path).decode())
        assert title in text
        assert "2,000 + 500 tokens" in text
        assert "formulas" in text
    picture = download(page, "roofline", "PNG", tmp_path)
    assert picture.startswith(PNG_SIGNATURE)
    assert int.from_bytes(picture[16:20], "big") == 2400
    assert b"2,000 + 500 tokens" in download(page, "memory", "CSV", tmp_path)
    assert b'"prompt_tokens":2000' in download(page, "memory", "JSON", tmp_path)


def test_hovering_tells_the_numbers_at_any_width(page: Page) -> None:
    page.locator("#plot-memory").scroll_into_view_if_needed()
    box = page.locator("#plot-memory .nsewdrag").first.bounding_box()
    assert box
    page.mouse.move(box["x"] + 20, box["y"] + box["height"] / 24)  # the first of twelve rows
    expect(page.locator("#plot-memory .hoverlayer")).to_contain_text("Card: 85.52 GB")
    for width in (400, 1600):
        page.set_viewport_size({"width": width, "height": 800})
        fitted(page)
        assert_fits(page, width)


EXTREMES = (
    "model=llama-3.1-70b&hw=rtx-4090&w=fp16",
    "model=llama-3.1-8b&hw=h100-sxm-80gb&prompt=1&out=1&batch=1",
    "model=llama-3.1-8b&hw=custom&hw_mem=1000000&hw_bw=1000000000&hw_bf16=1000000000&prompt=1&out=1&batch=1000000",
    "model=llama-3.1-8b&hw=custom&hw_mem=0.001&hw_bw=0.001&hw_bf16=0.000001&prompt=100000000&batch=1000000",
    "model=mistral-7b-v0.1&hw=l4&prompt=60000&batch=&units=gib",
)


def test_extremes_are_drawn_within_the_policy(visit: Opener) -> None:
    """Very large and very small tick labels are superscripts in Plotly, which it styles inline."""
    page = visit("/readyz")
    for query in EXTREMES:
        page.goto(f"/?{query}")
        rest(page)
        expect(page.locator("[id^=plot-] svg tspan[style]")).to_have_count(0)
