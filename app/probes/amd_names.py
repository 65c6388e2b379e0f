"""What an AMD card is called, where only the kernel can be asked: by its maker's plate, or by its number."""

import re
from pathlib import Path

from app.probes.kernel_file import read_text
from app.probes.plausible import text
from app.probes.reading import Absence, Reading

NAMES = Path("/usr/share/libdrm/amdgpu.ids")
"""libdrm's list of names by device and revision, there wherever its driver for these cards is installed."""

_LIMIT_BYTES = 1_000_000
_LINE = re.compile(r"^([0-9A-F]{1,4}),\s*([0-9A-F]{1,2}),\s*(\S[^\r\n]*)$", re.ASCII | re.IGNORECASE | re.MULTILINE)
_HEXADECIMAL = re.compile(r"0x([0-9a-f]{1,8})", re.ASCII | re.IGNORECASE)


class CardNames:
    """Names by the files of a card; `names` is libdrm's list, read when it is first needed and then kept."""

    def __init__(self, names: Path = NAMES) -> None:
        self._names = names
        self._by_number: dict[tuple[int, int], str] | None = None

    def name_of(self, device: Path) -> Reading[str]:
        """The name in the card's own memory (server cards), in libdrm's list, or "AMD GPU 1002:744c" after its number.

        `read_from` says which. An absence where the card does not even tell its number.
        """
        plate = text(read_text(device / "product_name"))
        if plate.value is not None:
            return Reading(plate.value, read_from="product_name")
        number, revision = (_hexadecimal(read_text(device / file)) for file in ("device", "revision"))
        if isinstance(number, Absence):
            return Reading.missing(number)
        listed = None if isinstance(revision, Absence) else text(self._list().get((number, revision)))
        if listed is not None and listed.value is not None:
            return Reading(listed.value, read_from="amdgpu.ids")
        return Reading(f"AMD GPU 1002:{number:04x}", read_from="device")

    def _list(self) -> dict[tuple[int, int], str]:
        if self._by_number is None:
            content = read_text(self._names, _LIMIT_BYTES)
            lines = [] if isinstance(content, Absence) else _LINE.findall(content)
            self._by_number = {(int(number, 16), int(revision, 16)): name for number, revision, name in lines}
        return self._by_number


def _hexadecimal(content: str | Absence) -> int | Absence:
    if isinstance(content, Absence):
        return content
    found = _HEXADECIMAL.fullmatch(content)
    return int(found[1], 16) if found else Absence.IMPLAUSIBLE
