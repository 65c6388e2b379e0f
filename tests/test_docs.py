"""The documentation against the code: its numbers are recomputed, its settings, verbs, files and paths exist."""

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from app.catalog.calibration import load_cross_validated
from app.scenario.document import number_at
from app.settings import ROOT, Settings
from calibration.residuals import errors
from calibration.rows import read_rows
from tests.factories import shipped_catalog

README = (ROOT / "README.md").read_text(encoding="utf-8")
SETTINGS = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
CEILINGS = (ROOT / "docs" / "ceilings.md").read_text(encoding="utf-8")
DOCUMENTS = [path for path in (*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")) if path.name != "CHANGELOG.md"]
SCALES = {"ms": 1e-3, "s": 1.0, "FLOP/B": 1.0, "tokens/s": 1.0, "%": 1e-2, "B": 1.0, "": 1.0}


def _readme_example(reader: TestClient) -> dict[str, Any]:
    posted = re.search(r"-d '\s*(\{.*?\})'", README, re.DOTALL)
    assert posted is not None
    response = reader.post("/api/v1/evaluate", json=json.loads(posted.group(1)))
    assert response.status_code == 200
    document: dict[str, Any] = response.json()
    return document


def test_each_number_of_the_worked_example_is_what_the_api_answers(reader: TestClient) -> None:
    document = _readme_example(reader)
    rows = re.findall(r"\| `([a-z_.]+)` \| ([\d.,]+) ?([^ |]*) \|", README)
    assert len(rows) == 11
    for path, text, unit in rows:
        stated = float(text.replace(",", ""))
        digits = len(text.replace(",", "").replace(".", ""))
        assert number_at(document, path) / SCALES[unit] == pytest.approx(stated, rel=10 ** -(digits - 1)), path


def test_the_query_string_of_the_readme_answers(reader: TestClient) -> None:
    found = re.search(r"curl -s 'http://127\.0\.0\.1:8000(/api/v1/evaluate\?[^']+)'", README)
    assert found is not None
    assert reader.get(found.group(1)).json()["serving"] == _readme_example(reader)["serving"]


def test_the_settings_table_is_that_of_the_class() -> None:
    lines = re.findall(r"^\| `TOKENROOF_([A-Z_]+)` \|(.*?)\| (.*) \|$", SETTINGS, re.MULTILINE)
    rows = {name: (default.strip("` "), meaning) for name, default, meaning in lines}
    assert set(rows) == {name.upper() for name in Settings.model_fields}
    for name, field in Settings.model_fields.items():
        default, meaning = rows[name.upper()]
        assert default == ("" if field.default in (None, ()) else str(field.default)), name
        assert meaning == field.description, name


def test_each_verb_in_the_documents_is_in_the_makefile() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    verbs = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    for path in DOCUMENTS:
        text = path.read_text(encoding="utf-8")
        for verb in re.findall(r"(?:^|`)(?:[A-Z_]+=\S+ )*make ([a-z-]+)", text, re.MULTILINE):
            assert verb in verbs, f"{path.name}: make {verb}"


def test_each_file_in_the_documents_exists() -> None:
    for path in DOCUMENTS:
        for name in re.findall(r"`((?:app|tests|templates|static|docs|migrations)/[\w./-]+)`", path.read_text("utf-8")):
            assert (ROOT / name).exists(), f"{path.name}: {name}"
        for target in re.findall(r"\]\(([^)#:]+)\)", path.read_text(encoding="utf-8")):
            assert (path.parent / target).exists(), f"{path.name}: {target}"


def test_the_release_has_a_heading_and_a_paragraph_in_the_changelog() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.search(rf"^## {re.escape(version)} \(\d{{4}}-\d\d-\d\d\)\n\n[A-Z].+\.", changelog, re.MULTILINE)


@pytest.mark.parametrize(("concurrency", "column"), [(1, 0), (64, 1)], ids=["one sequence", "sixty-four sequences"])
def test_the_decode_table_of_the_ceilings_is_recomputed(reader: TestClient, concurrency: int, column: int) -> None:
    document = _evaluate(reader, prompt_tokens=3840, output_tokens=512, concurrency=concurrency)
    row = re.search(r"\| \*\*step\*\* \| \*\*([\d.]+) ms\*\* \| \*\*([\d.]+) ms\*\* \|", CEILINGS)
    assert row is not None
    stated = float(row.groups()[column])
    assert document["decode"]["ceiling_s"] * 1e3 == pytest.approx(stated, abs=5e-4)
    terms = [float(cells[column]) for cells in re.findall(r"\| ([\d.]+) ms \| ([\d.]+) ms \|", CEILINGS)]
    assert sum(terms) == pytest.approx(stated, abs=2e-3)


def test_the_prefill_table_of_the_ceilings_is_recomputed(reader: TestClient) -> None:
    document = _evaluate(reader, prompt_tokens=1000, output_tokens=500, concurrency=1)
    stated = re.search(r"\| \*\*prefill\*\* \| \| \*\*([\d.]+) ms\*\* \|", CEILINGS)
    assert stated is not None
    assert document["prefill"]["ceiling_s"] * 1e3 == pytest.approx(float(stated.group(1)), abs=5e-4)
    table = CEILINGS.split("Prefill of 1,000 tokens:")[1].split("**prefill**")[0]
    terms = [float(text) for text in re.findall(r"\| ([\d.]+) ms \|\n", table)]
    assert sum(terms) == pytest.approx(float(stated.group(1)), abs=2e-3)
    points = {p["operator"]: p["time_s"] * 1e3 for p in document["roofline"]["points"] if p["phase"] == "prefill"}
    assert points["scores_and_values"] == pytest.approx(terms[1], abs=5e-4)
    assert points["head"] == pytest.approx(terms[2], abs=5e-4)


def test_no_document_names_a_registry_or_a_foreign_network_address() -> None:
    for path in [*DOCUMENTS, ROOT / "CHANGELOG.md"]:
        for host in re.findall(r"https?://([\w.:-]+)", path.read_text(encoding="utf-8")):
            assert host.startswith(("127.0.0.1", "roof.example", "www.apache.org")), f"{path.name}: {host}"


def test_the_reference_page_lists_every_path_of_the_api(reader: TestClient, shared_app: FastAPI) -> None:
    page = reader.get("/docs").text
    for path in shared_app.openapi()["paths"]:
        assert f"<code>{path}</code>" in page


def _evaluate(reader: TestClient, **workload: int) -> dict[str, Any]:
    scenario = {"model": {"id": "llama-3.1-8b"}, "hardware": {"id": "h100-sxm-80gb"}, "workload": workload}
    document: dict[str, Any] = reader.post("/api/v1/evaluate", json=scenario).json()
    return document


def test_the_screenshot_is_there_and_is_a_picture() -> None:
    picture = Path(ROOT / "docs" / "workbench.png").read_bytes()
    assert picture.startswith(b"\x89PNG")


def test_the_error_tables_are_those_of_the_shipped_calibration() -> None:
    text = (ROOT / "docs" / "expected.md").read_text(encoding="utf-8")
    rows = tuple(read_rows(shipped_catalog()))
    blind = load_cross_validated()
    found = errors(rows, np.array([blind[row.measurement.id].held_out for row in rows]))
    for words, regime in (
        ("TPOT, several at a time", "tpot many"),
        ("throughput, as many as fit", "throughput saturated"),
        ("llama.cpp decode, one at a time", "llama.cpp tpot one"),
        ("prefill", "prefill"),
        ("TTFT, several at a time", "ttft many"),
    ):
        row = re.search(rf"^\| {re.escape(words)} \| (\d+) \| (\d+) % \| (\d+) %", text, re.MULTILINE)
        assert row is not None, words
        n, median, mean = found[regime][:3]
        assert [int(cell) for cell in row.groups()] == [n, round(100 * median), round(100 * mean)], words
    version = shipped_catalog().calibration
    assert version is not None
    assert f"calibration {version.version}" in text
