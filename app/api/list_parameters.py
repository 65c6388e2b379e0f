"""What the documentation says of the query names that narrow and order a list, worked out of its columns."""

from collections.abc import Iterable
from typing import Any

from app.web.listing import PAGE, SEARCH, SORT, Bound, Column, Kind, asked_by

_ENDS = {None: "Only this", Bound.MIN: "Least", Bound.MAX: "Most"}


def list_parameters(columns: Iterable[Column[Any]], searched: str, rows_a_page: int | None = None) -> dict[str, Any]:
    """Additions to an operation in OpenAPI; `searched` are the facts in which words are looked for."""
    said = {
        SEARCH: f"Words that {searched} must all hold.",
        SORT: "Name of a column, with a minus before it for the largest first; what is unknown comes last.",
    }
    for column in columns:
        for name, bound in asked_by(column):
            unit = f", {column.unit}" if column.unit else ""
            choices = f": {', '.join(value for value, _ in column.choices)}" if column.choices else ""
            if column.kind is Kind.VIEW:
                said[name] = f"{column.label}{choices}; the first where it is left out."
                continue
            said[name] = f"{_ENDS[bound]} {_in_a_sentence(column.label)}{unit}{choices}."
    if rows_a_page is not None:
        said[PAGE] = f"Which {rows_a_page} rows, from page 1 on; beyond the last page there are none."
    return {
        "parameters": [
            {"name": name, "in": "query", "required": False, "description": text, "schema": {"type": "string"}}
            for name, text in said.items()
        ]
    }


def _in_a_sentence(label: str) -> str:
    """The label with a small first letter, unless it starts with an acronym (FP8)."""
    return label if label[:2].isupper() else label[:1].lower() + label[1:]
