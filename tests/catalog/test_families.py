"""Every accelerator has a family and a kind of memory, so that expected values know what to fall back on."""

import pytest

from tests.factories import shipped_catalog

GOLDEN = {
    "h100-sxm-80gb": ("hopper", "hbm"),
    "gh200-96gb": ("hopper", "hbm"),
    "b200-sxm": ("blackwell", "hbm"),
    "gb300": ("blackwell-ultra", "hbm"),
    "rtx-pro-6000-server": ("blackwell-gddr", "gddr"),
    "dgx-spark-gb10": ("blackwell-soc", "unified"),
    "a100-sxm-80gb": ("ampere", "hbm"),
    "a40": ("ampere-gddr", "gddr"),
    "rtx-3090": ("ampere-gddr-consumer", "gddr"),
    "l40s": ("ada", "gddr"),
    "rtx-4090": ("ada-consumer", "gddr"),
    "mi300x": ("cdna3", "hbm"),
    "mi300a": ("cdna3", "hbm"),
    "strix-halo-395": ("rdna-soc", "unified"),
    "apple-m2-ultra": ("apple", "unified"),
    "tpu-v6e": ("tpu v6e", "hbm"),
    "groq-lpu-v1": ("lpu", "sram"),
}


@pytest.mark.parametrize(("card", "family"), GOLDEN.items())
def test_families(card: str, family: tuple[str, str]) -> None:
    device = shipped_catalog().devices[card]
    assert (device.family, device.memory_kind) == family


def test_none_is_without() -> None:
    for device in shipped_catalog().devices.values():
        assert device.family
        assert device.memory_kind in {"hbm", "gddr", "unified", "sram"}
