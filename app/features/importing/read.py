"""A configuration as it is imported: what was asked, what was read of it, and how a scenario then carries it.

Imports at the edge: fetching from the hub where that is asked, and refusals as problems with their suggestions.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, Any, Self

from pydantic import Field, field_validator, model_validator
from starlette.concurrency import run_in_threadpool

from app.calc.dtypes import Dtype
from app.calc.memory.cache import kv_bytes_per_sequence
from app.calc.model.architecture import Architecture
from app.calc.model.layers.parts import WeightGroup
from app.calc.model.parameters import ParameterCounts, count_parameters, weight_bytes
from app.checkpoint.keys import ConfigError, Suggestion, UnknownFamilyError
from app.checkpoint.reading import Reading, read_config
from app.checkpoint.text import dumps
from app.features.importing.hub import Hub
from app.scenario.parts import MAX_TEXT, Identifier, Part, Text
from app.scenario.refusal import Refusal
from app.scenario.resolve_parts import DEFAULT_NAME, path_in_model
from app.web.problem import ProblemError

MOST_KEYS = 400
# What decides how a file is read, whether or not a field came from it.
_NEEDED = frozenset({"model_type", "architectures", "quantization_config", "quantization", "compression_config"})
Config = Annotated[dict[str, Any], Field(max_length=MOST_KEYS)]


class ImportRequest(Part):
    """A Hugging Face configuration to be read: itself, or the name of its model on the hub."""

    config: Config | None = Field(None, description="A config.json, as an object.")
    quantization: Config | None = Field(None, description="The hf_quant_config.json beside it, where there is one.")
    hub: str | None = Field(
        None, description="owner/name on the hub, where the operator allows it.", min_length=3, max_length=200
    )
    read_as: Identifier | None = Field(None, description="Family to read a config of an unknown model_type as.")
    name: Text | None = Field(None, description="How the model is called; left out, what the source says.")

    @model_validator(mode="after")
    def _one_of(self) -> Self:
        if (self.config is None) == (self.hub is None):
            raise ValueError("Give a config, or the name of a model on the hub.")
        if self.hub is not None and self.quantization is not None:
            raise ValueError("quantization goes with a config; from the hub it comes along.")
        return self

    @field_validator("config", "quantization")
    @classmethod
    def _is_plain_json(cls, given: dict[str, Any] | None) -> dict[str, Any] | None:
        if given is not None:
            dumps(given)
        return given


@dataclass(frozen=True, slots=True)
class StoredGroup:
    """The weights of one group as the checkpoint stores them."""

    group: WeightGroup
    params: int
    element: Dtype
    bits_per_weight: float
    wide_params: int
    bytes: float


@dataclass(frozen=True)
class Imported:
    """A reading, with the files that it was read from."""

    reading: Reading
    config: Mapping[str, Any]
    quantization: Mapping[str, Any] | None
    asked_read_as: str | None
    source: Mapping[str, Any] | None = None

    @property
    def architecture(self) -> Architecture:
        """The model, its multi-token-prediction layers not loaded."""
        return self.reading.architecture

    @property
    def described(self) -> Architecture:
        """The model with the multi-token-prediction layers that it comes with."""
        return replace(self.architecture, mtp=self.reading.mtp)

    @cached_property
    def counts(self) -> ParameterCounts:
        return count_parameters(self.architecture)

    @property
    def kv_cache(self) -> Dtype:
        """The cache's type: what the checkpoint asks for, else bf16."""
        return self.reading.kv_cache or Dtype.BF16

    @cached_property
    def weight_bytes(self) -> float:
        """Bytes of everything a server loads, as shipped."""
        return weight_bytes(self.counts, self.reading.plan)

    @cached_property
    def stored(self) -> tuple[StoredGroup, ...]:
        """The weights group by group; a vision tower is not among them."""
        plan = self.reading.plan
        return tuple(
            StoredGroup(
                group,
                count.total,
                plan.layout(group).element,
                plan.layout(group).bits_per_weight,
                count.unquantized + count.vectors,
                count.bytes(group, plan),
            )
            for group, count in self.counts.groups.items()
            if count.total
        )

    def kv_bytes_per_token(self, context_tokens: int) -> float:
        """Cache and states of one sequence, divided by its tokens."""
        return float(kv_bytes_per_sequence(self.architecture, context_tokens, self.kv_cache)) / context_tokens

    @property
    def model(self) -> dict[str, Any]:
        """What stands under `model` in a scenario, so that the scenario stands alone."""
        return self._model(self.config, self.quantization)

    @cached_property
    def smallest_model(self) -> dict[str, Any]:
        """The same with as few keys as say the same: those that fields came from, else all but the unread ones."""
        sources = {f.key for f in self.reading.fields if f.key is not None}
        named = _only(self.config, lambda path: path.rpartition(".")[2] in _NEEDED or path in sources)
        known = _only(self.config, lambda path: path not in self.reading.unread)
        for config in (named, known):
            if self._says_the_same(config):
                return self._model(config, self.quantization)
        return self.model

    def _says_the_same(self, config: Mapping[str, Any]) -> bool:
        here = self.reading
        try:
            there = read_config(
                config, self.architecture.name, quantization=self.quantization, read_as=self.asked_read_as
            )
        except ConfigError:
            return False
        found, wanted = ((r.architecture, r.mtp, r.plan, r.kv_cache) for r in (there, here))
        return found == wanted

    def _model(self, config: Mapping[str, Any], quantization: Mapping[str, Any] | None) -> dict[str, Any]:
        model: dict[str, Any] = {"name": self.architecture.name, "config": dict(config)}
        if quantization is not None:
            model["quantization"] = dict(quantization)
        if self.asked_read_as is not None:
            model["read_as"] = self.asked_read_as
        return model


