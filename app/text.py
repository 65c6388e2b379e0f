"""Text that people typed, made safe to store and to show."""

import unicodedata

_REFUSED = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}  # controls, bidi marks, surrogates, private use, unassigned
_JOINERS = {"\u200c", "\u200d"}  # needed inside words of several scripts and inside emoji


def clean_text(text: str) -> str:
    """One line of `text` in normal form C, trimmed, without control, bidirectional or unassigned characters.

    Raises:
        ValueError: nothing visible is left.
    """
    cleaned = _without_refused(text, keep=_JOINERS)
    if not cleaned.strip("".join(_JOINERS)):
        raise ValueError("Nothing visible is left of this text.")
    return cleaned


def clean_notes(text: str) -> str:
    """The same for several lines, which may be empty."""
    return _without_refused(text.replace("\r\n", "\n"), keep=_JOINERS | {"\n"})


def _without_refused(text: str, keep: set[str]) -> str:
    kept = "".join(c for c in text if c in keep or unicodedata.category(c) not in _REFUSED)
    # Normal form last: what was removed may have stood between a letter and its mark.
    return unicodedata.normalize("NFC", kept).strip()


def within(text: str, most: int) -> str:
    """`text`, unless it is too long. To be asked after cleaning: normal form C can lengthen a text.

    Raises:
        ValueError: more than `most` characters.
    """
    if len(text) > most:
        raise ValueError(f"At most {most:,} characters.")
    return text
