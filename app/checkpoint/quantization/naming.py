"""Which parts of a layer the entries of a quantization list mean.

A list may have thousands of names, so a name is looked up and never compared. Patterns are asked about all names of a
layer at once, and again for each layer only where its number matters to them.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

from app.calc.dtypes import WeightLayout
from app.checkpoint import limits
from app.checkpoint.keys import ConfigError, quoted
from app.checkpoint.quantization.parts import Part
from app.checkpoint.quantization.patterns import Effort, Matcher, PartIndex, PatternError, expression, glob, index_of

PREFIXES = (
    "model.layers.",
    "model.language_model.layers.",
    "language_model.model.layers.",
    "backbone.layers.",
    "transformer.h.",
    "layers.",
)
MTP_PREFIX = "mtp.layers."
MOST_TEXTS = 32
NOTHING = -1
"""The place of the rule for a part that no rule names."""
Layouts = tuple[WeightLayout | None, ...]
Places = tuple[int, ...]
"""For each part of a layer, the place of the rule that wins it."""


class Rule(NamedTuple):
    """What `pattern` names is stored in `layout`; None is the wide type. `key` is where the file says so.

    `must_name`: a file that means nothing of the model with it is not understood.
    """

    pattern: str
    layout: WeightLayout | None
    key: str
    must_name: bool = False


class Pattern(NamedTuple):
    """A rule's glob or expression; `by_number` is whether the number of a layer may matter to it."""

    place: int
    matcher: Matcher
    by_number: bool


