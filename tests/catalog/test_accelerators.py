"""The shipped accelerator catalog, and what its loader refuses."""

from dataclasses import FrozenInstanceError
from pathlib import Path

import pytest

from app.calc.accelerator import MemoryBasis
from app.calc.dtypes import Dtype
from app.catalog.accelerators import FACTS, AcceleratorRecord, Confidence, Disagreement, Status, load_accelerators
from app.catalog.rows import CatalogError

CATALOG = load_accelerators()
ALL = pytest.mark.parametrize("row", CATALOG.values(), ids=CATALOG.keys())


def test_holds_every_device_in_file_order() -> None:
    ids = list(CATALOG)
    assert ids[0] == "mi100"  # amd.toml comes first
    assert ids.index("apple-m1") < ids.index("inferentia2") < ids.index("v100-pcie-16gb") < ids.index("cerebras-wse3")
    assert [one for one in ids if one.startswith("h100")] == ["h100-pcie-80gb", "h100-sxm-80gb", "h100-nvl-94gb"]


def test_one_row_in_full() -> None:
    row = CATALOG["h100-sxm-80gb"]
    assert (row.id, row.name, row.vendor, row.architecture) == (
        "h100-sxm-80gb",
        "H100 SXM5 80GB",
        "NVIDIA",
        "Hopper GH100",
    )
    assert (row.year, row.status, row.confidence) == (2022, Status.RELEASED, Confidence.A)
    assert (row.memory.type, row.memory.marketed_gb, row.memory.reported_mib) == ("HBM3", 80, 81559)
    assert (row.memory.bandwidth_gb_per_s, row.memory.l2_mb) == (3350, 50)
    assert row.dense_tflops == {
        Dtype.FP32: 66.9,
        Dtype.TF32: 494.7,
        Dtype.FP16: 989.4,
        Dtype.BF16: 989.4,
        Dtype.FP8: 1978.9,
        Dtype.INT8: 1978.9,
    }
    assert (row.compute.units, row.compute.boost_mhz, row.power.tdp_w) == (132, 1830, 700)
    assert (row.link.name, row.link.one_way_gb_per_s, row.link.both_ways_gb_per_s) == (
        "NVLink 4 (NVSwitch)",
        450,
        900,
    )
    assert (row.link.pcie_gen, row.link.pcie_lanes, row.link.max_in_node) == (5, 16, 8)
    assert row.price is not None
    assert row.price.usd_per_hour == 2.95
    assert row.price.basis.startswith("2026-05-20")
    assert len(row.sources) == 9
    assert (row.memory.reported_mib, row.memory.seen_gib) == (81_559, 79.18)  # as the driver, and as start-up logs say
    (entry,) = row.disagreements
    assert (entry.fact, entry.seen, entry.kept) == ("dense_tflops.bf16", (989.4, 1979), 989.4)


def test_accelerator_of_the_calculators_is_in_si_units() -> None:
    device = CATALOG["h200-sxm"].accelerator
    assert (device.id, device.name) == ("h200-sxm", "H200 SXM 141GB")
    assert device.memory_bytes(MemoryBasis.MARKETED) == 141_000_000_000
    assert device.memory_bytes(MemoryBasis.REPORTED) == 150_754_820_096
    assert device.bandwidth_bytes_per_s == 4.8e12
    assert device.peak(Dtype.BF16) == pytest.approx(989.4e12, rel=1e-15)
    assert device.peak(Dtype.FP8) == pytest.approx(1978.9e12, rel=1e-15)
    assert set(device.peak_flops_per_s) == {Dtype.FP32, Dtype.TF32, Dtype.FP16, Dtype.BF16, Dtype.FP8, Dtype.INT8}
    assert (device.tdp_w, device.price_usd_per_hour, device.link_bytes_per_s_one_way) == (700, 3.5, 450e9)


def test_unknown_stays_unknown() -> None:
    station = CATALOG["gb300-ws"]
    assert station.dense_tflops == {}
    assert station.price is None
    assert (station.memory.reported_mib, station.compute.units, station.fact("price.usd_per_hour")) == (None,) * 3
    device = CATALOG["max-1550"].accelerator
    assert (device.memory_reported_bytes, device.link_bytes_per_s_one_way, device.price_usd_per_hour) == (None,) * 3


