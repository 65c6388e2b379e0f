"""The numbers behind a chart as a download."""

from collections.abc import Mapping, Sequence
from typing import Any

from starlette.responses import Response

from app.checkpoint.text import csv_text, dumps
from app.features.workbench.answer_view import subject
from app.scenario.answer import Answer
from app.web.figure import Chart


def csv_of(chart: Chart, answered: Answer) -> Response:
    """Comma-separated values: what it is in lines that begin with #, units in the headers, raw numbers."""
    return table_csv(chart, (f"Tokenroof: {chart.title}", subject(answered), chart.summary, _versions(answered)))


def table_csv(chart: Chart, about: Sequence[str]) -> Response:
    """The table of a chart under the lines that say what it is."""
    opening = "".join(f"# {line}\n" for line in about)
    text = opening + csv_text([chart.table.columns, *chart.table.rows])
    return _download(text.encode(), "text/csv; charset=utf-8", f"tokenroof-{chart.id}.csv")


def json_of(chart: Chart, answered: Answer) -> Response:
    """The same with the scenario and the figure."""
    about = {
        "scenario": answered.scenario.document(),
        "catalog_version": answered.catalog_version,
        "formula_version": answered.formula_version,
    }
    return table_json(chart, about)


def table_json(chart: Chart, about: Mapping[str, Any]) -> Response:
    """Table and figure of a chart with what it is about."""
    body = {
        "title": chart.title,
        "summary": chart.summary,
        **about,
        "table": {"columns": chart.table.columns, "rows": chart.table.rows},
        "figure": chart.figure,
    }
    return _download(dumps(body), "application/json", f"tokenroof-{chart.id}.json")


def _versions(answered: Answer) -> str:
    return f"formulas {answered.formula_version}, catalog {answered.catalog_version}; ceilings unless named otherwise"


def _download(body: bytes, media_type: str, name: str) -> Response:
    headers = {"Content-Disposition": f'attachment; filename="{name}"', "Cache-Control": "no-store"}
    return Response(body, headers=headers, media_type=media_type)
