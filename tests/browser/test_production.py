"""The page of the published deployment: nothing for axe to find, and one way to scroll on a phone."""

from tests.browser.axe import STILL, findings_in_both_themes
from tests.browser.driving import Opener
from tests.browser.test_layout import PHONE, assert_phones_have_room


def test_axe_finds_nothing_and_a_phone_scrolls_one_way(visit: Opener) -> None:
    page = visit("/readyz", **STILL, **PHONE)
    assert_phones_have_room(page, "/production")
    assert findings_in_both_themes(page) == {}


def test_it_opens_in_the_workbench(visit: Opener) -> None:
    page = visit("/production")
    page.get_by_role("link", name="Open it in the workbench").click()
    assert page.locator("#f-pd_hw").input_value() == "h800-sxm-80gb"
    assert page.locator("#f-dp").input_value() == "144"
