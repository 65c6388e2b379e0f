"""Globs and expressions mean what they say, and what is not understood is refused."""

import re
import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.checkpoint.quantization.patterns import PatternError, expression, glob

NAMES = [
    "model.layers.0.self_attn.q_proj",
    "model.layers.12.mlp.gate_proj",
    "model.layers.12.mlp.experts.0.gate_proj",
    "model.layers.3.mlp.shared_experts.up_proj",
    "lm_head",
    "mtp.layers.0.mlp.gate_up_proj",
    "",
    "mlp.gate",
]
EXPRESSIONS = [
    ".*self_attn.*",
    ".*mlp\\.(gate|up|gate_up|down)_proj.*",
    ".*mtp\\..*proj$",
    ".*lm_head.*",
    "model.layers.[0-9]+.mlp.*",
    "model\\.layers\\.\\d\\d?\\.mlp",
    "^model.*proj$",
    "(?:lm|mm)_head",
    "[^.]*$",
    ".*\\.experts\\.\\w+\\.(gate|down)_proj$",
    "a*|lm.*?d",
    "\\S+q_proj",
    "[\\d]*lm_head|mlp.gate$",
]


@pytest.mark.parametrize("pattern", EXPRESSIONS)
@pytest.mark.parametrize("name", NAMES)
def test_an_expression_matches_what_pythons_own_does(pattern: str, name: str) -> None:
    # A box around a name counts as well, so that patterns to the end are asked about each box.
    steps = name.split(".")
    boxes = [".".join(steps[: i + 1]) for i in range(len(steps))]
    asked = boxes if pattern.endswith("$") else [name]
    assert expression(pattern).matches(name) == any(re.match(pattern, box) is not None for box in asked)


@given(st.text("ab.*?", max_size=8), st.text("ab.", max_size=8))
def test_a_glob_means_a_name_or_a_box_around_it(pattern: str, name: str) -> None:
    said = re.compile("".join({"*": ".*", "?": "."}.get(c, re.escape(c)) for c in pattern))
    ends = [place for place, letter in enumerate(name) if letter == "."] + [len(name)]
    assert glob(pattern).matches(name) == any(said.fullmatch(name[:end]) is not None for end in ends)


@given(st.text("ab|()*+?.[]^$\\-d", max_size=10), st.text("ab", max_size=6))
def test_an_expression_is_understood_as_python_does_or_refused(pattern: str, name: str) -> None:
    try:
        ours = expression(pattern)
    except PatternError:
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # a set inside a set, which a later Python may read otherwise
        theirs = re.compile(pattern)
    assert ours.matches(name) == (theirs.match(name) is not None)


@pytest.mark.parametrize(
    "pattern",
    [
        "(?!a)",
        "(?=a)",
        "(?P<n>a)",
        "a{2}",
        "(a",
        "a)",
        "[a",
        "*a",
        "\\1",
        "\\",
        "a" * 401,
        "a{,3}",
        "a$b",
        "\\Qa",
        "[[:alpha:]]",
        "a**",
    ],
)
def test_what_is_not_understood_is_refused(pattern: str) -> None:
    with pytest.raises(PatternError) as caught:
        expression(pattern)
    assert str(caught.value).endswith(".")


def test_a_long_glob_is_refused() -> None:
    with pytest.raises(PatternError):
        glob("*" * 401)
