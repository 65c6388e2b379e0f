"""A probe over the real pynvml binding with a fake library behind it."""

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from app.machine.probes.nvidia import NvidiaProbe


@pytest.fixture
def clock() -> Any:
    return import_module("tests.machine.probes.fake_nvml").FakeClock()


@pytest.fixture
def probe_of(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, clock: Any) -> Callable[[object], NvidiaProbe]:
    fake = import_module("tests.machine.probes.fake_nvml")
    (tmp_path / "meminfo").write_text(fake.MEMINFO, encoding="ascii")

    def build(library: object) -> NvidiaProbe:
        fake.install(library, monkeypatch)
        return NvidiaProbe(clock=clock, meminfo=tmp_path / "meminfo", sysfs=tmp_path / "sys")

    return build
