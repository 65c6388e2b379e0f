"""Addresses of a comparison with one thing changed: the plain links of its page."""

from collections.abc import Sequence

from app.compare.plans import BINARY, Comparison
from app.web import urls


class Addresses:
    """Addresses of the same comparison with one thing changed; every scenario in them is written out."""

    def __init__(self, comparison: Comparison) -> None:
        self._asked = comparison
        self.texts = [plan.text for plan in comparison.plans]

    def of(
        self,
        texts: Sequence[str] | None = None,
        base: int | None = None,
        *,
        hides: bool | None = None,
        units: str | None = None,
    ) -> str:
        """The comparison, but for what is given; `base` is an index."""
        asked = self._asked
        return urls.compare(
            self.texts if texts is None else texts,
            (asked.base if base is None else base) + 1,
            hides_equal=asked.hides_equal if hides is None else hides,
            units=(BINARY if asked.binary else "gb") if units is None else units,
        )

    def without(self, index: int) -> str:
        """One plan taken away; the baseline stays the baseline, or is the first one again."""
        base = self._asked.base
        left = [text for place, text in enumerate(self.texts) if place != index]
        return self.of(left, 0 if base == index else base - (base > index))

    def swapped(self, index: int) -> str:
        """A plan and its left neighbour in each other's place."""
        texts = list(self.texts)
        texts[index - 1], texts[index] = texts[index], texts[index - 1]
        moved = {index: index - 1, index - 1: index}
        return self.of(texts, moved.get(self._asked.base, self._asked.base))

    def beside(self, index: int, text: str) -> str:
        """Another plan to the right of one."""
        base = self._asked.base
        return self.of([*self.texts[: index + 1], text, *self.texts[index + 1 :]], base + (base > index))
