"""A published config.json read into an architecture and the plan its weights are shipped in, field by field."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from app.calc.architecture import Architecture, MultiTokenPrediction
from app.calc.dtypes import Dtype
from app.calc.weight_plan import WeightPlan, named
from app.catalog.importing.errors import ConfigError, Suggestion, UnknownFamilyError, quoted
from app.catalog.importing.families import BY_MODEL_TYPE, FAMILIES, NO_DECODER, NOT_COMPUTED
from app.catalog.importing.family import Family
from app.catalog.importing.heads import refuse_drafts, without_head
from app.catalog.importing.keys import Keys
from app.catalog.importing.nesting import Located, locate
from app.catalog.importing.noise import unread_keys
from app.catalog.importing.provenance import FieldReading, Ledger, Origin
from app.catalog.importing.quantization.reading import read_quantization
from app.catalog.importing.recipe import Body
from app.catalog.importing.structural import refuse_unread_structures
from app.catalog.importing.suggestions import suggest
from app.catalog.importing.vision import read_vision

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
