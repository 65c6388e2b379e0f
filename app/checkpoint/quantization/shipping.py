"""Rules of a dialect applied to a model: one layout for each weight group, and the layers where one does not hold."""

import re
from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from app.calc.dtypes import Dtype, WeightLayout
from app.calc.model.architecture import LayerGroup, MultiTokenPrediction
from app.calc.model.layers.parts import WeightGroup
from app.calc.model.parameters import LAYER_MATRICES, NATIVE, WeightPlan
from app.checkpoint.keys import ConfigError, Ledger, quoted
from app.checkpoint.quantization.naming import Layouts, Naming, Rule, sort_rules
from app.checkpoint.quantization.parts import Part, parts_of
from app.checkpoint.quantization.patterns import Effort, PartIndex
from app.checkpoint.recipe import Body

HEAD_NAMES = ("lm_head", "output", "head", "embed_out", "output_layer", "ff_out")
EMBEDDING_NAMES = ("embed_tokens", "embeddings", "wte", "word_embeddings", "embed_in", "tok_embeddings", "embed")
_OTHER_MODELS = r"vis|audio|speech|image|projector|mm_|merger|mtp|nextn"
OTHER_MODELS = re.compile(_OTHER_MODELS)
"""In names of what stands beside a language model."""
NO_MATRICES = re.compile(
    rf"{_OTHER_MODELS}|norm|ln_|conv|bias|embed|rotary|head|sinks|A_log|dt_|scale|e_score|shared_expert_gate|wpe|eh_proj"
)
"""In names that real lists carry though they are no matrices that a plan counts."""
SHOWN = 3


def tell_missed(
    assigned: Naming, ignored: Naming, layers: Sequence[tuple[Part, ...]], body: Body, ledger: Ledger
) -> None:
    """Notices of the entries that name nothing, once all layers have been asked about.

    Raises:
        ConfigError: an entry that must name something does not.
    """
    for naming, what in ((assigned, "A format is given to"), (ignored, "The list of what is not quantized names")):
        if not naming.rules:
            continue
        indexes = dict(enumerate(naming.index(parts) for parts in layers))
        for group in body.mtp.layers if body.mtp else ():
            indexes[len(indexes)] = naming.index(parts_of(replace(group, count=1), body.frame.hidden_size))
        rules = [naming.rules[place] for place in missed(naming, indexes, (*HEAD_NAMES, *EMBEDDING_NAMES))]
        for rule in rules:
            if rule.must_name and not OTHER_MODELS.search(rule.pattern):
                raise ConfigError(rule.key, f"{quoted(rule.pattern)} names nothing that is known here.")
        found = [rule for rule in rules if not NO_MATRICES.search(rule.pattern)]
        if found:
            shown = ", ".join(quoted(rule.pattern) for rule in found[:SHOWN])
            more = f" and {len(found) - SHOWN:,} more" if len(found) > SHOWN else ""
            ledger.notice(f"{what} what this model has not: {shown}{more}.")


def missed(naming: Naming, layers: Mapping[int, PartIndex], outside: Iterable[str]) -> list[int]:
    """The places of the rules that mean nothing of the model. All layers must have been asked about before.

    Args:
        naming: the rules.
        layers: the index of each layer, the predicting ones after the others.
        outside: the names of matrices that stand outside the layers.
    """
    named, beside = naming.named, frozenset(outside)
    found = [pattern.place for pattern in naming.patterns if pattern.place not in named]
    found += [
        place for text, place in naming.plain.items() if place not in named and text.rpartition(".")[2] not in beside
    ]
    found += [place for place in naming.mtp.values() if place not in named]
    for layer, tails in naming.by_layer.items():
        index = layers.get(layer)
        found += [place for tail, place in tails.items() if index is None or not naming.fitting(index, tail)]
    starts = {digits[:end] for digits in map(str, layers) for end in range(1, len(digits) + 1)}
    found += [place for start, place in naming.by_start.items() if start not in starts]
    return sorted(found)


MIXTURE = "a mixture, averaged over its elements"


@dataclass(frozen=True, slots=True)
class Dialect:
    """What quantization settings say, whatever their spelling.

    `layout` is that of every matrix of `groups` (None: of those only that a rule names); `by_group` differs from it.
    `rules` name what has another layout, the later ones winning; what `ignored` names is wide whatever they say.
    """

    layout: WeightLayout | None = None
    groups: tuple[WeightGroup, ...] = LAYER_MATRICES
    by_group: Mapping[WeightGroup, WeightLayout] = field(default_factory=dict)
    rules: tuple[Rule, ...] = ()
    ignored: tuple[Rule, ...] = ()
    kv_cache: Dtype | None = None