def read_import(request: ImportRequest, source: Mapping[str, Any] | None = None, name: str | None = None) -> Imported:
    """What a configuration says; `name` is taken where the request has none.

    Raises:
        ConfigError: it cannot be read, at the key; an UnknownFamilyError has suggestions.
    """
    config, quantization = request.config or {}, request.quantization
    called = request.name or name or DEFAULT_NAME
    reading = read_config(config, called, quantization=quantization, read_as=request.read_as)
    return Imported(reading, config, quantization, request.read_as, source)


def _only(block: Mapping[str, Any], is_kept: Callable[[str], bool], prefix: str = "") -> dict[str, Any]:
    """The keys that are kept, and those of the blocks inside; a block of which nothing is kept is left out."""
    kept: dict[str, Any] = {}
    for key, value in block.items():
        path = f"{prefix}{key}"
        if is_kept(path):
            kept[key] = value
        elif isinstance(value, dict) and (inside := _only(value, is_kept, f"{path}.")):
            kept[key] = inside
    return kept


UNREADABLE = 422


class UnreadableError(ProblemError):
    """A configuration that is not read, at the key; `suggestions` are families as which it could be."""

    def __init__(self, refusal: Refusal, suggestions: Sequence[Suggestion] = ()) -> None:
        self.suggestions = tuple(suggestions)
        super().__init__(UNREADABLE, "The configuration cannot be read; see errors.", [refusal])

    def document(self) -> dict[str, Any]:
        """The problem as a JSON object, with what could be answered to it."""
        offered = [{"read_as": one.read_as, "because": one.because} for one in self.suggestions]
        return super().document() | ({"suggestions": offered} if offered else {})


async def imported_from(asked: ImportRequest, hub: Hub) -> Imported:
    """What the configuration that is sent, or named on the hub, says.

    Raises:
        HubError: it cannot be had.
        UnreadableError: it cannot be read.
    """
    source, name = None, None
    if asked.hub is not None:
        found = await hub.fetch(asked.hub)
        source = {"hub": found.name, "commit": found.commit, "address": found.source}
        name = found.name[:MAX_TEXT]
        asked = asked.model_copy(update={"config": found.config, "quantization": found.quantization})
    try:
        return await run_in_threadpool(read_import, asked, source, name)
    except ConfigError as error:
        suggestions = error.suggestions if isinstance(error, UnknownFamilyError) else ()
        raise UnreadableError(Refusal(path_in_model(error), error.message), suggestions) from error