@pytest.mark.parametrize(
    ("id_", "facts"),
    [
        (
            "b200-sxm",
            {
                "memory.marketed_gb": 180,
                "memory.reported_mib": 183359,
                "memory.bandwidth_gb_per_s": 8000,
                "dense_tflops.bf16": 2250,
                "dense_tflops.fp8": 4500,
                "dense_tflops.fp4": 9000,
                "dense_tflops.int4": None,
                "link.one_way_gb_per_s": 900,
                "power.tdp_w": 1000,
                "price.usd_per_hour": 5.5,
            },
        ),
        (
            "mi300x",
            {
                "memory.type": "HBM3",
                "memory.marketed_gb": 192,
                "memory.reported_mib": 196592,
                "memory.bandwidth_gb_per_s": 5300,
                "memory.l2_mb": 32,
                "dense_tflops.fp32": 163.4,
                "dense_tflops.bf16": 1307.4,
                "dense_tflops.fp8": 2614.9,
                "compute.units": 304,
                "link.one_way_gb_per_s": 448,
            },
        ),
        (
            "rtx-4090",
            {
                "memory.type": "GDDR6X",
                "memory.reported_mib": 24564,
                "memory.bandwidth_gb_per_s": 1008,
                "dense_tflops.fp32": 82.6,
                "dense_tflops.fp16": 165.2,
                "dense_tflops.fp8": 330.3,
                "dense_tflops.int4": 1321.2,
                "compute.boost_mhz": 2520,
                "link.one_way_gb_per_s": 31.5,
                "price.usd_per_hour": 0.34,
            },
        ),
        (
            "apple-m3-ultra",
            {
                "memory.marketed_gb": 512,
                "memory.reported_mib": None,
                "memory.bandwidth_gb_per_s": 819,
                "dense_tflops.fp16": 28.4,
                "compute.units": 80,
                "link.name": "none",
                "link.one_way_gb_per_s": None,
                "link.pcie_gen": None,
                "power.tdp_w": 180,
            },
        ),
        (
            "tpu-v5p",
            {
                "memory.marketed_gb": 95,
                "memory.bandwidth_gb_per_s": 2765,
                "dense_tflops.fp32": None,
                "dense_tflops.bf16": 459,
                "dense_tflops.int8": 918,
                "compute.units": 2,
                "link.both_ways_gb_per_s": 1200,
                "link.max_in_node": 4,
                "power.tdp_w": None,
            },
        ),
        (
            "cerebras-wse3",
            {"memory.bandwidth_gb_per_s": 21_000_000, "compute.units": 900_000, "dense_tflops.fp16": 125_000},
        ),
    ],
)
def test_golden_facts(id_: str, facts: dict[str, float | str | None]) -> None:
    assert {path: CATALOG[id_].fact(path) for path in facts} == facts


def test_counts_of_the_survey() -> None:
    rows = CATALOG.values()
    assert sum(row.confidence is Confidence.A for row in rows) >= 61
    assert sum(row.price is not None for row in rows) >= 24
    assert {row.id for row in rows if row.status is Status.ANNOUNCED} >= {
        "rubin-vr200",
        "rubin-cpx",
        "mi455x",
        "ascend-950dt",
        "tpu-8t",
        "tpu-8i",
    }


@ALL
def test_reported_memory_is_near_the_label(row: AcceleratorRecord) -> None:
    if row.memory.reported_mib is not None:
        label = row.memory.marketed_gb * 2**30
        assert label * 0.92 <= row.memory.reported_mib * 2**20 <= label * 1.01


@ALL
def test_one_way_is_half_of_both_ways(row: AcceleratorRecord) -> None:
    one_way, both_ways = row.link.one_way_gb_per_s, row.link.both_ways_gb_per_s
    assert (one_way is None) == (both_ways is None)
    if one_way is not None and both_ways is not None:
        # Sources round the half to three digits at worst: 15.8 of 31.5, 538 of 1075.
        assert one_way == pytest.approx(both_ways / 2, rel=0.005)


# Operations a clock of one multiprocessor or compute unit, dense FP16 with FP16 accumulation on GeForce.
FLOP_PER_CLOCK = {
    "Volta": 1024,
    "Turing": 1024,
    "Ampere GA100": 2048,
    "Ampere GA10": 1024,
    "Ampere GA10B": 2048,
    "Ada": 1024,
    "Hopper": 4096,
    "Blackwell GB20": 1024,
    "Blackwell GB100": 8192,
    "Blackwell Ultra": 8192,
    "CDNA2": 1024,
    "CDNA3": 2048,
    "CDNA4": 4096,
    "RDNA3": 512,
    "RDNA4": 1024,
}


@ALL
def test_no_fp16_rate_exceeds_units_times_clock(row: AcceleratorRecord) -> None:
    # The longest prefix wins: "Ampere GA100" before "Ampere GA10", "RDNA3.5" as RDNA3.
    family = max((name for name in FLOP_PER_CLOCK if row.architecture.startswith(name)), key=len, default=None)
    rate, units, clock = row.dense_tflops.get(Dtype.FP16), row.compute.units, row.compute.boost_mhz
    if "dense_tflops.fp16" in row.uncertain:
        return
    if family is not None and rate is not None and units is not None and clock is not None:
        # 0.3%: the A16 prints 17.4 for 17.36.
        assert rate * 1e12 <= units * clock * 1e6 * FLOP_PER_CLOCK[family] * 1.003


