"""What htmx gets: the page's own results, headers that keep history and caches right."""

import pytest
from starlette.testclient import TestClient

from app.scenario.query import BY_NAME
from tests.features.asking import FULL, PARTIAL, SCENARIOS, address, page, partial, results_of
from tests.features.dom import parse


@pytest.mark.parametrize("name", SCENARIOS)
@pytest.mark.parametrize("units", ["gb", "gib"])
def test_the_fragment_is_part_of_the_page(reader: TestClient, name: str, units: str) -> None:
    path = address(SCENARIOS[name], units=units)
    fragment = partial(reader, path)
    assert fragment.status_code == 200
    assert "<html" not in fragment.text
    results = results_of(fragment.text).strip()
    assert len(results) > 10_000
    assert results in reader.get(path).text


def test_the_fragment_of_an_ignored_name_is_part_of_the_page(reader: TestClient) -> None:
    path = address(colour="red")
    results = results_of(partial(reader, path).text).strip()
    assert results in reader.get(path).text
    assert "colour" in results


def test_the_fragment_clears_every_message(reader: TestClient) -> None:
    swapped = [node for node in parse(partial(reader, address()).text) if "hx-swap-oob" in node.attributes]
    messages = [node for node in swapped if node["id"].startswith("msg-")]
    assert {node["id"] for node in messages} == {f"msg-{name}" for name in (*BY_NAME, "general")}
    assert all(node.text == "" for node in messages)


def test_the_fragment_brings_the_json_twin_up_to_date(reader: TestClient) -> None:
    tree = parse(partial(reader, address(prompt="2000")).text)
    assert "prompt=2000" in tree.id("twin-head")["href"]
    assert tree.id("twin-foot").one("a")["href"] == tree.id("twin-head")["href"]


def test_the_page_has_a_place_for_all_that_a_fragment_swaps(reader: TestClient) -> None:
    tree = page(reader, "/")
    for path in (address(), address(prompt="0")):
        for node in parse(partial(reader, path).text):
            if "hx-swap-oob" in node.attributes:
                assert tree.id(node["id"]).tag == node.tag


@pytest.mark.parametrize(
    "headers",
    [
        {},
        FULL,
        {"HX-Request": "true"},
        {"HX-Request-Type": "partial"},
        {"HX-Request": "false", "HX-Request-Type": "partial"},
        {**PARTIAL, "HX-Request-Type": "full", "HX-History-Restore-Request": "true"},
    ],
)
def test_whoever_does_not_ask_for_a_part_gets_the_page(reader: TestClient, headers: dict[str, str]) -> None:
    answer = reader.get(address(), headers=headers)
    assert answer.text == reader.get(address()).text
    assert "<html" in answer.text
    assert "hx-push-url" not in answer.headers


@pytest.mark.parametrize("path", ["/", address(), address(prompt="0"), address(units="gib")])
@pytest.mark.parametrize("headers", [{}, PARTIAL])
def test_both_forms_vary_by_who_asks(reader: TestClient, path: str, headers: dict[str, str]) -> None:
    vary = {part.strip().lower() for part in reader.get(path, headers=headers).headers["vary"].split(",")}
    assert "hx-request" in vary


@pytest.mark.parametrize("path", [address(), address(prompt="0")])
def test_fragments_are_never_cached(reader: TestClient, path: str) -> None:
    assert partial(reader, path).headers["cache-control"] == "no-store"


def test_the_address_is_pushed_when_it_changes(reader: TestClient) -> None:
    pushed = partial(reader, address(prompt="2000"), HX_Current_URL="http://testserver/").headers["hx-push-url"]
    assert pushed.startswith("/?")
    assert "prompt=2000" in pushed
    again = partial(reader, pushed, HX_Current_URL=f"http://testserver{pushed}")
    assert "hx-push-url" not in again.headers
    other = partial(reader, pushed, HX_Current_URL=f"http://testserver{pushed.replace('2000', '3000')}")
    assert other.headers["hx-push-url"] == pushed


def test_the_pushed_address_carries_the_units_where_they_are_not_the_usual_ones(reader: TestClient) -> None:
    assert "units=gib" in partial(reader, address(units="gib")).headers["hx-push-url"]
    assert "units" not in partial(reader, address(units="gb")).headers["hx-push-url"]


def test_a_refusal_pushes_no_address_and_touches_no_number(reader: TestClient) -> None:
    answer = partial(reader, address(prompt="many"))
    assert answer.status_code == 422
    assert "hx-push-url" not in answer.headers
    swapped = parse(answer.text)
    assert all("hx-swap-oob" in node.attributes for node in swapped.children if not isinstance(node, str))
    assert swapped.id("msg-prompt").text
    assert swapped.id("stale").text


def test_mending_the_input_takes_the_note_away(reader: TestClient) -> None:
    assert parse(partial(reader, address()).text).id("stale").text == ""
