"""A calibration of one's own on the pages: seen beside the numbers, carried by the form, and dropped without script."""

from collections.abc import Mapping

import pytest
from starlette.testclient import TestClient

from tests.features.asking import address, items_of, json_of, page, partial, results_of, twin_of
from tests.features.dom import Node, parse

OURS: Mapping[str, str] = {
    "cal_name": "Our H100s",
    "cal_decode": "1.123456",
    "cal_decode_low": "0.9",
    "cal_decode_high": "1.2",
    "cal_decode_n": "12",
    "cal_prefill": "0.9",
    "cal_prefill_n": "1",
}
HOSTILE = '"><script>alert(1)</script>{{ 7 * 7 }}'


def sent(tree: Node) -> dict[str, str]:
    """What a browser without script sends when the form is submitted as it stands."""
    found: dict[str, str] = {}
    for node in tree.id("scenario"):
        name = node.attributes.get("name")
        if not name:
            continue
        if node.tag == "select":
            found[name] = node.one("option", selected="")["value"]
        elif node.tag == "textarea":
            found[name] = node.raw
        elif node.attributes.get("type") != "checkbox" or "checked" in node.attributes:
            found[name] = node["value"]
    return found


def test_a_page_without_one_shows_nothing_of_it(reader: TestClient) -> None:
    tree = page(reader, address())
    assert "hidden" in tree.id("calibration").attributes
    assert {name: value for name, value in sent(tree).items() if name.startswith("cal_")} == dict.fromkeys(
        (*OURS, "cal_prefill_low", "cal_prefill_high"), ""
    )
    assert "cal_" not in twin_of(tree)


def test_it_is_seen_with_its_factors_and_named_at_the_numbers(reader: TestClient) -> None:
    tree = page(reader, address(OURS))
    shown = tree.id("calibration")
    assert "hidden" not in shown.attributes
    assert shown.one("label").text == "Calibrated by"
    assert shown.one("option", selected="").text == "Our H100s"
    assert tree.id("hint-cal_name").text == "«Our H100s»: decode × 1.12 (12 points), prefill × 0.9 (1 point)"
    results = tree.id("results").text
    assert "calibrated by «Our H100s»: decode × 1.12 (12 points), prefill × 0.9 (1 point)" in results
    assert "your calibration «Our H100s», decode 12 points, prefill 1 point" in results


def test_the_form_carries_it_as_it_is(reader: TestClient) -> None:
    tree = page(reader, address(OURS))
    fields = sent(tree)
    assert {name: value for name, value in fields.items() if name.startswith("cal_") and value} == OURS
    assert twin_of(page(reader, address(fields))) == twin_of(tree)
    assert items_of(twin_of(tree)).items() >= OURS.items()


def test_another_choice_drops_it_without_script(reader: TestClient) -> None:
    tree = page(reader, address(OURS))
    (other,) = (o for o in tree.id("f-cal_name").all("option") if "selected" not in o.attributes)
    assert (other["value"], other.text) == ("", "published measurements alone")
    dropped = page(reader, address({**sent(tree), "cal_name": other["value"]}))
    assert twin_of(dropped) == twin_of(page(reader, address()))
    assert "hidden" in dropped.id("calibration").attributes


def test_a_fragment_follows_the_choice(reader: TestClient) -> None:
    with_it, without = (partial(reader, address({**OURS, "cal_name": name})).text for name in ("Our H100s", ""))
    assert "Our H100s" in with_it
    assert results_of(without) == results_of(partial(reader, address()).text)


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"cal_name": "", "prompt": "x"}, "prompt"),
        ({"cal_name": "\u202e"}, "cal_name"),
        ({"cal_decode": "much"}, "cal_decode"),
        ({"cal_decode": "-1"}, "cal_decode"),
        ({"cal_decode": "nan"}, "cal_decode"),
        ({"cal_decode": "1e999"}, "cal_decode"),
        ({"cal_decode_high": ""}, "cal_decode_high"),
        ({"cal_decode_low": "1.1"}, "cal_decode_low"),
        ({"cal_decode_high": "0.5"}, "cal_decode_high"),
        ({"cal_decode_n": "many"}, "cal_decode_n"),
        ({"cal_prefill_n": ""}, "cal_prefill_n"),
        ({"cal_prefill_low": "0.5"}, "cal_prefill_high"),
    ],
    ids=str,
)
def test_what_is_wrong_is_told_and_what_came_stays(reader: TestClient, changes: Mapping[str, str], name: str) -> None:
    asked = {**OURS, **changes}
    tree = page(reader, address(asked), 422)
    told = [n["id"] for n in tree if n.attributes.get("id", "").startswith("msg-") and n.text]
    assert told == [f"msg-{name}"]
    assert "hidden" not in tree.id("calibration").attributes
    assert {key: sent(tree)[key] for key in asked} == asked
    swapped = parse(partial(reader, address(asked)).text)
    assert swapped.id(f"msg-{name}").text == tree.id(f"msg-{name}").text


def test_a_wrong_one_can_be_dropped_too(reader: TestClient) -> None:
    fields = sent(page(reader, address({**OURS, "cal_decode": "much"}), 422))
    assert twin_of(page(reader, address({**fields, "cal_name": ""}))) == twin_of(page(reader, address()))


@pytest.mark.parametrize("name", OURS)
def test_hostile_text_stays_text(reader: TestClient, name: str) -> None:
    path = address({**OURS, name: HOSTILE})
    for text in (reader.get(path).text, partial(reader, path).text):
        assert "<script>alert" not in text
        assert "49" not in text.partition("alert(1)")[2][:40]


def test_a_hostile_name_is_shown_as_it_was_typed(reader: TestClient) -> None:
    tree = page(reader, address({**OURS, "cal_name": HOSTILE}))
    assert f"calibrated by «{HOSTILE}»" in tree.id("results").text
    assert sent(tree)["cal_name"] == HOSTILE
    assert json_of(reader, twin_of(tree))["scenario"]["calibration"]["name"] == HOSTILE


@pytest.mark.parametrize("path", ["/learn", "/optimizations"])
def test_other_pages_keep_it(reader: TestClient, path: str) -> None:
    query = address(OURS).partition("?")[2]
    back = [
        a["href"] for a in page(reader, f"{path}?{query}").all("a") if a.attributes.get("href", "").startswith("/?")
    ]
    kept = [link for link in back if items_of(link).items() >= OURS.items()]
    assert kept


def test_every_lever_keeps_it(reader: TestClient) -> None:
    tree = page(reader, address(OURS))
    links = [a["href"] for a in tree.id("results").all("a") if "undo=" in a.attributes.get("href", "")]
    assert links
    assert all(items_of(link).items() >= OURS.items() for link in links)
