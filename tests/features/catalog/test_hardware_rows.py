"""What the list of accelerators can be asked, against the catalog itself."""

import pytest

from app.calc.dtypes import Dtype
from app.catalog.accelerators import AcceleratorRecord, Kind
from app.features.catalog.hardware_rows import KIND_LABELS, hardware_columns, reported_gib, ridge_at_16_bits, ridges
from app.web.listing_query import read_listing
from tests.factories import shipped_catalog

RECORDS = shipped_catalog().accelerators
COLUMNS = hardware_columns(RECORDS.values())
SORTABLE = [column for column in COLUMNS if column.sortable]


def found(**query: str) -> list[str]:
    listing = read_listing(query.items(), COLUMNS)
    assert listing.refusals == ()
    return [record.id for record in listing.of(RECORDS.values())]


def test_nothing_asked_is_the_catalog() -> None:
    assert found() == list(RECORDS)


@pytest.mark.parametrize("vendor", sorted({record.vendor for record in RECORDS.values()}))
def test_a_maker_has_exactly_its_rows(vendor: str) -> None:
    assert found(vendor=vendor) == [id_ for id_, record in RECORDS.items() if record.vendor == vendor]


def test_every_kind_has_a_label_and_rows_and_together_they_are_all() -> None:
    assert set(KIND_LABELS) == set(Kind)
    by_kind = {kind: found(kind=kind.value) for kind in Kind}
    assert all(by_kind.values())
    assert sorted(id_ for ids in by_kind.values() for id_ in ids) == sorted(RECORDS)


@pytest.mark.parametrize(
    ("kind", "ids"),
    [
        ("data-center", {"h100-sxm-80gb", "mi300a", "t4", "tpu-v5e", "rtx-pro-6000-server", "groq-lpu-v1"}),
        ("workstation", {"rtx-a6000", "rtx-pro-6000-ws", "r9700", "arc-pro-b50", "gb300-ws"}),
        ("consumer", {"rtx-4090", "rx-7900-xtx", "arc-b580"}),
        ("integrated", {"apple-m4-max", "strix-halo-395", "dgx-spark-gb10"}),
        ("edge", {"jetson-agx-thor", "jetson-agx-orin-64gb"}),
    ],
)
def test_a_kind_is_what_people_mean_by_it(kind: str, ids: set[str]) -> None:
    assert ids <= set(found(kind=kind))


def test_bounds_and_formats() -> None:
    assert found(min_memory="200") == [id_ for id_, r in RECORDS.items() if r.memory.marketed_gb >= 200]
    assert found(min_bandwidth="5300") == [id_ for id_, r in RECORDS.items() if r.memory.bandwidth_gb_per_s >= 5300]
    assert found(min_year="2024", max_year="2025") == [id_ for id_, r in RECORDS.items() if 2024 <= r.year <= 2025]
    for dtype in (Dtype.FP8, Dtype.FP4):
        having = found(**{f"has_{dtype.value}": "yes"})
        assert having == [id_ for id_, r in RECORDS.items() if dtype in r.dense_tflops]
        assert sorted([*having, *found(**{f"has_{dtype.value}": "no"})]) == sorted(RECORDS)


@pytest.mark.parametrize(
    ("words", "ids"),
    [
        ("h100", ["h100-pcie-80gb", "h100-sxm-80gb", "h100-nvl-94gb"]),
        ("H100 SXM", ["h100-sxm-80gb"]),
        ("300x", ["mi300x"]),
        ("nvidia volta", ["v100-pcie-16gb", "v100-sxm2-16gb", "v100-sxm2-32gb"]),
        ("rtx-4090", ["rtx-4090"]),
        ("cdna4", ["mi350x", "mi355x"]),
        ("nothing like it", []),
    ],
)
def test_the_search_looks_at_name_maker_architecture_and_id(words: str, ids: list[str]) -> None:
    assert found(q=words) == ids


@pytest.mark.parametrize("column", SORTABLE, ids=lambda column: column.name)
@pytest.mark.parametrize("sign", ["", "-"])
def test_every_order_is_right_and_unknowns_are_last(column: object, sign: str) -> None:
    assert isinstance(column, type(COLUMNS[0]))
    ids = found(sort=f"{sign}{column.name}")
    assert sorted(ids) == sorted(RECORDS)
    values = [column.value(RECORDS[id_]) for id_ in ids]
    known = [value.casefold() if isinstance(value, str) else value for value in values if value is not None]
    assert values[len(known) :] == [None] * (len(values) - len(known))
    assert known == sorted(known, reverse=bool(sign))


def test_a_golden_order() -> None:
    best = found(sort="-bandwidth", vendor="NVIDIA", min_year="2022", kind="data-center")
    assert best[:3] == ["rubin-vr200", "b100-sxm", "b200-sxm"]
    assert found(sort="memory")[0] == "groq-lpu-v1"


def test_derived_figures_are_those_that_people_divide() -> None:
    card = RECORDS["h100-sxm-80gb"]
    assert reported_gib(card) == pytest.approx(79.65, abs=0.005)
    assert ridges(card)[Dtype.FP8] == pytest.approx(1978.9e12 / 3.35e12)
    assert ridge_at_16_bits(card) == pytest.approx(295.34, abs=0.01)


def test_what_is_unknown_stays_unknown() -> None:
    station: AcceleratorRecord = RECORDS["gb300-ws"]
    assert ridges(station) == {}
    assert ridge_at_16_bits(station) is None
    assert reported_gib(station) is None
    assert ridge_at_16_bits(RECORDS["t4"]) == pytest.approx(65e12 / 320e9)  # FP16, for it has no BF16
