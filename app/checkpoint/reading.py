"""A configuration read as an architecture, with the classification heads that stand on it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from app.calc.dtypes import Dtype
from app.calc.model.architecture import Architecture, MultiTokenPrediction, SidePath
from app.calc.model.parameters import WeightPlan, named
from app.checkpoint import limits
from app.checkpoint.families import BY_MODEL_TYPE, FAMILIES, NO_DECODER, NOT_COMPUTED, suggest
from app.checkpoint.keys import ConfigError, FieldReading, Keys, Ledger, Origin, Suggestion, UnknownFamilyError, quoted
from app.checkpoint.nesting import Located, locate
from app.checkpoint.quantization.reading import read_quantization
from app.checkpoint.recipe import Body, Family
from app.checkpoint.structural import refuse_unread_structures, unread_keys
from app.checkpoint.vision import read_vision

DRAFT = re.compile(r"Eagle(?!2)|Medusa|Speculator|Draft|NextN|MTP(Model)?$")
"""Classes of heads that guess tokens for another model. Eagle 2 and 2.5 are vision models of the same name."""
DRAFT_KEYS = ("draft_vocab_size", "eagle_config", "medusa_num_heads", "medusa_num_layers", "speculators_model_type")
DRAFT_TYPES = ("eagle", "eagle3", "medusa", "mlp_speculator", "speculators")
CLASSIFIERS = re.compile(r"For(Sequence|Token)Classification$")
HEADED = ("chatglm",)
"""Model types whose class has a head, although it is called a bare model."""
LABELS = ("num_labels", "id2label")


def named_class(whole: Keys) -> str:
    """The first of the classes that the file names; empty where it names none."""
    names = whole.values.get("architectures")
    first = names[0] if isinstance(names, list) and names else None
    return first if isinstance(first, str) else ""


def refuse_drafts(whole: Keys) -> None:
    """Raise for a head that guesses tokens for another model.

    Raises:
        ConfigError: the class or a key says so.
    """
    name = named_class(whole)
    says = "a head that guesses tokens for another model, and no model of its own: it is not computed."
    if DRAFT.search(name):
        raise ConfigError("architectures", f"{quoted(name)} is {says}")
    if whole.values.get("model_type") in DRAFT_TYPES:
        raise ConfigError("model_type", f"{quoted(whole.values['model_type'])} is {says}")
    for key in DRAFT_KEYS:
        if whole.has(key):
            raise whole.refused(key, f"belongs to {says}")


def without_head(located: Located, body: Body) -> Body:
    """The body as the class named has it: one without a head over the vocabulary may have a classifier instead."""
    name = named_class(located.whole)
    classifies = CLASSIFIERS.search(name)
    if not classifies and not _is_bare(name, located):
        return body
    says = f"{quoted(name)} has no head over the vocabulary: none is counted among the weights"
    located.whole.ledger.notice(f"{says}, and times are those of a head that reads the embedding.")
    paths = body.side_paths
    if classifies:
        paths = (*paths, *_classifier(located, body.frame.hidden_size, bias=classifies[1] == "Token"))
    return replace(body, frame=replace(body.frame, tied_embeddings=True), head_bias=False, side_paths=paths)


def _is_bare(name: str, located: Located) -> bool:
    """Whether it is the class of the model type, called a model and nothing else."""
    if not name.endswith("Model"):
        return False
    types = {located.model_type, located.whole.values.get("model_type")} - set(HEADED)
    return _plain(name.removesuffix("Model")) in {_plain(kind) for kind in types if isinstance(kind, str)}


def _plain(name: str) -> str:
    return name.replace("_", "").replace("-", "").lower()


def _classifier(located: Located, hidden_size: int, *, bias: bool) -> tuple[SidePath, ...]:
    """One matrix from hidden size to labels, of which there are two where no key says how many."""
    whole = located.whole
    count, names = whole.values.get(LABELS[0]), whole.values.get(LABELS[1])
    whole.passed_over(*LABELS)
    if count is None:
        count = len(names) if isinstance(names, Mapping) else 2
    if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= limits.COUNT:
        whole.ledger.notice("How many labels its classifier tells apart is unclear: the classifier is not counted.")
        return ()
    whole.ledger.derive("classifier", count * hidden_size, "labels × hidden size")
    return (SidePath("classifier", count * hidden_size, vectors=count if bias else 0),)


__all__ = [
    "FAMILIES",
    "ConfigError",
    "FieldReading",
    "Origin",
    "Reading",
    "Suggestion",
    "UnknownFamilyError",
    "read_config",
]


@dataclass(frozen=True, slots=True)
class Reading:
    """What a configuration says. `architecture` holds no multi-token prediction; `mtp` is what could be loaded of it.

    `plan` is how the weights are shipped, `kv_cache` the cache's type if the files prescribe one. `read_as` is the
    family that an unknown model type was read as. `unread` are keys that nothing looked at.
    """

    architecture: Architecture
    mtp: MultiTokenPrediction | None
    plan: WeightPlan
    kv_cache: Dtype | None
    family: str
    model_type: str
    read_as: str | None
    fields: tuple[FieldReading, ...]
    unread: tuple[str, ...]
    notices: tuple[str, ...]


def read_config(
    config: Mapping[str, Any],
    name: str,
    *,
    quantization: Mapping[str, Any] | None = None,
    read_as: str | None = None,
) -> Reading:
    """What `config` says of a model's architecture, and of the formats its weights are shipped in.

    Args:
        config: keys and values of a config.json (or of Mistral's params.json).
        name: how the model is called.
        quantization: the hf_quant_config.json beside it, if there is one.
        read_as: the id of a family to read it as, whatever model type it says.

    Raises:
        UnknownFamilyError: a model type that is not known; with suggestions where its keys are familiar.
        ConfigError: with the key that is missing, impossible, contradictory, or that names a part not computed.
    """
    if not isinstance(config, Mapping):
        raise ConfigError("config", "must be an object of keys and values.")
    ledger = Ledger()
    refuse_drafts(Keys(config, "", ledger))
    located = locate(config, ledger)
    family = _family(located, read_as)
    body = without_head(located, _read(located, family))
    vision = read_vision(located, body.frame.hidden_size)
    shipped = read_quantization(located, quantization, body)
    body = shipped.body
    frame = body.frame
    architecture = Architecture(
        name=name,
        hidden_size=frame.hidden_size,
        vocab_size=frame.vocab_size,
        layers=body.layers,
        order=body.order,
        tied_embeddings=frame.tied_embeddings,
        max_position=frame.max_position,
        learned_positions=body.learned_positions,
        norm_bias=body.norm_bias,
        head_bias=body.head_bias,
        vision_params=vision,
        side_paths=body.side_paths,
    )
    if ledger.fields["hidden_size"].origin is Origin.DEFAULT:
        ledger.notice("The file leaves sizes out: they are the model class's own sizes, marked as defaults.")
    is_other = read_as is not None and BY_MODEL_TYPE.get(located.model_type) is not family
    if is_other:
        ledger.notice(f"The model type {quoted(located.model_type)} is read as {family.title} ({family.id}), as asked.")
    unread = unread_keys(located.text)
    if located.is_nested:
        unread += unread_keys(located.whole)
    unread += shipped.unread
    return Reading(
        architecture=architecture,
        mtp=body.mtp,
        plan=named(shipped.plan, architecture),
        kv_cache=shipped.kv_cache,
        family=family.id,
        model_type=located.model_type,
        read_as=family.id if is_other else None,
        fields=tuple(ledger.fields.values()),
        unread=tuple(dict.fromkeys(unread)),
        notices=tuple(ledger.notices),
    )


def _read(located: Located, family: Family) -> Body:
    body = family.read(located.text)
    refuse_unread_structures(located.text)
    return body


def _family(located: Located, read_as: str | None) -> Family:
    """The family of the model type, or the one asked for.

    Raises:
        ConfigError: neither is known.
    """
    if read_as is not None:
        if read_as not in FAMILIES:
            raise ConfigError("read_as", f"{quoted(read_as)} is no family that is read here.")
        return FAMILIES[read_as]
    known = BY_MODEL_TYPE.get(located.model_type)
    if known is not None:
        return known
    shown, key = quoted(located.model_type), located.type_key
    if located.model_type in NO_DECODER:
        raise ConfigError(key, f"{shown} is no decoder-only language model; only those are computed.")
    if located.model_type in NOT_COMPUTED:
        raise ConfigError(key, f"{shown} has {NOT_COMPUTED[located.model_type]}, which is not computed.")
    text = located.text

    def can_read(family: Family) -> None:
        _read(replace(located, text=replace(text, ledger=Ledger())), family)

    suggestions = suggest(text, located.whole.values.get("architectures"), can_read)
    raise UnknownFamilyError(key, f"{shown} is not known here, and is not guessed.", suggestions)
