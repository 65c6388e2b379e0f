"""Which parts of a layer the names, globs and expressions of a quantization list mean."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from app.calc.dtypes import WeightLayout
from app.catalog.importing.errors import ConfigError, quoted
from app.catalog.importing.quantization.automaton import Automaton, PatternError, glob
from app.catalog.importing.quantization.expressions import expression
from app.catalog.importing.quantization.part_names import Part

PREFIXES = (
    "model.layers.{}.",
    "model.language_model.layers.{}.",
    "language_model.model.layers.{}.",
    "backbone.layers.{}.",
    "transformer.h.{}.",
    "layers.{}.",
)
MTP_PREFIX = "mtp.layers.{}."
INDEXED = re.compile(
    r"(?P<box>(?:[^*?]*\.)?)(?:layers|h|blocks)\.(?P<index>[0-9]{1,6})(?:\.(?P<tail>.*)|(?P<star>\*.*))?"
)
ONE_EXPERT = re.compile(r"experts\.[0-9]{1,6}(?=\.|$)")
ENDINGS = (".weight", ".bias", ".weight_scale")
MOST_EXPRESSIONS = 64
EXPRESSION = "re:"


@dataclass(frozen=True, slots=True)
class Rule:
    """What `pattern` names is stored in `layout`; None is the wide type. `key` is where the file says so."""

    pattern: str
    layout: WeightLayout | None
    key: str


@dataclass(frozen=True, slots=True)
class _Tail:
    """A rule for one layer or any: what is left of its pattern after the layer's number."""

    text: str
    layout: WeightLayout | None


def _text(tail: _Tail) -> str:
    return tail.text


@dataclass(slots=True)
class Naming:
    """Rules sorted by the layers they speak of; a later rule wins over an earlier one."""

    by_layer: dict[int, dict[_Tail, None]] = field(default_factory=dict)
    by_start: list[tuple[str, _Tail]] = field(default_factory=list)
    mtp: list[_Tail] = field(default_factory=list)
    general: list[tuple[str, Automaton | None, WeightLayout | None, bool]] = field(default_factory=list)
    _globs: dict[str, Automaton] = field(default_factory=dict)
    _found: dict[tuple[object, ...], tuple[WeightLayout | None, ...]] = field(default_factory=dict)

    def tails(self, layer: int) -> tuple[_Tail, ...]:
        """The rules that name the layer by its number."""
        started = (tail for start, tail in self.by_start if str(layer).startswith(start))
        tails = (*self.by_layer.get(layer, ()), *started)
        # Without order where it does not matter, so that like layers are asked about once.
        return tuple(sorted(tails, key=_text)) if len({tail.layout for tail in tails}) == 1 else tails

    def layouts(
        self, layer: int, parts: tuple[Part, ...], defaults: tuple[WeightLayout | None, ...], mtp: int | None = None
    ) -> tuple[WeightLayout | None, ...]:
        """The layout of each part of a layer; `mtp` is its number among the predicting layers, if it is one."""
        tails = self.tails(layer)
        by_number = any(numbered for *_, numbered in self.general)
        key = (id(parts), defaults, tails, mtp, layer if by_number else None)
        if key not in self._found:
            self._found[key] = tuple(
                self._layout(part, default, layer, tails, mtp) for part, default in zip(parts, defaults, strict=True)
            )
        return self._found[key]

    def _layout(
        self, part: Part, default: WeightLayout | None, layer: int, tails: Sequence[_Tail], mtp: int | None
    ) -> WeightLayout | None:
        found = default
        for text, automaton, layout, _ in self.general:
            if self._means(text, automaton, part.names, layer, mtp):
                found = layout
        for tail in (*tails, *(self.mtp if mtp is not None else ())):
            if any(self._fits(tail.text, name) for name in part.names):
                found = tail.layout
        return found

    def _fits(self, text: str, name: str) -> bool:
        """Whether a pattern for what is inside a layer means `name`, or a box around it."""
        if "*" in text or "?" in text:
            if text not in self._globs:
                self._globs[text] = glob(text)
            return self._globs[text].matches(name)
        return not text or name == text or name.startswith(f"{text}.")

    def _means(self, text: str, automaton: Automaton | None, names: Iterable[str], layer: int, mtp: int | None) -> bool:
        """Whether a pattern without a layer's number means one of the names."""
        if automaton is None:
            return any(f".{text}." in f".{name}." for name in names)
        prefixes: Sequence[str] = PREFIXES if mtp is None else (*PREFIXES, MTP_PREFIX)
        if automaton.starts_anywhere:
            prefixes = prefixes[:1] if mtp is None else (PREFIXES[0], MTP_PREFIX)
        starts = [prefix.format(mtp if prefix is MTP_PREFIX else layer) for prefix in prefixes]
        return any(automaton.matches(start + name) for name in names for start in starts)

    def names_whole(self, names: Sequence[str], default: WeightLayout | None) -> WeightLayout | None:
        """The layout of a matrix that stands outside the layers."""
        found = default
        for text, automaton, layout, _ in self.general:
            if automaton is None:
                meant = any(text == name or text.endswith(f".{name}") for name in names)
            else:
                meant = any(automaton.matches(prefix + name) for name in names for prefix in ("", "model."))
            if meant:
                found = layout
        return found


def sort_rules(rules: Iterable[Rule]) -> Naming:
    """The rules ready to be asked.

    Raises:
        ConfigError: a pattern that is not understood; it is never passed over.
    """
    naming, expressions = Naming(), 0
    for rule in rules:
        if rule.pattern.startswith(EXPRESSION):
            expressions += 1
            if expressions > MOST_EXPRESSIONS:
                raise ConfigError(rule.key, f"has more than {MOST_EXPRESSIONS} expressions.")
            naming.general.append(_expression(rule))
            continue
        pattern = _bare(rule.pattern)
        indexed = INDEXED.fullmatch(pattern)
        if indexed is None:
            try:
                automaton = glob(pattern) if "*" in pattern or "?" in pattern else None
            except PatternError as error:
                raise _refusal(rule, error) from None
            naming.general.append((pattern, automaton, rule.layout, False))
            continue
        tail = _Tail(indexed["tail"] or "", rule.layout)
        if indexed["box"].startswith("mtp."):
            naming.mtp.append(tail)
        elif indexed["star"]:
            naming.by_start.append((indexed["index"], tail))
        elif not indexed["box"].startswith(("vision", "model.vision", "visual", "model.visual", "audio")):
            naming.by_layer.setdefault(int(indexed["index"]), {})[tail] = None
    return naming


def _expression(rule: Rule) -> tuple[str, Automaton, WeightLayout | None, bool]:
    text = rule.pattern.removeprefix(EXPRESSION)
    try:
        automaton = expression(text)
    except PatternError as error:
        raise _refusal(rule, error) from None
    numbered = any(letter.isdigit() for letter in text)
    return text, automaton, rule.layout, numbered


def _refusal(rule: Rule, error: PatternError) -> ConfigError:
    return ConfigError(rule.key, f"the pattern {quoted(rule.pattern)} {error}")


def _bare(pattern: str) -> str:
    """The name of a module: without the tensor's own name, and the first expert standing for all."""
    for ending in ENDINGS:
        pattern = pattern.removesuffix(ending)
    return ONE_EXPERT.sub("experts.0", pattern)