@ALL
def test_texts_are_fit_to_show(row: AcceleratorRecord) -> None:
    reasons = [entry.reason for entry in row.disagreements]
    assert all(text[-1] in ".)" for text in (*row.caveats, *reasons))
    assert len(set(row.caveats)) == len(row.caveats)
    assert all(entry.kept in entry.seen for entry in row.disagreements)
    if row.status is Status.ANNOUNCED:
        assert row.caveats


def test_records_cannot_be_changed() -> None:
    row = CATALOG["t4"]
    with pytest.raises(FrozenInstanceError):
        row.year = 2030  # type: ignore[misc]
    with pytest.raises(TypeError):
        row.dense_tflops[Dtype.FP8] = 1.0  # type: ignore[index]
    with pytest.raises(TypeError):
        CATALOG["mine"] = row  # type: ignore[index]


def test_a_fact_outside_the_schema_is_a_key_error() -> None:
    assert "memory.l2_mb" in FACTS
    with pytest.raises(KeyError, match=r"memory\.colour"):
        CATALOG["t4"].fact("memory.colour")


ROW = """\
[[accelerator]]
id = "toy"
name = "Toy 10GB"
vendor = "Toys"
architecture = "Brick"
year = 2026
status = "released"
kind = "consumer"
confidence = "B"
sources = ["Toy box"]
caveats = ["For play only."]
memory = { type = "DDR", marketed_gb = 10, reported_mib = 9700, bandwidth_gb_per_s = 100.5, l2_mb = 4 }
dense_tflops = { fp16 = 2, fp8 = 4.5 }
compute = { units = 3, boost_mhz = 1000 }
link = { name = "String", one_way_gb_per_s = 8, both_ways_gb_per_s = 16, pcie_gen = 4, max_in_node = 2 }
power = { tdp_w = 5 }
price = { usd_per_hour = 0.5, basis = "shop window, 2026" }
uncertain = ["power.tdp_w", "dense_tflops.int4"]

[[accelerator.disagreement]]
fact = "dense_tflops.fp8"
seen = [4.5, 9]
kept = 4.5
reason = "Nine is sparse."
"""


def _write(folder: Path, text: str, name: str = "toys.toml") -> Path:
    (folder / name).write_text(text, encoding="utf-8")
    return folder


def test_reads_the_toy_row(tmp_path: Path) -> None:
    row = load_accelerators(_write(tmp_path, ROW))["toy"]
    assert row.accelerator.memory_reported_bytes == 9700 * 1024 * 1024
    assert row.uncertain == ("power.tdp_w", "dense_tflops.int4")
    assert row.disagreements == (Disagreement("dense_tflops.fp8", (4.5, 9), 4.5, "Nine is sparse."),)


def test_a_row_may_leave_out_what_is_unknown(tmp_path: Path) -> None:
    bare = ROW[: ROW.index("compute")] + 'link = { name = "String" }\n'
    bare = bare.replace("reported_mib = 9700, ", "").replace(", l2_mb = 4", "").replace("fp16 = 2, fp8 = 4.5", "")
    row = load_accelerators(_write(tmp_path, bare))["toy"]
    assert (row.price, row.uncertain, row.disagreements, row.dense_tflops) == (None, (), (), {})
    unknown = {path for path in FACTS if row.fact(path) is None}
    assert set(FACTS) - unknown == {"memory.type", "memory.marketed_gb", "memory.bandwidth_gb_per_s", "link.name"}