@dataclass(frozen=True, slots=True)
class Shipped:
    """The model with its layers split where a list leaves some of them wide, and the plan of its files.

    `unread` are keys of the settings that nothing looked at.
    """

    body: Body
    plan: WeightPlan
    kv_cache: Dtype | None = None
    unread: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Verdicts:
    """What is assigned, and then what is ignored."""

    assigned: Naming
    ignored: Naming

    def layouts(self, layer: int, parts: tuple[Part, ...], defaults: Layouts, mtp: int | None = None) -> Layouts:
        return self.ignored.layouts(layer, parts, self.assigned.layouts(layer, parts, defaults, mtp), mtp)

    def names_whole(self, names: Sequence[str], default: WeightLayout | None) -> WeightLayout | None:
        return self.ignored.names_whole(names, self.assigned.names_whole(names, default))


@dataclass(slots=True)
class _Sums:
    """Parameters of one weight group by layout, over the layers in which it is not all wide."""

    params: dict[WeightLayout | None, int] = field(default_factory=dict)

    def add(self, layout: WeightLayout | None, params: int) -> None:
        self.params[layout] = self.params.get(layout, 0) + params


def ship(body: Body, wide: WeightLayout, dialect: Dialect, ledger: Ledger, effort: Effort) -> Shipped:
    """The plan, with a mixture within a group averaged over its elements, to the bit.

    Raises:
        ConfigError: a pattern that is not understood, or that means nothing of the model where it must.
    """
    naming = Verdicts(sort_rules(dialect.rules, effort), sort_rules(dialect.ignored, effort))
    hidden = body.frame.hidden_size
    parts = [parts_of(replace(group, count=1), hidden) for group in body.layers]
    defaults = [tuple(_default(part, dialect) for part in own) for own in parts]
    each = [(number, naming.layouts(layer, parts[number], defaults[number])) for layer, number in enumerate(body.order)]
    kept, sums = _sum_up(each, parts)
    plan_groups = _narrow(sums, wide, ledger)
    layers, order = _split(body, each, kept, set(plan_groups))
    mtp = body.mtp and _split_mtp(body.mtp, body, naming, dialect, plan_groups, ledger)
    there = {part.group for own in parts for part in own}
    plan_groups |= _absent(dialect, plan_groups, there) | _outside(naming, dialect, body)
    tell_missed(naming.assigned, naming.ignored, [parts[number] for number in body.order], body, ledger)
    plan = WeightPlan(NATIVE, wide, tuple(sorted(plan_groups.items())))
    return Shipped(replace(body, layers=layers, order=order, mtp=mtp), plan, dialect.kv_cache)


def _absent(
    dialect: Dialect, narrow: Mapping[WeightGroup, WeightLayout], there: Container[WeightGroup]
) -> dict[WeightGroup, WeightLayout]:
    """A group that the model has not is stored in the one layout of the others as truly as in any other."""
    layout, groups = dialect.layout, [group for group in dialect.groups if group in LAYER_MATRICES]
    if layout is None and {narrow.get(group) for group in groups if group in there} == set(narrow.values()):
        layout = next(iter(narrow.values())) if len(set(narrow.values())) == 1 else None
    return {} if layout is None else {group: layout for group in groups if group not in there}


def _default(part: Part, dialect: Dialect) -> WeightLayout | None:
    if part.stays_wide:
        return None
    if part.group in dialect.by_group:
        return dialect.by_group[part.group]
    return dialect.layout if part.group in dialect.groups else None


Kept = dict[tuple[int, Layouts], frozenset[WeightGroup]]
"""For each kind of layer and each verdict on its parts, the groups that are all wide there."""


def _sum_up(
    each: Sequence[tuple[int, Layouts]], parts: Sequence[tuple[Part, ...]]
) -> tuple[Kept, dict[WeightGroup, _Sums]]:
    counts: dict[tuple[int, Layouts], int] = {}
    for kind in each:
        counts[kind] = counts.get(kind, 0) + 1
    kept: Kept = {}
    sums: dict[WeightGroup, _Sums] = {}
    for (number, layouts), count in counts.items():
        present = dict.fromkeys(part.group for part in parts[number])
        narrow = {part.group for part, layout in zip(parts[number], layouts, strict=True) if layout is not None}
        kept[number, layouts] = frozenset(group for group in present if group not in narrow)
        for part, layout in zip(parts[number], layouts, strict=True):
            if part.group in narrow:
                sums.setdefault(part.group, _Sums()).add(layout, count * part.params)
    return kept, sums


