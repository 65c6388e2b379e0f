"""The golden corpus: a sample of it as recorded, and that a changed number or label would be seen."""

import copy
import platform
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from golden.asking import ASSETS, answers, shown
from golden.corpus import Case, cases, sample
from golden.digests import digests, parts_of_json, parts_of_page
from golden.recorded import differences, record, recorded_digests, report

EVERY = cases()
KINDS = sorted({case.id.partition("/")[0] for case in EVERY})
ANSWER: dict[str, Any] = {
    "verdict": {"sentence": "Fits: 16.1 GB of 80 GB"},
    "decode": {"ceiling_s": 0.1, "bound": "memory_bandwidth"},
    "catalog_version": "abc",
}
PAGE = (
    '<main><h1>Decode</h1><table><tr><td>TPOT<td class="n"><b>4</b>.53 ms</table><a href="/doors?tp=2">Doors</a>'
    '<input name="tp" value="2"><script src="/assets/app.1a2b.js"></script>'
    '<script type="application/json">[{"y":[1.5,2]}]</script></main>'
)


@pytest.fixture(scope="module")
def answered(assets_dir: Path) -> Mapping[str, Mapping[str, str]]:
    assert assets_dir == ASSETS
    return answers(sample(EVERY))


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="the last bits are those of an x86-64")
@pytest.mark.parametrize("kind", KINDS)
def test_a_sample_is_answered_as_recorded(answered: Mapping[str, Mapping[str, str]], kind: str) -> None:
    recorded = recorded_digests()
    found = {id_: parts for id_, parts in answered.items() if id_.partition("/")[0] == kind}
    assert found
    told = differences({id_: recorded[id_] for id_ in found if id_ in recorded}, found)
    assert not told, "\n".join(report(told))


def test_every_case_is_recorded_under_an_id_of_its_own() -> None:
    ids = [case.id for case in EVERY]
    assert len(set(ids)) == len(ids)
    assert list(recorded_digests()) == ids
    assert not any(" " in id_ or "=" in id_.partition("?")[0] for id_ in ids)


def became(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, str]:
    return differences({"a/1": digests(before)}, {"a/1": digests(after)}).get("a/1", {})


def changed(path: str, value: Any) -> dict[str, str]:
    after = copy.deepcopy(ANSWER)
    part, _, key = path.partition(".")
    if key:
        after[part][key] = value
    else:
        after[part] = value
    return became(parts_of_json(ANSWER), parts_of_json(after))


def test_the_last_bit_of_a_number_and_a_word_are_told_apart() -> None:
    assert changed("decode.ceiling_s", 0.1) == {}
    assert changed("catalog_version", "def") == {}
    assert changed("decode.ceiling_s", 0.1 + 2**-56) == {"decode": "NUMBERS changed"}
    assert changed("decode.ceiling_s", 1) == {"decode": "NUMBERS changed"}
    assert changed("decode.bound", "bandwidth") == {"decode": "words changed"}
    assert changed("verdict.sentence", "It fits with 16.1 GB of 80 GB") == {"verdict": "words changed"}
    assert changed("verdict.sentence", "Fits: 16.2 GB of 80 GB") == {"verdict": "NUMBERS changed"}
    assert changed("verdict.more", None) == {"verdict": "NUMBERS changed"}
    assert changed("more", 1) == {"more": "is new"}


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("<h1>Decode</h1>", '<div class="wide">\n <h1 id="x">Decode</h1></div>', {}),
        ("app.1a2b.js", "app.9f9f.js", {}),
        ("TPOT", "Time per output token", {"text": "words changed"}),
        ("<b>4</b>.53", "<b>4</b>.54", {"text": "NUMBERS changed"}),
        ("/doors?", "/what-if?", {"links": "words changed"}),
        ("?tp=2", "?tp=4", {"links": "NUMBERS changed"}),
        ('value="2"', 'value="4"', {"fields": "NUMBERS changed"}),
        ('"y"', '"x"', {"charts": "NUMBERS changed"}),
        ("1.5", "1.25", {"charts": "NUMBERS changed"}),
    ],
)
def test_markup_of_a_page_says_nothing_and_what_is_shown_does(old: str, new: str, told: dict[str, str]) -> None:
    assert old in PAGE
    assert became(parts_of_page(PAGE), parts_of_page(PAGE.replace(old, new))) == told


def test_what_is_written_is_read_back_and_a_case_that_comes_or_goes_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("golden.recorded.DIGESTS", tmp_path / "digests.txt")
    found = {"a/1": digests(parts_of_json(ANSWER)), "b/2?x=1": digests(parts_of_page(PAGE))}
    record(found)
    assert recorded_digests() == found
    told = differences(recorded_digests(), {"a/1": found["a/1"], "c": found["a/1"]})
    assert told == {"b/2?x=1": {"all": "is asked no more"}, "c": {"all": "is new"}}


def test_an_answer_is_shown_leaf_by_leaf(assets_dir: Path) -> None:
    assert assets_dir == ASSETS
    lines = shown(Case("x", "/api/v1/evaluate?model=llama-3.1-8b&hw=h100-sxm-80gb"))
    assert "http: 200" in lines
    assert 'decode.bound: "memory_bandwidth"' in lines
    assert any(line.startswith("decode.ceiling_s: 0x1.") for line in lines)