REFUSALS = {
    "sources left out": ('sources = ["Toy box"]\n', "", "sources", "missing"),
    "sources empty": ('["Toy box"]', "[]", "sources", "source"),
    "source blank": ('["Toy box"]', '["Toy box", " "]', "sources[2]", "text"),
    "sources not a list": ('["Toy box"]', '"Toy box"', "sources", "list"),
    "unknown key of the row": ("year = 2026", "year = 2026\ncolour = 1", "colour", "unknown"),
    "unknown key of a group": ("l2_mb = 4", "l3_mb = 4", "memory.l3_mb", "unknown"),
    "unknown element type": ("fp16 = 2", "fp64 = 2", "dense_tflops.fp64", "unknown"),
    "unknown key of a disagreement": ("kept = 4.5", "kept = 4.5\nwho = 1", "disagreement[1].who", "unknown"),
    "missing key of the row": ("year = 2026\n", "", "year", "missing"),
    "missing group": ("dense_tflops = { fp16 = 2, fp8 = 4.5 }\n", "", "dense_tflops", "missing"),
    "missing key of a group": ("marketed_gb = 10, ", "", "memory.marketed_gb", "missing"),
    "missing reason": ('reason = "Nine is sparse."', "", "disagreement[1].reason", "missing"),
    "price without a basis": (', basis = "shop window, 2026"', "", "price.basis", "missing"),
    "text for a number": ("marketed_gb = 10", 'marketed_gb = "10"', "memory.marketed_gb", "number"),
    "number for a text": ('name = "Toy 10GB"', "name = 10", "name", "text"),
    "empty text": ('vendor = "Toys"', 'vendor = ""', "vendor", "text"),
    "bool for a number": ("tdp_w = 5", "tdp_w = true", "power.tdp_w", "number"),
    "bool for a whole number": ("units = 3", "units = true", "compute.units", "whole number"),
    "fraction for a whole number": ("pcie_gen = 4", "pcie_gen = 4.0", "link.pcie_gen", "whole number"),
    "number for a group": ("power = { tdp_w = 5 }", "power = 5", "power", "table"),
    "list for the rates": ("dense_tflops = { fp16 = 2, fp8 = 4.5 }", "dense_tflops = [2]", "dense_tflops", "table"),
    "infinite": ("bandwidth_gb_per_s = 100.5", "bandwidth_gb_per_s = inf", "memory.bandwidth_gb_per_s", "finite"),
    "not a number": ("fp16 = 2", "fp16 = nan", "dense_tflops.fp16", "finite"),
    "zero": ("fp16 = 2", "fp16 = 0", "dense_tflops.fp16", "above zero"),
    "negative": ("usd_per_hour = 0.5", "usd_per_hour = -0.5", "price.usd_per_hour", "above zero"),
    "unknown confidence": ('confidence = "B"', 'confidence = "D"', "confidence", "A, B, C"),
    "unknown kind": ('kind = "consumer"', 'kind = "toy"', "kind", "data-center"),
    "unknown status": ('status = "released"', 'status = "soon"', "status", "released, announced"),
    "kept differs from the row": ("kept = 4.5", "kept = 9", "disagreement[1].kept", "of the row is 4.5"),
    "kept of an unknown value": ('"dense_tflops.fp8"', '"dense_tflops.fp4"', "disagreement[1].kept", "is None"),
    "disagreement on no fact": ('"dense_tflops.fp8"', '"dense_tflops"', "disagreement[1].fact", "no fact"),
    "nothing to disagree on": ("[4.5, 9]", "[4.5, 4.5]", "disagreement[1].seen", "two different"),
    "bool seen": ("[4.5, 9]", "[4.5, true]", "disagreement[1].seen[2]", "number"),
    "uncertain about no fact": ('"dense_tflops.int4"', '"dense_tflops.fp64"', "uncertain[2]", "no fact"),
    "one way above both ways": ("one_way_gb_per_s = 8", "one_way_gb_per_s = 17", "link.one_way_gb_per_s", "both ways"),
}


@pytest.mark.parametrize(("old", "new", "field", "words"), REFUSALS.values(), ids=REFUSALS.keys())
def test_refuses_and_says_where(tmp_path: Path, old: str, new: str, field: str, words: str) -> None:
    assert ROW.count(old) == 1
    with pytest.raises(CatalogError) as refused:
        load_accelerators(_write(tmp_path, ROW.replace(old, new)))
    (error,) = refused.value.faults
    assert (error.file, error.row, error.key) == (tmp_path / "toys.toml", "toy", field)
    assert words in error.message
    assert all(part in str(error) for part in ("toys.toml", "toy", field, error.message))


def test_refuses_an_id_used_twice_in_two_files(tmp_path: Path) -> None:
    _write(tmp_path, ROW, "a.toml")
    with pytest.raises(CatalogError) as refused:
        load_accelerators(_write(tmp_path, ROW, "b.toml"))
    (error,) = refused.value.faults
    assert (error.file.name, error.row, error.key) == ("b.toml", "toy", "id")


def test_a_row_without_an_id_is_named_by_its_number(tmp_path: Path) -> None:
    with pytest.raises(CatalogError) as refused:
        load_accelerators(_write(tmp_path, ROW + ROW.replace('id = "toy"\n', "")))
    (error,) = refused.value.faults
    assert (error.row, error.key, error.message) == ("#2", "id", "missing key")


@pytest.mark.parametrize(
    ("text", "field"),
    [("[[accelerator", "-"), ("", "accelerator"), ("accelerator = 1", "accelerator"), ("[[gpu]]\n" + ROW, "gpu")],
)
def test_refuses_a_file_that_holds_no_rows(tmp_path: Path, text: str, field: str) -> None:
    with pytest.raises(CatalogError) as refused:
        load_accelerators(_write(tmp_path, text))
    error = refused.value.faults[0]
    assert (error.file, error.key) == (tmp_path / "toys.toml", field)


def test_refuses_an_empty_folder(tmp_path: Path) -> None:
    with pytest.raises(CatalogError, match="no rows"):
        load_accelerators(tmp_path)
