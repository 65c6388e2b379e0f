"""The shipped calibration: the fit times rows by the product's own formulas, and its claims hold on its data."""

import tomllib
from functools import cache

import numpy as np
import pytest

from app.calc.measure import measure
from app.calc.time.expected.calibration import Keys
from app.catalog.calibration import DATA_FILE, load_calibration, load_cross_validated
from app.catalog.rows import CatalogError
from app.features.validation.compared import estimate_of, scenario_of
from app.scenario.parts import CustomAccelerator
from app.scenario.resolve import custom_accelerator, resolve
from calibration.parameters import read_parameters
from calibration.residuals import errors, intervals
from calibration.rows import Row, read_rows
from calibration.stack import Stack
from tests.factories import custom_card, shipped_catalog

DOCUMENT = tomllib.loads(DATA_FILE.read_text(encoding="utf-8"))


@cache
def rows() -> tuple[Row, ...]:
    return tuple(read_rows(shipped_catalog()))


@cache
def held_out() -> np.ndarray:
    blind = load_cross_validated()
    return np.array([blind[row.measurement.id].held_out for row in rows()])


def test_the_fit_and_the_product_time_a_row_alike() -> None:
    parameters = read_parameters()
    shipped = [DOCUMENT[e.stack][e.law][e.axis][e.key] for e in parameters.entries]
    moves = np.log([cell["value"] / e.value for cell, e in zip(shipped, parameters.entries, strict=True)])
    predicted = Stack(rows(), parameters).predict(moves)
    compared = 0
    for row, fitted in list(zip(rows(), predicted, strict=True))[::7]:
        found = estimate_of(row.measurement, measure(row.deployment))
        if found.mid is None or found.mid == pytest.approx(found.ceiling):
            continue  # refused, or held at the ceiling of all who were asked for
        assert found.mid == pytest.approx(fitted, rel=1e-3), row.measurement.id
        compared += 1
    assert compared > 200


def test_every_value_has_its_evidence_and_no_prior_is_lost() -> None:
    for entry in read_parameters().entries:
        cell = DOCUMENT[entry.stack][entry.law][entry.axis][entry.key]
        assert cell["prior"] == pytest.approx(entry.value, rel=1e-3)
        assert cell["sources"] <= cell["n"] or not cell["n"]
        if not cell["n"]:
            assert cell["value"] == pytest.approx(cell["prior"], rel=1e-3), "nothing may move what nothing touches"
        assert abs(np.log(cell["value"] / cell["prior"])) < 6 * entry.deviation + 0.01


def test_every_row_was_predicted_blind() -> None:
    assert {row.measurement.id for row in rows()} == set(load_cross_validated())


@pytest.mark.parametrize(
    ("regime", "mean", "median"),
    [
        ("tpot many", 0.33, 0.22),
        ("throughput saturated", 0.25, 0.15),
        ("llama.cpp tpot one", 0.20, 0.16),
        ("prefill", 0.55, 0.25),
        ("tpot one", 0.35, 0.25),
    ],
)
def test_families_held_out_are_predicted_as_well_as_the_documents_say(regime: str, mean: float, median: float) -> None:
    found = errors(rows(), held_out())[regime]
    assert found[2] < mean
    assert found[1] < median


def test_intervals_cover_eight_of_ten() -> None:
    found = intervals(rows(), held_out())
    for regime, (low, high, n) in found.items():
        shipped = DOCUMENT["interval"][regime]
        assert (shipped["low"], shipped["high"], shipped["n"]) == (
            pytest.approx(low, abs=2e-3),
            pytest.approx(high, abs=2e-3),
            n,
        )
        assert low <= 1 <= high
        assert low < high


def test_a_file_that_is_no_calibration_is_refused_and_none_leaves_the_ceilings(tmp_path) -> None:  # type: ignore[no-untyped-def]
    assert load_calibration(tmp_path / "none.toml") is None
    file = tmp_path / "calibration.toml"
    file.write_text('[calibration]\nversion = "x"\n', encoding="utf-8")
    with pytest.raises(CatalogError):
        load_calibration(file)


def test_a_value_that_is_no_efficiency_is_refused(tmp_path) -> None:  # type: ignore[no-untyped-def]
    text = DATA_FILE.read_text(encoding="utf-8").replace("value = 0.", "value = -0.", 1)
    file = tmp_path / "calibration.toml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(CatalogError, match="no efficiency"):
        load_calibration(file)


def test_what_is_compared_is_what_was_asked() -> None:
    row = next(r for r in rows() if r.measurement.id == "dbrx/h100-sxm-80gb/001")
    again = resolve(scenario_of(row.measurement), shipped_catalog()).deployment
    assert (row.batch, row.deployment.split) == (64, again.split)


def test_no_card_and_no_engine_falls_through_the_tables() -> None:
    catalog = shipped_catalog()
    assert catalog.calibration is not None
    paces = {"", "vllm", "vllm-2024", "sglang", "tensorrt-llm", "tensorrt-llm-2024", "llama.cpp", "unheard-of"}
    for card in (*catalog.devices.values(), custom_accelerator(CustomAccelerator.model_validate(custom_card()))):
        for stack in ("server", "llama.cpp"):
            for pace in paces:
                keys = Keys(stack, card.family, card.memory_kind, "fabric", pace, "experts")
                found = catalog.calibration.efficiency(keys)
                for reach in (*found.matrices.values(), *found.experts.values(), found.attention, found.state):
                    assert 0.01 < reach.bandwidth <= 1, keys
                    assert 0.01 < reach.rate <= 1, keys
                    assert 1e-6 < reach.call_s < 2e-3, keys
                assert 0 < found.step_s < 0.02, keys
                assert 0 < found.sequence_s < 0.001, keys
                assert 0 < found.request_s < 0.3, keys
                assert 0 < found.wait_share <= 1, keys
