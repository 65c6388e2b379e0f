"""A pasted text made ready for reading: within limits, one message a line, no colours, containers unwrapped."""

import json
import re

from app.startup_log.reading import LogError

MOST_BYTES = 1024 * 1024
MOST_LINES = 20_000

# Colours with their escape character, as journals write it out, and with it lost in copying.
_COLOUR = re.compile(r"(?:\x1b|\^\[|#033)?\[[0-9;]{1,12}m")
_TITLE = re.compile(r"\x1b\][^\x07\x1b\n]{0,200}\x07?")
_CURSOR = re.compile(r"\x1b\[[0-9;?]{0,12}[A-Za-z]")
_BREAKS = re.compile(r"[\r\n]+")

# Where log collectors keep the message of a JSON line.
_MESSAGE_KEYS = ("log", "message", "msg", "MESSAGE", "line", "text", "event")


def clean_lines(text: str) -> str:
    """The lines of a log, joined by line feeds.

    Raises:
        LogError: it is too long, or empty.
    """
    if len(text) > MOST_BYTES or len(text.encode("utf-8", "surrogatepass")) > MOST_BYTES:
        raise LogError("This log is longer than 1 MiB. Paste the part from the engine's start to its first request.")
    if text.count("\n") > MOST_LINES:
        raise LogError(
            f"This log has more than {MOST_LINES:,} lines. Paste the part from the engine's start to its first request."
        )
    # Half of a text in UTF-16 is NULs; without them the rest can be read.
    plain = text.replace("\0", "")
    for noise in (_COLOUR, _TITLE, _CURSOR):
        plain = noise.sub("", plain)
    lines = [line for raw in _BREAKS.split(plain) for line in _messages(raw)]
    if not any(line.strip() for line in lines):
        raise LogError("There is nothing in this log.")
    return "\n".join(lines)


def _messages(line: str) -> list[str]:
    """The line itself, or the message inside a line of JSON."""
    stripped = line.strip()
    if not (stripped.startswith("{") and stripped.endswith("}")):
        return [line]
    try:
        entry = json.loads(stripped)
    except (ValueError, RecursionError):
        return [line]
    for key in _MESSAGE_KEYS:
        message = entry.get(key)
        if isinstance(message, str):
            return _BREAKS.split(_COLOUR.sub("", message.replace("\0", "")))
    return [line]
