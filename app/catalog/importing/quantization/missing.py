"""Entries of quantization lists that mean nothing of the model: told or refused, never taken for silence."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from app.catalog.importing.errors import ConfigError, quoted
from app.catalog.importing.provenance import Ledger
from app.catalog.importing.quantization.naming import Naming
from app.catalog.importing.quantization.part_index import PartIndex
from app.catalog.importing.quantization.part_names import Part
from app.catalog.importing.quantization.parts import parts_of
from app.catalog.importing.recipe import Body

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
