"""Query parameters in OpenAPI: those of a scenario as its fields declare them, those of a list out of its columns."""

from collections.abc import Sequence
from typing import Any

from app.scenario_query import FIELDS, MAX_CONFIG, SIZE_PATTERN, QueryField
from app.scenario_query import Kind as InputKind
from app.web.listing import PAGE, SEARCH, SORT, Bound, Column, Kind, asked_by
from app.web.listing_query import MOST_CHARACTERS

_ENDS = {None: "Only this", Bound.MIN: "Least", Bound.MAX: "Most"}


def scenario_parameters() -> list[dict[str, Any]]:
    """Every name that a scenario has in a query. An empty value stands for null or the default, hence it is allowed."""
    return [
        {
            "name": field.name,
            "in": "query",
            "required": field.name in ("model", "hw"),
            "description": _description(field),
            "schema": _schema(field),
        }
        | ({} if field.name in ("model", "hw") else {"allowEmptyValue": True})
        for field in FIELDS
    ]


def _description(field: QueryField) -> str:
    title = ", ".join(part for part in (field.label, field.unit) if part)
    empty = f" Empty: {field.ui.empty}." if field.ui.empty else ""
    return f"{title}. {field.description}{empty} Scenario field `{field.path}`."


def _schema(field: QueryField) -> dict[str, Any]:
    """What the text of the query may be: a size may have its unit, a document is JSON in a text."""
    if field.kind is InputKind.JSON:
        return {"type": "string", "contentMediaType": "application/json", "maxLength": MAX_CONFIG}
    if field.kind is InputKind.BYTES:
        text = {"type": "string", "pattern": SIZE_PATTERN, "examples": ["46.8 GiB", "500 MB"]}
        return {"anyOf": [dict(field.schema), text]}
    return dict(field.schema)


def list_parameters(columns: Sequence[Column[Any]], searched: str, rows_a_page: int | None = None) -> dict[str, Any]:
    """Additions to an operation in OpenAPI; `searched` are the facts in which words are looked for."""
    sortable = [column.name for column in columns if column.sortable]
    said: dict[str, tuple[str, dict[str, Any]]] = {
        SEARCH: (f"Words that {searched} must all hold.", {"type": "string", "maxLength": MOST_CHARACTERS}),
        SORT: (
            "Name of a column, with a minus before it for the largest first; what is unknown comes last.",
            {"type": "string", "enum": [*sortable, *(f"-{name}" for name in sortable)]},
        ),
    }
    for column in columns:
        for name, bound in asked_by(column):
            if bound is not None:
                schema: dict[str, Any] = {"type": "number", "minimum": column.least, "maximum": column.most}
            else:
                schema = {"type": "string", "enum": [value for value, _ in column.choices if value]}
            unit = f", {column.unit}" if column.unit else ""
            text = f"{_ENDS[bound]} {_in_a_sentence(column.label)}{unit}."
            if column.kind is Kind.VIEW:
                text = f"{column.label}; the first where it is left out."
            said[name] = (text, schema)
    if rows_a_page is not None:
        text = f"Which {rows_a_page} rows, from page 1 on; beyond the last page there are none."
        said[PAGE] = (text, {"type": "integer", "minimum": 1, "maximum": 999_999, "default": 1})
    return {
        "parameters": [
            {
                "name": name,
                "in": "query",
                "required": False,
                "allowEmptyValue": True,
                "description": text,
                "schema": schema,
            }
            for name, (text, schema) in said.items()
        ]
    }


def _in_a_sentence(label: str) -> str:
    """The label with a small first letter, unless it starts with an acronym (FP8)."""
    return label if label[:2].isupper() else label[:1].lower() + label[1:]
