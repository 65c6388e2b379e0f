"""Measured roofs beside the vendor's."""

import json

import pytest

from app.calc.dtypes import Dtype
from app.catalog.catalog import load_catalog
from app.machine.peaks.beside import (
    BANDWIDTH,
    Band,
    Share,
    accelerator_of,
    achieved_on,
    matmul_band,
    roofs_document,
    shares,
)
from tests.machine.peaks.measured import product, roofs, stream

CATALOG = load_catalog()
H100 = "h100-sxm-80gb"


def test_the_card_is_found_by_name_and_memory() -> None:
    assert accelerator_of(roofs(), CATALOG) == H100
    assert accelerator_of(roofs(card_name="NVIDIA GeForce RTX 5090"), CATALOG) is None  # not with that memory
    assert accelerator_of(roofs(card_name="NVIDIA Something New"), CATALOG) is None


def test_shares_of_the_vendors_figures() -> None:
    run = roofs(products=(product(7.9e14), product(3e14, Dtype.TF32), product(7e14, Dtype.INT8)))
    rows = {row.kind: row for row in shares(run, H100, CATALOG)}
    assert list(rows) == ["bandwidth", "tf32", "bf16", "int8"]
    bandwidth = rows["bandwidth"]
    assert bandwidth.measured == pytest.approx(2.9e12)
    assert bandwidth.stated == pytest.approx(3.35e12)
    assert bandwidth.share == pytest.approx(0.8657, abs=1e-4)
    assert (bandwidth.usual, bandwidth.verdict) == (BANDWIDTH, "usual")
    stated = CATALOG.devices[H100].peak_flops_per_s[Dtype.BF16]
    assert rows["bf16"].share == pytest.approx(7.9e14 / stated)
    assert rows["bf16"].verdict == "usual"
    assert (rows["tf32"].usual, rows["tf32"].verdict) == (None, None)


def test_a_card_that_the_catalog_does_not_know_has_roofs_and_no_shares() -> None:
    told = roofs_document(roofs(card_name="NVIDIA Something New"), CATALOG)
    assert told["accelerator"] is None
    assert isinstance(told["beside"], list)
    assert [(row["kind"], row["stated"], row["share"], row["verdict"]) for row in told["beside"]] == [
        ("bandwidth", None, None, None),
        ("bf16", None, None, None),
    ]
    json.dumps(told, allow_nan=False)


@pytest.mark.parametrize(
    ("measured", "stated", "verdict"),
    [
        (0.74, 1.0, "low"),
        (0.75, 1.0, "usual"),
        (0.95, 1.0, "usual"),
        (0.96, 1.0, "high"),
        (1.02, 1.0, "high"),
        (1.03, 1.0, "impossible"),
        (1.0, None, None),
        (1.0, 0.0, None),
    ],
)
def test_verdicts(measured: float, stated: float | None, verdict: str | None) -> None:
    assert Share("bandwidth", "B/s", measured, stated, BANDWIDTH).verdict == verdict


def test_usual_shares_are_those_of_the_notes() -> None:
    assert (BANDWIDTH.low, BANDWIDTH.high) == (0.75, 0.95)
    assert matmul_band(H100, "NVIDIA", Dtype.BF16) == Band(0.642, 0.803, matmul_source())
    assert matmul_band(H100, "NVIDIA", Dtype.FP16) == matmul_band(H100, "NVIDIA", Dtype.BF16)
    assert matmul_band("h200-sxm", "NVIDIA", Dtype.FP8) == Band(0.587, 0.734, matmul_source())
    assert matmul_band("rtx-4090", "NVIDIA", Dtype.BF16) == Band(0.583, 0.869, matmul_source())
    assert matmul_band("mi350x", "AMD", Dtype.BF16) == Band(0.411, 0.68, matmul_source())
    assert matmul_band(H100, "NVIDIA", Dtype.INT8) is None
    assert matmul_band("tpu-v6e", "Google", Dtype.BF16) is None


def matmul_source() -> str:
    band = matmul_band(H100, "NVIDIA", Dtype.BF16)
    assert band is not None
    assert "ml-engineering" in band.source
    return band.source


@pytest.mark.parametrize("dtype", [Dtype.BF16, Dtype.FP8])
def test_every_card_of_the_table_is_in_the_catalog(dtype: Dtype) -> None:
    typical = __import__("app.machine.peaks.beside", fromlist=["_BEST"])
    ids = {id_ for id_, of in typical._BEST if of is dtype}
    assert ids
    assert ids <= CATALOG.accelerators.keys()


def test_the_roofs_to_draw_are_those_of_the_accelerator() -> None:
    runs = [roofs(), roofs(streams=(stream(3.1e12),), products=()), roofs(card_name="NVIDIA A100-SXM4-80GB")]
    found = achieved_on(H100, runs, CATALOG)
    assert found is not None
    assert found.bandwidth_bytes_per_s == pytest.approx(3.1e12)
    assert dict(found.flops_per_s) == {Dtype.BF16: pytest.approx(7.9e14)}
    assert achieved_on("rtx-4090", runs, CATALOG) is None
