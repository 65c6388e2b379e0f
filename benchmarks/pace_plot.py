"""A log-log picture of pace against throughput as SVG text: a line, its band, and marks."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM = 720, 460, 70, 48, 20, 56
INK, MUTED, GRID, LINE, BAND, MARK = "#1f2630", "#5b6470", "#e2e6ea", "#96651a", "#f0dfc6", "#0b5cab"
Points = Sequence[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Line:
    """The expected curve, and the outline of its interval."""

    points: Points
    outline: Points


@dataclass(frozen=True, slots=True)
class Mark:
    """One measured point with its label."""

    x: float
    y: float
    label: str


def plot(title: str, line: Line, marks: Sequence[Mark]) -> str:
    """The picture; x is tokens/s of a user, y tokens/s of a GPU."""
    everything = [*line.points, *line.outline, *((mark.x, mark.y) for mark in marks)]
    xs, ys = (
        _Axis([x for x, _ in everything], LEFT, WIDTH - RIGHT),
        _Axis([y for _, y in everything], HEIGHT - BOTTOM, TOP),
    )

    def path(points: Points) -> str:
        return " ".join(f"{xs.at(x):.1f},{ys.at(y):.1f}" for x, y in points)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" '
        'font-size="12">',
        f"<title>{escape(title)}</title>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
        f'<text x="{LEFT}" y="26" font-size="14" font-weight="600" fill="{INK}">{escape(title)}</text>',
    ]
    for value in xs.ticks():
        parts.append(f'<path d="M{xs.at(value):.1f} {TOP}V{HEIGHT - BOTTOM}" stroke="{GRID}"/>')
        parts.append(_text(xs.at(value), HEIGHT - BOTTOM + 18, f"{value:,g}", "middle"))
    for value in ys.ticks():
        parts.append(f'<path d="M{LEFT} {ys.at(value):.1f}H{WIDTH - RIGHT}" stroke="{GRID}"/>')
        parts.append(_text(LEFT - 8, ys.at(value) + 4, f"{value:,g}", "end"))
    parts += [
        f'<polygon points="{path(line.outline)}" fill="{BAND}"/>',
        f'<polyline points="{path(line.points)}" fill="none" stroke="{LINE}" stroke-width="2.5" '
        'stroke-dasharray="3 4"/>',
    ]
    for mark in marks:
        parts.append(f'<circle cx="{xs.at(mark.x):.1f}" cy="{ys.at(mark.y):.1f}" r="4.5" fill="{MARK}"/>')
        parts.append(_text(xs.at(mark.x) + 8, ys.at(mark.y) - 6, mark.label, "start"))
    parts += [
        _text(
            (LEFT + WIDTH - RIGHT) / 2, HEIGHT - 12, "tokens/s of each user; numbers are requests at a time", "middle"
        ),
        f'<text x="16" y="{(TOP + HEIGHT - BOTTOM) / 2}" fill="{MUTED}" text-anchor="middle" '
        f'transform="rotate(-90 16 {(TOP + HEIGHT - BOTTOM) / 2})">tokens/s of each GPU</text>',
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" fill="{MUTED}" text-anchor="{anchor}">{escape(text)}</text>'


class _Axis:
    """A logarithmic axis over the values, with a little room at both ends."""

    def __init__(self, values: Sequence[float], first: float, last: float) -> None:
        low, high = math.log10(min(values)), math.log10(max(values))
        room = 0.05 * (high - low) or 0.1
        self._low, self._high, self._first, self._last = low - room, high + room, first, last

    def at(self, value: float) -> float:
        """The place of a value."""
        share = (math.log10(value) - self._low) / (self._high - self._low)
        return self._first + share * (self._last - self._first)

    def ticks(self) -> list[float]:
        """1, 2 and 5 of every decade inside."""
        decades = range(math.floor(self._low), math.ceil(self._high) + 1)
        found = [m * 10.0**e for e in decades for m in (1, 2, 5)]
        return [value for value in found if self._low <= math.log10(value) <= self._high]
