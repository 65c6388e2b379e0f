"""Cards by the names that engines print, and by the memory that they see."""

import pytest

from app.catalog.catalog import Catalog
from app.engine_io.logs.reader import cards_by_memory, find_card

GIB = 2.0**30


@pytest.mark.parametrize(
    ("line", "gib", "id_"),
    [
        ("E=8,N=2048,device_name=NVIDIA_H100_80GB_HBM3,dtype=fp8_w8a8.json", None, "h100-sxm-80gb"),
        ("E=512,N=256,device_name=NVIDIA_H200.json", 139.81, "h200-sxm"),
        ("  Device 0: NVIDIA GeForce RTX 4090, compute capability 8.9, VMM: yes", None, "rtx-4090"),
        ("using device CUDA0 (NVIDIA GeForce RTX 5090) (0000:0b:00.0) - 30930 MiB free", None, "rtx-5090"),
        ("GPU 0: NVIDIA A100-SXM4-80GB (UUID: GPU-left-out)", None, "a100-sxm-80gb"),
        ("Your Tesla T4 GPU has compute capability 7.5.", None, "t4"),
        ("nothing here", None, None),
        ("  Device 0: NVIDIA Unheard Of, compute capability 8.9", None, None),
    ],
)
def test_a_line_names_its_card(catalog: Catalog, line: str, gib: float | None, id_: str | None) -> None:
    assert find_card(line, gib and gib * GIB, catalog) == id_


def test_two_cards_are_none(catalog: Catalog) -> None:
    lines = " Device 0: NVIDIA GeForce RTX 4090, x\n Device 1: NVIDIA GeForce RTX 3090, x\n"
    assert find_card(lines, None, catalog) is None


@pytest.mark.parametrize(
    ("gib", "id_"),
    [
        # what torch saw in published logs
        *((79.19, "h100-sxm-80gb"), (79.25, "a100-sxm-80gb"), (139.81, "h200-sxm"), (39.50, "a100-pcie-40gb")),
        *(
            (44.39, "l40s"),
            (23.58, "rtx-3090"),
            (14.56, "t4"),
            (191.98, "mi300x"),
            (184.31, "gb200"),
            (178.35, "b200-sxm"),
        ),
    ],
)
def test_memory_seen_means_its_card_among_others(catalog: Catalog, gib: float, id_: str) -> None:
    assert id_ in cards_by_memory(gib * GIB, catalog)


def test_vendors_can_be_passed_over(catalog: Catalog) -> None:
    some = cards_by_memory(119.7 * GIB, catalog)
    assert any(catalog.accelerators[id_].vendor.casefold() == "apple" for id_ in some)
    without = cards_by_memory(119.7 * GIB, catalog, passed_over=frozenset({"apple"}))
    assert "dgx-spark-gb10" in without
    assert not any(catalog.accelerators[id_].vendor.casefold() == "apple" for id_ in without)
