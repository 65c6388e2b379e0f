"""The page of the published deployment: nothing for axe to find, and one way to scroll on a phone."""

from tests.browser.driving import Opener
from tests.browser.test_accessibility import STILL, findings_in_both_themes
from tests.browser.test_layout import OPEN_ALL, PHONE, assert_fits


def test_axe_finds_nothing_and_a_phone_scrolls_one_way(visit: Opener) -> None:
    page = visit("/production", **{**STILL, **PHONE})
    assert findings_in_both_themes(page) == {}
    page.evaluate(OPEN_ALL)
    for across in (320, 390):
        page.set_viewport_size({"width": across, "height": 800})
        assert_fits(page, across)


def test_it_opens_in_the_workbench(visit: Opener) -> None:
    page = visit("/production")
    page.get_by_role("link", name="Open it in the workbench").click()
    assert page.locator("#f-pd_hw").input_value() == "h800-sxm-80gb"
    assert page.locator("#f-dp").input_value() == "144"
