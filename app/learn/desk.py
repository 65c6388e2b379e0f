"""Where a chapter's numbers are gathered: read from a case, worked out of each other, or quoted."""

from collections.abc import Mapping

from app.learn.case import Case
from app.learn.number import LiveNumber, Part, source_of, worked, written

EXACT = 15
"""Digits that write a count out in full."""


class Desk:
    """The numbers of one chapter by key, in the order in which they were put there."""

    def __init__(self, chapter: str) -> None:
        self._chapter = chapter
        self._numbers: dict[str, LiveNumber] = {}

    @property
    def numbers(self) -> Mapping[str, LiveNumber]:
        """All of them."""
        return self._numbers

    def read(self, key: str, label: str, case: Case, path: str, unit: str, digits: int = 4) -> LiveNumber:
        """The number at a path of a case's evaluation."""
        return self.given(key, label, case.at(path), unit, path, digits, case.key)

    def term(self, key: str, label: str, case: Case, value: float, at: str, unit: str, digits: int = 4) -> LiveNumber:
        """What a working of a case names as a term; `at` is the working's id and the term's symbol."""
        return self.given(key, label, value, unit, f"term {at}", digits, case.key)

    def given(
        self, key: str, label: str, value: float, unit: str, source: str, digits: int = 4, case: str = ""
    ) -> LiveNumber:
        """A number whose source is said in words."""
        return self._put(
            LiveNumber(f"{self._chapter}.{key}", label, value, unit, written(value, unit, digits), source, case)
        )

    def made(self, key: str, label: str, unit: str, *parts: Part, digits: int = 4) -> LiveNumber:
        """A number worked out of others."""
        value, text = worked(parts), ""
        text = written(value, unit, digits)
        return self._put(
            LiveNumber(f"{self._chapter}.{key}", label, value, unit, text, source_of(parts), parts=tuple(parts))
        )

    def shown(
        self, key: str, label: str, case: Case, path: str, unit: str, *parts: Part, digits: int = 4
    ) -> LiveNumber:
        """A number of a case's evaluation, with the sum that leads to it: a test works the sum out again."""
        value = case.at(path)
        return self._put(
            LiveNumber(
                f"{self._chapter}.{key}",
                label,
                value,
                unit,
                written(value, unit, digits),
                path,
                case.key,
                tuple(parts),
            )
        )

    def sum_of(self, key: str, label: str, value: float, unit: str, *parts: Part, digits: int = 4) -> LiveNumber:
        """A number that a formula of the calculators gave, with the sum that it stands for."""
        text = written(value, unit, digits)
        return self._put(
            LiveNumber(f"{self._chapter}.{key}", label, value, unit, text, source_of(parts), parts=tuple(parts))
        )

    def tokens(self, key: str, label: str, case: Case, field: str) -> LiveNumber:
        """Tokens of the scenario's workload, in full."""
        tokens = getattr(case.scenario.workload, field)
        return self.given(key, label, tokens, "tokens", f"scenario.workload.{field}", EXACT, case.key)

    def parameters(self, key: str, case: Case) -> LiveNumber:
        """Parameters that a token meets."""
        met = " that a token meets" if case.deployment.architecture.has_experts else ""
        return self.term(
            key, f"parameters{met}", case, case.inputs.n_params, "rule_of_thumb.prefill_flops N", "params", 3
        )

    def peak(self, key: str, case: Case, at: str) -> LiveNumber:
        """The rate of the arithmetic, all GPUs of a replica added up."""
        return self.term(key, "arithmetic a second", case, case.inputs.peak_flops_per_s, at, "FLOP/s")

    def bandwidth(self, key: str, case: Case, at: str) -> LiveNumber:
        """The rate of the memory, all GPUs of a replica added up."""
        return self.term(key, "memory bandwidth", case, case.inputs.bandwidth_bytes_per_s, at, "B/s")

    def _put(self, number: LiveNumber) -> LiveNumber:
        self._numbers[number.key] = number
        return number
