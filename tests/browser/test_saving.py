"""From the workbench to a link, and from the link to the same numbers for someone else."""

import re
from typing import Any

from playwright.sync_api import Page, expect

from tests.browser.drawing import drawn
from tests.browser.driving import CHARTS, Opener, change, numbers, rest
from tests.browser.watching import Watch

TITLE = 'Plan <b>"A"</b> 👩‍💻'


def save(page: Page, title: str = TITLE) -> None:
    page.get_by_label("Title").fill(title)
    page.get_by_label("Notes").fill("for <i>May</i>")
    page.get_by_role("button", name="Save link").click()
    expect(page).to_have_url(re.compile("/c/[a-z0-9]{26}$"))
    drawn(page, CHARTS)


def test_a_link_gives_the_same_numbers_to_anyone(visit: Opener) -> None:
    page = visit(drawing=False)
    rest(page)
    change(page, "prompt", "4321")
    before = numbers(page)
    save(page)
    expect(page.get_by_role("heading", level=1)).to_have_text(TITLE)
    assert numbers(page) == before
    other = visit(page.url, drawing=False)
    drawn(other, CHARTS)
    assert numbers(other) == before
    expect(other.locator("#edit-token")).to_have_count(0)
    expect(other.get_by_text("for <i>May</i>").first).to_be_visible()
    other.get_by_role("link", name="Open in the workbench").click()
    rest(other)
    assert numbers(other) == before
    assert "prompt=4321" in other.url


def test_the_edit_token_is_shown_once_and_works(visit: Opener, watch: Watch) -> None:
    watch.allow(403, 404)
    page = visit(drawing=False)
    rest(page)
    save(page)
    address, token = page.url, page.locator("#edit-token").inner_text()
    assert token not in address
    assert token not in page.evaluate("document.cookie")
    page.reload()
    expect(page.locator("#edit-token")).to_have_count(0)
    page.locator("#edit > summary").click()
    form = page.locator("form[action$='/edit']")
    form.get_by_label("Title").fill("Changed")
    form.locator("[name=edit_token]").fill("wrong")
    form.get_by_role("button", name="Change").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Forbidden")
    page.goto(address)
    page.locator("#edit > summary").click()
    form.get_by_label("Title").fill("Changed")
    form.locator("[name=edit_token]").fill(token)
    form.get_by_role("button", name="Change").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Changed")
    page.locator("#edit > summary").click()
    form.locator("[name=edit_token]").fill(token)
    form.get_by_role("button", name="Revoke the link").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("The link is revoked")
    page.goto(address)
    expect(page.get_by_role("heading", level=1)).to_have_text("Not Found")


CLIPBOARD: dict[str, Any] = {"permissions": ["clipboard-read", "clipboard-write"]}


def test_copying_takes_the_newest_address_and_says_what_it_did(visit: Opener) -> None:
    page = visit(drawing=False, **CLIPBOARD)
    rest(page)
    button = page.locator("[data-copy-link]")
    for tokens in ("2345", "3456"):
        change(page, "prompt", tokens)
        expect(button).to_have_text("Copy link")
        button.click()
        expect(button).to_have_text("Copied")
        copied = page.evaluate("navigator.clipboard.readText()")
        assert copied == page.url
        assert f"prompt={tokens}" in copied
    expect(button).to_have_text("Copy link")
    page.evaluate("() => { navigator.clipboard.writeText = () => Promise.reject(new Error('not allowed')); }")
    button.click()
    expect(button).to_have_text(re.compile("not allowed"))
    expect(button).to_have_text("Copy link")


def test_hasty_fingers_do_not_leave_copied_standing_for_good(visit: Opener) -> None:
    page = visit(drawing=False, **CLIPBOARD)
    rest(page)
    button = page.locator("[data-copy-link]")
    button.click()
    expect(button).to_have_text("Copied")
    button.click()
    expect(button).to_have_text("Copy link")


def test_the_secrets_can_be_copied_and_a_duplicate_has_its_own(visit: Opener) -> None:
    page = visit(drawing=False, **CLIPBOARD)
    rest(page)
    save(page, "One")
    first, token = page.url, page.locator("#edit-token").inner_text()
    page.get_by_role("button", name="Copy token").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == page.locator("#edit-token").inner_text()
    page.get_by_role("button", name="Copy link").click()
    expect(page.get_by_role("button", name="Copied").first).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == page.url
    page.get_by_role("button", name="Duplicate").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Copy of One")
    assert page.url != first
    assert page.locator("#edit-token").inner_text() != token
