"""`tokenroof measure`, over a card that does not exist."""

import json
from pathlib import Path
from typing import Any

import pytest

from app.catalog.catalog import load_catalog
from app.machine.peaks.beside import run_measurement
from app.machine.peaks.runner import held
from app.machine.probes.reading import Reading
from tests.machine.peaks.workers import NAME, card, rig, seen

CATALOG = load_catalog()


def test_the_roofs_are_printed_beside_the_vendors(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hot = seen(card(power_draw_w=Reading(650.0, "W"), throttle_reasons=Reading(("sw_power_cap",))))
    told = {
        "bandwidth_bytes_per_s": 2.9e12,
        "flops_per_s": {"bf16": 7.9e14, "fp32": 6e13},
        "behaviour": "take a while",
    }
    asked = rig(tmp_path, seen(card()), hot, told=told, watch_every_s=0.02)
    assert run_measurement(asked, CATALOG, 0, 60, as_json=False) == 0
    printed = capsys.readouterr()
    lines = printed.out.splitlines()
    assert lines[0] == f"{NAME}, 79.6 GiB; torch 2.9.1+fake, cuda 13.0, driver 580.95.05"
    assert lines[1].split(maxsplit=1) == [
        "bandwidth",
        "2.9 TB/s       86.6 % of the vendor's 3.35 TB/s; 75 to 95 % is usual",
    ]
    assert any(line.startswith("  bf16       790 TFLOP/s") for line in lines)
    assert "  fp8: the library or the card does not offer it" in lines
    assert lines[-1] == "  under load: 1,980 MHz, 650 W, 31 °C, held down by sw power cap"
    assert printed.err.splitlines()[0] == "1/20 copy"
    assert asked.store.read()


def test_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_measurement(rig(tmp_path), CATALOG, 0, 60, as_json=True) == 0
    told: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert (told["card_name"], told["accelerator"]) == (NAME, "h100-sxm-80gb")
    assert told["beside"][0]["share"] == pytest.approx(3.0 / 3.35)


def test_a_card_that_nobody_knows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_measurement(rig(tmp_path, seen(card(name=Reading("A New Card")))), CATALOG, 0, 60, as_json=False) == 0
    assert "3 TB/s         of a rate that the catalog does not state" in capsys.readouterr().out


def test_more_than_the_vendor_states_is_not_believed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_measurement(rig(tmp_path, told={"bandwidth_bytes_per_s": 4e12}), CATALOG, 0, 60, as_json=False) == 0
    assert "119.4 % of the vendor's 3.35 TB/s; that cannot be" in capsys.readouterr().out


def one_line(printed: str) -> str:
    (line,) = printed.splitlines()
    assert line.startswith("tokenroof: ")
    return line.removeprefix("tokenroof: ")


def test_refusals_are_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = rig(tmp_path)
    with held(asked.lock):
        assert run_measurement(asked, CATALOG, 0, 60, as_json=True) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "one at a time" in one_line(printed.err)
    for device, seconds, words in ((0, float("nan"), "5 to 600 seconds"), (-1, 60.0, "0 to 255"), (3, 60.0, "seen: 1")):
        assert run_measurement(asked, CATALOG, device, seconds, as_json=False) == 1
        assert words in one_line(capsys.readouterr().err)


def test_what_cannot_be_kept_is_printed_all_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a file").write_text("")
    asked = rig(tmp_path / "a file", lock=tmp_path / "lock")
    assert run_measurement(asked, CATALOG, 0, 60, as_json=True) == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out)["streams"]
    assert "could not be written" in printed.err


def test_ctrl_c_is_no_trace(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async def interrupted() -> tuple[()]:
        raise KeyboardInterrupt

    asked = rig(tmp_path)
    stopped = type(asked)(readings=interrupted, store=asked.store, libraries=asked.libraries, lock=asked.lock)
    assert run_measurement(stopped, CATALOG, 0, 60, as_json=False) == 1
    assert "stopped" in one_line(capsys.readouterr().err)
