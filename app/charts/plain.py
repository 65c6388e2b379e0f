"""User text on its way into a figure.

Plotly reads a few tags, `%{…}` templates and `$…$` in titles, names, labels and hover text; a name must stay a name.
"""

_ESCAPES = str.maketrans(
    {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;", "$": "&#36;", "%": "&#37;", "@": "&#64;"}
)
MOST_CHARACTERS = 60


def plain(text: str) -> str:
    """`text` as a literal, cut to a length that fits a label."""
    cut = text if len(text) <= MOST_CHARACTERS else f"{text[: MOST_CHARACTERS - 1]}…"
    return cut.translate(_ESCAPES)
