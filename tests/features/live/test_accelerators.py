"""Measured roofs in words: what was reached, the vendor's figure, the share, and what is drawn of it."""

import pytest

from app.calc.dtypes import Dtype
from app.features.live.accelerators import drawn_roofs, roofs_views
from app.machine.peaks.beside import achieved_on
from tests.factories import shipped_catalog
from tests.machine.peaks.measured import roofs

CATALOG = shipped_catalog()


def test_each_roof_stands_beside_the_vendors_and_divides() -> None:
    (view,) = roofs_views([roofs()], CATALOG)
    bandwidth, matrices = view.rows
    assert (bandwidth.kind, bandwidth.measured, bandwidth.stated) == ("memory bandwidth", "2.9 TB/s", "3.35 TB/s")
    assert bandwidth.share == "86.6 %"
    assert bandwidth.verdict.startswith("as usual (75 to 95 %)")
    assert (matrices.kind, matrices.measured) == ("bf16 matrices", "790 TFLOP/s")
    assert "SM clock 1,980 MHz" in view.conditions
    assert "torch 2.9.1" in view.with_what


def test_a_card_that_the_catalog_does_not_know_has_rates_and_no_shares() -> None:
    (view,) = roofs_views([roofs(card_name="NVIDIA Z9")], CATALOG)
    assert [row.stated + row.share for row in view.rows] == ["", ""]


def test_what_is_drawn_is_the_best_of_the_card_and_of_no_other() -> None:
    drawn = drawn_roofs("h100-sxm-80gb", Dtype.BF16, [roofs()], CATALOG)
    found = achieved_on("h100-sxm-80gb", [roofs()], CATALOG)
    assert drawn is not None
    assert found is not None
    assert drawn.bandwidth_bytes_per_s == found.bandwidth_bytes_per_s == pytest.approx(2.9e12)
    assert drawn.flops_per_s == pytest.approx(7.9e14)
    assert drawn_roofs("h200-sxm", Dtype.BF16, [roofs()], CATALOG) is None
    half = drawn_roofs("h100-sxm-80gb", Dtype.FP8, [roofs()], CATALOG)
    assert half is not None
    assert half.flops_per_s is None
