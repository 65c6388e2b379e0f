"""Text that people typed, made safe to store and to show."""

import unicodedata

_REFUSED = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}  # controls, bidi marks, surrogates, private use, unassigned
_JOINERS = {"\u200c", "\u200d"}  # needed inside words of several scripts and inside emoji


def clean_text(text: str, *, keep_newlines: bool = False) -> str:
    """`text` in normal form C, trimmed, without control, bidirectional or unassigned characters.

    Raises:
        ValueError: nothing visible is left.
    """
    kept = []
    for character in unicodedata.normalize("NFC", text):
        wanted = character in _JOINERS or (keep_newlines and character == "\n")
        if wanted or unicodedata.category(character) not in _REFUSED:
            kept.append(character)
    cleaned = "".join(kept).strip()
    if not cleaned.strip("".join(_JOINERS)):
        raise ValueError("Nothing visible is left of this text.")
    return cleaned
