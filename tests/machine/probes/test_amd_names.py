from pathlib import Path

import pytest

from app.machine.probes.amd_sysfs import CardNames
from app.machine.probes.reading import Absence, Reading

LIST = """\
# List of AMDGPU IDs
#
1.0.0

7448,\t00,\tAMD Radeon Pro W7900
744C,\tC8,\tAMD Radeon RX 7900 XTX
744c, cc, AMD Radeon RX 7900 XT
74A1,\t00,\tAMD Instinct MI300X
nonsense
1234,
ZZZZ,\t00,\tno number
7550,\tC0,\t\x1b]0;evil\x07AMD Radeon RX 9070 XT
"""


@pytest.fixture
def names(tmp_path: Path) -> CardNames:
    (tmp_path / "amdgpu.ids").write_text(LIST)
    return CardNames(tmp_path / "amdgpu.ids")


@pytest.mark.parametrize(
    ("device", "revision", "shown"),
    [
        ("0x744c\n", "0xc8\n", "AMD Radeon RX 7900 XTX"),
        ("0x744c", "0xcc", "AMD Radeon RX 7900 XT"),
        ("0x74A1", "0x00", "AMD Instinct MI300X"),
        ("0x7550", "0xc0", "]0;evil AMD Radeon RX 9070 XT"),
    ],
)
def test_the_list_knows_a_card_by_number_and_revision(
    tmp_path: Path, names: CardNames, device: str, revision: str, shown: str
) -> None:
    (tmp_path / "device").write_text(device)
    (tmp_path / "revision").write_text(revision)
    assert names.name_of(tmp_path) == Reading(shown, read_from="amdgpu.ids")


def test_the_plate_comes_first_and_the_number_last(tmp_path: Path, names: CardNames) -> None:
    (tmp_path / "device").write_text("0x744c")
    (tmp_path / "revision").write_text("0xff")
    assert names.name_of(tmp_path) == Reading("AMD GPU 1002:744c", read_from="device")
    (tmp_path / "product_name").write_text("\n")
    assert names.name_of(tmp_path).read_from == "device"
    (tmp_path / "product_name").write_text("AMD Instinct MI300X OAM\n")
    assert names.name_of(tmp_path) == Reading("AMD Instinct MI300X OAM", read_from="product_name")


@pytest.mark.parametrize("device", ["", "744c", "0x", "0xzz", "0x744c744c7", "0x744c 0x1"])
def test_a_card_without_a_number_has_no_name(tmp_path: Path, names: CardNames, device: str) -> None:
    (tmp_path / "device").write_text(device)
    assert names.name_of(tmp_path).absence is Absence.IMPLAUSIBLE


def test_without_a_list_the_number_is_all(tmp_path: Path) -> None:
    (tmp_path / "device").write_text("0x744c")
    (tmp_path / "revision").write_text("0xc8")
    assert CardNames(tmp_path / "none").name_of(tmp_path).value == "AMD GPU 1002:744c"
    with (tmp_path / "huge").open("wb") as file:
        file.truncate(2**40)
    assert CardNames(tmp_path / "huge").name_of(tmp_path).value == "AMD GPU 1002:744c"


def test_the_list_is_read_once(tmp_path: Path, names: CardNames) -> None:
    (tmp_path / "device").write_text("0x744c")
    (tmp_path / "revision").write_text("0xc8")
    names.name_of(tmp_path)
    (tmp_path / "amdgpu.ids").unlink()
    assert names.name_of(tmp_path).value == "AMD Radeon RX 7900 XTX"
