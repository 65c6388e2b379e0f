"""How the data files name a value in a scrape: a metric, one of its series, or a number in a label; and sums of them.

    name                    the samples of a metric
    name{label=value}       those of them whose label has this value
    name[label]             the number that a label holds, as in the constant metrics that describe a configuration

A candidate joins such selectors with ` + `, or with ` × `, and has at most one ` ÷ `.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

_FORM = re.compile(r"([^\s\[\]{}]+)(?:\{(\w+)=([^{}]*)\})?(?:\[(\w+)\])?")


@dataclass(frozen=True, slots=True)
class Selector:
    """One metric; of it the series with `where` (a label and its value), of these the number in `label`."""

    name: str
    where: tuple[str, str] | None = None
    label: str | None = None

    def shown(self, name: str) -> str:
        """For people, with the `name` under which the metric was met: a label speaks for itself."""
        if self.label is not None:
            return self.label
        return f"{name}{{{'='.join(self.where)}}}" if self.where is not None else name


@dataclass(frozen=True, slots=True)
class Candidate:
    """Selectors that give a value together: those `above` joined by `joint`, divided by those `below` if any."""

    above: tuple[Selector, ...]
    below: tuple[Selector, ...] = ()
    joint: str = ""

    @property
    def selectors(self) -> tuple[Selector, ...]:
        """All of them."""
        return self.above + self.below

    def shown(self, names: Mapping[Selector, str]) -> str:
        """For people, with the name under which each selector's metric was met."""

        def side(selectors: tuple[Selector, ...]) -> str:
            return f" {self.joint} ".join(each.shown(names[each]) for each in selectors)

        if not self.below:
            return side(self.above)
        above, below = side(self.above), side(self.below)
        if self.joint == "+" and len(self.above) > 1:
            above = f"({above})"
        return f"{above} ÷ {f'({below})' if len(self.below) > 1 else below}"


def parse_selector(text: str) -> Selector:
    """The selector that `text` stands for.

    Raises:
        ValueError: it is of none of the forms.
    """
    if (match := _FORM.fullmatch(text)) is None:
        raise ValueError(f"not a selector: {text!r}")
    name, where, value, label = match.groups()
    return Selector(name, (where, value) if where is not None else None, label)


def parse_candidate(text: str) -> Candidate:
    """The candidate that `text` stands for.

    Raises:
        ValueError: a selector is malformed, or sums and products are mixed.
    """
    above, division, below = text.partition(" ÷ ")
    joints = {joint for joint in "+×" if f" {joint} " in text}
    if len(joints) > 1 or " ÷ " in below:
        raise ValueError(f"a candidate has sums or products, and one division at most: {text!r}")
    joint = joints.pop() if joints else ""

    def side(part: str) -> tuple[Selector, ...]:
        return tuple(parse_selector(each) for each in (part.split(f" {joint} ") if joint else [part]))

    return Candidate(side(above), side(below) if division else (), joint)
