"""Numbers as engines print them: thousands with commas, decimal commas, and memory whose "GB" means GiB."""

import re

NUMBER = r"-?[0-9][0-9.,]{0,24}"
MEMORY = NUMBER + r"[ ]?(?:[KMGT]i?B|bytes|B)\b"

_PLAIN = re.compile(r"-?[0-9]{1,20}(?:\.[0-9]{1,20})?")
_DECIMAL_COMMA = re.compile(r"-?[0-9]{1,20},[0-9]{1,2}")
_THOUSANDS_PARTS = 9
_MEMORY = re.compile(f"({NUMBER})[ ]?([A-Za-z]{{1,5}})")

# Every engine divides by powers of 1,024, whatever letter it prints behind the result.
_POWERS = {"B": 0, "bytes": 0, "K": 1, "M": 2, "G": 3, "T": 4}


def read_number(text: str) -> tuple[float, str] | None:
    """The number and the text that it was read from, without the comma or stop of the sentence behind it.

    Worked numbers: "188,512" is 188512, "1039,50" (a decimal comma) is 1039.5; "1,2,3" is none.
    """
    trimmed = text.rstrip(".,")
    if _PLAIN.fullmatch(trimmed):
        return float(trimmed), trimmed
    if _DECIMAL_COMMA.fullmatch(trimmed):
        return float(trimmed.replace(",", ".")), trimmed
    whole, stop, decimals = trimmed.partition(".")
    first, *groups = whole.lstrip("-").split(",")
    grouped = groups and len(groups) < _THOUSANDS_PARTS and 1 <= len(first) <= 3 and all(len(g) == 3 for g in groups)
    if not grouped or (stop and not decimals.isdigit()):
        return None
    return float(trimmed.replace(",", "")), trimmed


def read_memory(text: str, unit_left_out: str = "GiB") -> tuple[float, str] | None:
    """Bytes of a number with or without its unit, and the text with it.

    Worked number: "8.23 GB" is 8.23 × 2^30 bytes, for engines that print GB mean GiB.
    """
    matched = _MEMORY.fullmatch(text)
    number, unit = (matched[1], matched[2]) if matched else (text, unit_left_out)
    read = read_number(number)
    power = _POWERS.get(unit, _POWERS.get(unit[0]))
    if read is None or power is None:
        return None
    return read[0] * 1024.0**power, f"{read[1]} {unit}"
