"""Rules sorted before they are asked: names by the layer they name, globs and expressions made ready."""

import re
from collections.abc import Iterable

from app.calc.dtypes import WeightLayout
from app.catalog.importing import limits
from app.catalog.importing.errors import ConfigError, quoted
from app.catalog.importing.quantization.naming import Naming, Pattern, Rule
from app.catalog.importing.quantization.patterns import Effort, Matcher, PatternError, expression, glob

INDEXED = re.compile(
    r"(?P<box>(?:[^*?]*\.)?)(?:layers|h|blocks)\.(?P<index>[0-9]{1,6})(?:\.(?P<tail>.*)|(?P<star>\*))?"
)
ONE_EXPERT = re.compile(r"experts\.[0-9]{1,6}(?=\.|$)")
ENDINGS = (".weight", ".bias", ".weight_scale")
MOST_EXPRESSIONS = 64
NAME = 1000
"""What a name costs, in letters."""
EXPRESSION = "re:"
TOWERS = re.compile(r"vis|audio|speech|image")
INDIFFERENT = re.compile(r"\.\*|\\\.")
NUMBERED = re.compile(r"[0-9.\[\]\\]")
"""What an expression may tell one layer's number from another's with, once what is `INDIFFERENT` is taken out."""


def sort_rules(rules: Iterable[Rule], effort: Effort | None = None) -> Naming:
    """The rules ready to be asked.

    Raises:
        ConfigError: a pattern that is not understood, or more of them than are compared; none is ever passed over.
    """
    naming = Naming(tuple(rules), effort or Effort())
    layouts: dict[WeightLayout | None, int] = {}
    last: tuple[WeightLayout | None, int] | None = None
    if naming.rules:
        try:
            naming.effort.spend(NAME * len(naming.rules))
        except PatternError as error:
            raise _refusal(naming.rules[0], error) from None
    for place, rule in enumerate(naming.rules):
        if last is None or rule.layout is not last[0]:
            last = rule.layout, layouts.setdefault(rule.layout, len(layouts))
        naming.kinds.append(last[1])
        if rule.pattern.startswith(EXPRESSION):
            _add_expression(naming, place, rule)
        else:
            _add_name(naming, place, rule)
    return naming


def _add_expression(naming: Naming, place: int, rule: Rule) -> None:
    text = rule.pattern.removeprefix(EXPRESSION)
    before = [naming.rules[pattern.place].pattern for pattern in naming.patterns]
    if sum(text.startswith(EXPRESSION) for text in before) >= MOST_EXPRESSIONS:
        raise ConfigError(rule.key, f"has more than {MOST_EXPRESSIONS} expressions.")
    try:
        matcher = expression(text, naming.effort)
    except PatternError as error:
        raise _refusal(rule, error) from None
    naming.patterns.append(Pattern(place, matcher, bool(NUMBERED.search(INDIFFERENT.sub("", text)))))


def _add_name(naming: Naming, place: int, rule: Rule) -> None:
    pattern = _bare(rule.pattern)
    has_wildcard = "*" in pattern or "?" in pattern
    indexed = INDEXED.fullmatch(pattern)
    if indexed is None:
        if has_wildcard:
            by_number = "?" in pattern or any(letter.isdigit() for letter in pattern)
            naming.patterns.append(Pattern(place, _glob(naming, place, rule, pattern), by_number))
            return
        _put(naming.plain, pattern, place)
        naming.last_steps[pattern.rpartition(".")[2]] = place
        return
    box, index, tail, star = indexed.groups()
    tail = tail or ""
    if has_wildcard and not star:
        _glob(naming, place, rule, tail)
    if f".{box}".endswith(".mtp."):
        _put(naming.mtp, tail, place)
    elif TOWERS.search(box):
        return
    elif star:
        naming.by_start[index] = place
    else:
        _put(naming.by_layer.setdefault(int(index), {}), tail, place)


def _put(names: dict[str, int], name: str, place: int) -> None:
    """Set it last, so that what stands in a dictionary stays in the order of the rules."""
    names.pop(name, None)
    names[name] = place


def _glob(naming: Naming, place: int, rule: Rule, text: str) -> Matcher:
    if text not in naming.globs:
        if len(naming.globs) >= limits.GLOBS:
            raise ConfigError(rule.key, f"has more than {limits.GLOBS} different patterns with wildcards.")
        try:
            naming.globs[text] = place, glob(text, naming.effort)
        except PatternError as error:
            raise _refusal(rule, error) from None
    return naming.globs[text][1]


def _refusal(rule: Rule, error: PatternError) -> ConfigError:
    return ConfigError(rule.key, f"the pattern {quoted(rule.pattern)} {error}")


def _bare(pattern: str) -> str:
    """The name of a module: without the tensor's own name, and the first expert standing for all."""
    if pattern.endswith(ENDINGS):
        for ending in ENDINGS:
            pattern = pattern.removesuffix(ending)
    if "switch_mlp" in pattern:  # MLX's word
        pattern = pattern.replace("switch_mlp", "experts")
    return ONE_EXPERT.sub("experts.0", pattern) if "experts." in pattern else pattern