@dataclass(slots=True)
class Naming:
    """Rules sorted by the layers they speak of; a later rule wins over an earlier one, a numbered one over all.

    What stands in these dictionaries is the place of a rule in `rules`.
    """

    rules: Sequence[Rule]
    effort: Effort
    by_layer: dict[int, dict[str, int]] = field(default_factory=dict)
    by_start: dict[str, int] = field(default_factory=dict)
    mtp: dict[str, int] = field(default_factory=dict)
    plain: dict[str, int] = field(default_factory=dict)
    last_steps: dict[str, int] = field(default_factory=dict)
    patterns: list[Pattern] = field(default_factory=list)
    globs: dict[str, tuple[int, Matcher]] = field(default_factory=dict)
    kinds: list[int] = field(default_factory=list)
    """For each rule a number that those of the same layout share."""
    named: set[int] = field(default_factory=set)
    """The rules that are known to mean something of the model."""
    _indexes: dict[int, tuple[tuple[Part, ...], PartIndex]] = field(default_factory=dict)
    _overlays: dict[tuple[object, ...], Places] = field(default_factory=dict)
    _texts: dict[tuple[PartIndex, str], bytes] = field(default_factory=dict)
    _meant: dict[tuple[object, ...], Places] = field(default_factory=dict)
    _found: dict[tuple[object, ...], Layouts] = field(default_factory=dict)

    def index(self, parts: tuple[Part, ...]) -> PartIndex:
        if id(parts) not in self._indexes:
            self._indexes[id(parts)] = parts, index_of(tuple(part.names for part in parts))
        return self._indexes[id(parts)][1]

    def tails(self, layer: int) -> dict[str, int]:
        """What is left, after the layer's number, of the rules that name it by that."""
        own = self.by_layer.get(layer, {})
        if not self.by_start:
            return own
        digits = str(layer)
        places = [self.by_start.get(digits[:end], NOTHING) for end in range(1, len(digits) + 1)]
        if max(places) == NOTHING:
            return own
        merged = own | {"": max(own.get("", NOTHING), *places)}
        return dict(sorted(merged.items(), key=lambda entry: entry[1]))

    def layouts(self, layer: int, parts: tuple[Part, ...], defaults: Layouts, mtp: int | None = None) -> Layouts:
        """The layout of each part of a layer; `mtp` is its number among the predicting layers, if it is one."""
        if not self.rules:
            return defaults
        index, tails = self.index(parts), self.tails(layer)
        numbered = tuple(self._parts_in(index, pattern, layer, mtp) for pattern in self.patterns if pattern.by_number)
        kinds = [self.kinds[place] for place in tails.values()]
        # Without order where it does not matter, so that like layers are asked about once.
        said = (frozenset(tails), *kinds[:1]) if len(set(kinds)) < 2 else tuple(zip(tails, kinds, strict=True))
        key = (index, defaults, said, numbered, mtp is not None)
        if key not in self._found:
            places = list(self._general(index, numbered, mtp))
            for tail, place in tails.items():
                for part in self.fitting(index, tail):
                    places[part] = place
            if mtp is not None:
                predicting = self._predicting(index)
                places = [new if new != NOTHING else old for old, new in zip(places, predicting, strict=True)]
            self._found[key] = tuple(
                default if place == NOTHING else self.rules[place].layout
                for place, default in zip(places, defaults, strict=True)
            )
        return self._found[key]

    def fitting(self, index: PartIndex, tail: str) -> Places:
        """The parts that a pattern for what is inside a layer means, by their names or by a box around them."""
        if tail not in self.globs:
            return index.boxes.get(tail, ())
        key = (tail, index)
        if key not in self._meant:
            self._meant[key] = self._parts_below(index, self.globs[tail], ("",))
        return self._meant[key]

    def _general(self, index: PartIndex, numbered: tuple[Places, ...], mtp: int | None) -> Places:
        """The rules without a layer's number, and what those mean here to which it matters."""
        key = (index, numbered, mtp is not None)
        if key not in self._overlays:
            hits = [(self.plain[text], index.paths[text]) for text in self.plain.keys() & index.paths.keys()]
            left = iter(numbered)
            for pattern in self.patterns:
                meant = next(left) if pattern.by_number else self._parts_in(index, pattern, 0, mtp and 0)
                if meant:
                    hits.append((pattern.place, meant))
            self.named.update(place for place, _ in hits)
            self._overlays[key] = _overlay(index, sorted(hits))
        return self._overlays[key]

    def _predicting(self, index: PartIndex) -> Places:
        """The rules that name predicting layers in a box of their own."""
        key = (index, "mtp")
        if key not in self._overlays:
            hits = [(place, self.fitting(index, tail)) for tail, place in self.mtp.items()]
            self.named.update(place for place, parts in hits if parts)
            self._overlays[key] = _overlay(index, hits)
        return self._overlays[key]

    def _parts_in(self, index: PartIndex, pattern: Pattern, layer: int, mtp: int | None) -> Places:
        """The parts that a pattern means of one layer, by all names that the layer may have in a model."""
        prefixes = PREFIXES[:1] if pattern.matcher.starts_anywhere else PREFIXES
        openings = [f"{prefix}{layer}." for prefix in prefixes]
        if mtp is not None:
            openings.append(f"{MTP_PREFIX}{mtp}.")
        return self._parts_below(index, (pattern.place, pattern.matcher), openings)

    def _parts_below(self, index: PartIndex, glob: tuple[int, Matcher], openings: Iterable[str]) -> Places:
        place, matcher = glob
        meant: set[int] = set()
        with self._blaming(place):
            for opening in openings:
                shared = min(len(opening), len(matcher.literal))
                if opening[:shared] == matcher.literal[:shared]:
                    for line in matcher.found(self._text(index, opening)):
                        meant.update(index.owners[line])
        return tuple(sorted(meant))

    def _text(self, index: PartIndex, opening: str) -> bytes:
        """The names of a layer's parts, a line each. Layers are asked about in turn: only the last ones are kept."""
        key = (index, opening)
        if key not in self._texts:
            if len(self._texts) > MOST_TEXTS:
                self._texts.clear()
            self._texts[key] = "\n".join(opening + name for name in index.names).encode()
        return self._texts[key]

    def names_whole(self, names: Sequence[str], default: WeightLayout | None) -> WeightLayout | None:
        best = max((self.last_steps.get(name, NOTHING) for name in names), default=NOTHING)
        for place, matcher, _ in self.patterns:
            with self._blaming(place):
                if matcher.matches(*names, *(f"model.{name}" for name in names)):
                    self.named.add(place)
                    best = max(best, place)
        return default if best == NOTHING else self.rules[best].layout

    @contextmanager
    def _blaming(self, place: int) -> Iterator[None]:
        try:
            yield
        except PatternError as error:
            raise _refusal(self.rules[place], error) from None


def _overlay(index: PartIndex, hits: Iterable[tuple[int, Places]]) -> Places:
    places = [NOTHING] * len(index.everything)
    for place, parts in hits:
        for part in parts:
            places[part] = place
    return tuple(places)


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