def _narrow(sums: Mapping[WeightGroup, _Sums], wide: WeightLayout, ledger: Ledger) -> dict[WeightGroup, WeightLayout]:
    found = {}
    for group, counted in sums.items():
        layouts = {layout or wide: params for layout, params in counted.params.items()}
        if len({(layout.element, layout.bits_per_weight) for layout in layouts}) == 1:  # a mixture in words alone
            found[group] = max(layouts, key=lambda layout: layouts[layout])
            continue
        found[group] = mixture(layouts)
        said = ", ".join(f"{params:,} at {layout.bits_per_weight:g} bits" for layout, params in layouts.items())
        ledger.notice(f"The matrices of {group.replace('_', ' ')} are stored in a mixture: {said}.")
    return found


def mixture(params: Mapping[WeightLayout, int]) -> WeightLayout:
    """One layout with as many bits as all of these elements take together: exact in sum, averaged in each place.

    Worked number: 1 element of 16 bits and 3 of 8 are a layout of 8-bit elements with 8 bits more for each 4.
    """
    element = min((layout.element for layout in params), key=lambda dtype: dtype.bits)
    count = sum(params.values())
    bits = sum(
        elements * layout.element.bits + elements * layout.scale_bits // layout.block_elements
        for layout, elements in params.items()
    )
    return WeightLayout(element, count, bits - count * element.bits, MIXTURE)


def _split(
    body: Body, each: Sequence[tuple[int, Layouts]], kept: Kept, narrow: set[WeightGroup]
) -> tuple[tuple[LayerGroup, ...], tuple[int, ...]]:
    """Layers apart in which a group stays wide that is narrow elsewhere."""
    numbers: dict[tuple[int, frozenset[WeightGroup]], int] = {}
    order: list[int] = []
    for number, layouts in each:
        kind = (number, kept[number, layouts] & narrow)
        order.append(numbers.setdefault(kind, len(numbers)))
    counts = Counter(order)
    layers = tuple(
        replace(body.layers[number], count=counts[place], unquantized=wide) for (number, wide), place in numbers.items()
    )
    return layers, tuple(order)


def _split_mtp(
    mtp: MultiTokenPrediction,
    body: Body,
    naming: Verdicts,
    dialect: Dialect,
    narrow: Mapping[WeightGroup, WeightLayout],
    ledger: Ledger,
) -> MultiTokenPrediction:
    """The predicting layers with the groups marked that stay wide in them."""
    groups, layer = [], len(body.order)
    for place, group in enumerate(mtp.layers):
        parts = parts_of(replace(group, count=1), body.frame.hidden_size)
        defaults = tuple(_default(part, dialect) for part in parts)
        layouts = naming.layouts(layer, parts, defaults, place)
        quantized = {part.group for part, layout in zip(parts, layouts, strict=True) if layout is not None}
        if any(layout and _differs(narrow.get(p.group), layout) for p, layout in zip(parts, layouts, strict=True)):
            ledger.notice("Multi-token-prediction layers in another format are counted in that of the other layers.")
        wide = frozenset(part.group for part in parts if part.group not in quantized and part.group in narrow)
        groups.append(replace(group, unquantized=wide))
        layer += 1
    return replace(mtp, layers=tuple(groups))


def _differs(counted: WeightLayout | None, layout: WeightLayout) -> bool:
    return counted is not None and counted.description != MIXTURE and counted != layout


def _outside(naming: Verdicts, dialect: Dialect, body: Body) -> dict[WeightGroup, WeightLayout]:
    """Layouts of embedding and head, where they are not wide. A tied head is the embedding."""
    found = {}
    for group, names in ((WeightGroup.EMBEDDING, EMBEDDING_NAMES), (WeightGroup.HEAD, HEAD_NAMES)):
        layout = naming.names_whole(names, dialect.layout if group in dialect.groups else None)
        if layout is not None and not (group is WeightGroup.HEAD and body.frame.tied_embeddings):
            found[group] = layout
    return found
