"""The part of YAML that manifests use."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.engine_io.launch.findings import CommandError
from app.engine_io.launch.frames import write_yaml
from app.engine_io.launch.plain_yaml import read_documents

TEXTS: dict[str, list[Any]] = {
    "a: 1\nb: true\nc: null\nd:\ne: ~": [{"a": "1", "b": True, "c": None, "d": None, "e": None}],
    "a:\n- x\n- y: 1\n  z: 2\n-\n  w: 3\nb: 1": [{"a": ["x", {"y": "1", "z": "2"}, {"w": "3"}], "b": "1"}],
    "a:\n  - - x\n    - y\n  - z": [{"a": [["x", "y"], "z"]}],
    "a: [x, 'y, z', \"w\\n\", {k: v, l: [1]}, ]": [{"a": ["x", "y, z", "w\n", {"k": "v", "l": ["1"]}]}],
    "a: [x,\n  y]\nb: 1": [{"a": ["x", "y"], "b": "1"}],
    "a: |\n  x\n    y\n\n  z\nb: 1": [{"a": "x\n  y\n\nz\n", "b": "1"}],
    "a: >-\n  x\n  y\n": [{"a": "x y"}],
    "- |\n  x\n- '--flag={\"a\": 1}'\n- it's # really": [["x\n", '--flag={"a": 1}', "it's"]],
    "# only\n---\na: http://x:80/#y # comment\n---\n\n---\n'b c': \"d: e\"": [{"a": "http://x:80/#y"}, {"b c": "d: e"}],
    "nvidia.com/gpu: 1\n\"a\": ''\n'it''s': 1": [{"nvidia.com/gpu": "1", "a": "", "it's": "1"}],
    "a: x\n  y\nb: 0x10": [{"a": "x y", "b": "0x10"}],
    "x": ["x"],
    "": [],
}
REFUSED = {
    "a: &x 1": "anchors",
    "a: *x": "anchors",
    "a: !x 1": "anchors",
    "a: [&x 1]": "anchors",
    "<<: {a: 1}": "merge",
    "a: 1\n<<: 2": "line 2",
    "a: 1\n  b: 2": "line 2: mapping values",
    "a:\n\t- x": "line 2: found character that cannot start",
    "a: 1\na: 2": "twice",
    "a: {b: 1, b: 2}": "twice",
    "a: [1": "expected ',' or",
    "a: [1}": "expected ',' or",
    "a: 'x": "unexpected end",
    'a: "\\q"': "escape",
    "a: 'x' y": "expected key",
    "a: " + "[" * 30 + "]" * 30: "deeper",
    "- " * 30 + "x": "deeper",
    "x\n" * 5000: "lines",
    "? [a]\n: b": "plain word",
    "a: \x01": "characters",
}


@pytest.mark.parametrize("text", TEXTS)
def test_a_text_and_what_it_holds(text: str) -> None:
    assert read_documents(text) == TEXTS[text]


@pytest.mark.parametrize("text", REFUSED, ids=range(len(REFUSED)))
def test_what_is_not_read_is_refused_with_its_line(text: str) -> None:
    with pytest.raises(CommandError, match=REFUSED[text]):
        read_documents(text)


WORDS = st.text(st.characters(categories=["L", "N", "P", "S", "Zs"], max_codepoint=126), min_size=1, max_size=20)
KEYS = st.from_regex(r"[a-z][a-zA-Z0-9_./-]{0,12}", fullmatch=True)
VALUES = st.recursive(
    WORDS | st.booleans() | st.none() | WORDS.map(lambda word: f"{word.strip() or 'x'}\nx\n"),
    lambda inner: (
        st.lists(inner.filter(lambda v: not isinstance(v, list) and not _block(v)), min_size=1, max_size=3)
        | st.dictionaries(KEYS, inner, min_size=1, max_size=3)
    ),
    max_leaves=8,
)


def _block(value: Any) -> bool:
    return isinstance(value, str) and "\n" in value


@given(st.dictionaries(KEYS, VALUES, min_size=1, max_size=4))
def test_what_is_written_is_read_back(value: dict[str, Any]) -> None:
    assert read_documents(write_yaml(value)) == [value]
