"""A chapter: its numbers, what is true of the reader's own case, and its charts."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from app.charts.figure import Chart
from app.learn.case import Case
from app.learn.number import LiveNumber
from app.web import urls

_NOTHING: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Chapter:
    """`numbers` by key; `says` are the conditions by which the prose chooses its sentences; `case` is its scenario."""

    id: str
    title: str
    numbers: Mapping[str, LiveNumber]
    case: Case
    says: Mapping[str, Any] = field(default_factory=lambda: _NOTHING)
    charts: Mapping[str, Chart] = field(default_factory=lambda: _NOTHING)

    @property
    def workbench(self) -> str:
        """The workbench with the chapter's scenario."""
        return urls.workbench(urls.scenario_items(self.case.scenario))
