"""Reads the style rules that plotly.js would inject at load out of its bundle, as a stylesheet.

The pages forbid inline styles, so they link this sheet under the id that makes plotly.js inject nothing:
`<link id="plotly.js-style-global" class="no-inline-styles" rel="stylesheet" href="…">`.
The bundle holds the rules as one object, `{"X .main-svg":"position:absolute;…", …}`, followed by a loop that puts
selectors in the place of X and Y and hands each pair to `insertRule(…, 0)`.
"""

import re
from collections.abc import Iterator

FEWEST_RULES = 50
"""plotly.js 4.1 has 66; far fewer means that its build changed and the reading below went wrong."""

_NAME = r"[\w$]+"
_STRING = r"\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'"
_PAIR = re.compile(rf"({_STRING}|{_NAME}):({_STRING})(,?)", re.DOTALL)
_LOOP = re.compile(
    rf"for\((?P<key>{_NAME}) in (?P<rules>{_NAME})\){_NAME}=(?P=key)"
    r"\.replace\(/\^,/,\" ,\"\)\.replace\(/X/g,\"(?P<x>[^\"]+)\"\)\.replace\(/Y/g,\"(?P<y>[^\"]+)\"\)"
)
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|(.))", re.DOTALL)


class PlotlyRulesNotFoundError(ValueError):
    """The bundle does not hold its style rules in the form this module knows."""

    def __init__(self, found: str) -> None:
        super().__init__(
            f"Cannot read the style rules of plotly.js out of its bundle: {found}. "
            "Its build has changed; compare app/web/plotly_css.py with addStyleRule in the bundle."
        )


def read_rules(bundle: str) -> list[tuple[str, str]]:
    """Selector and declarations of each injected rule, in cascade order. Raises PlotlyRulesNotFoundError."""
    loop = _LOOP.search(bundle)
    if loop is None:
        raise PlotlyRulesNotFoundError("the loop over the rules is not there")
    start = bundle.rfind(f"{loop['rules']}={{", 0, loop.start())
    if start < 0:
        raise PlotlyRulesNotFoundError("the object of the rules is not there")
    rules = [
        (selector.replace("X", loop["x"]).replace("Y", loop["y"]), declarations)
        for selector, declarations in _pairs(bundle, start + len(loop["rules"]) + 2)
    ]
    if len(rules) < FEWEST_RULES:
        raise PlotlyRulesNotFoundError(f"only {len(rules)} of at least {FEWEST_RULES} rules")
    # Every rule is inserted before the ones already there.
    return rules[::-1]


def stylesheet(bundle: str) -> str:
    """The injected rules as a CSS file. Raises PlotlyRulesNotFoundError."""
    lines = [f"{selector}{{{declarations}}}\n" for selector, declarations in read_rules(bundle)]
    return (
        "/* The style rules of plotly.js (Copyright Plotly, Inc.; MIT licence), read out of its bundle. */\n"
        + "".join(lines)
    )


def _pairs(bundle: str, position: int) -> Iterator[tuple[str, str]]:
    while pair := _PAIR.match(bundle, position):
        yield _literal(pair[1]), _literal(pair[2])
        position = pair.end()
    if bundle[position : position + 1] != "}":
        raise PlotlyRulesNotFoundError(f"a rule of unknown form, {bundle[position : position + 60]!r}")


def _literal(text: str) -> str:
    if text[0] not in "\"'":
        return text
    return _ESCAPE.sub(lambda found: chr(int(found[1] or found[2], 16)) if found[3] is None else found[3], text[1:-1])
