"""What is worked out of each catalog model: the numbers that its page, the list of models and their JSON all show."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from app.calc.architecture import Architecture
from app.calc.broadcast import scalar
from app.calc.dtypes import WeightFormat
from app.calc.kv_cache import CacheShape, cache_shape, kv_bytes_per_sequence
from app.calc.mixer_kinds import MixerKind, model_kind
from app.calc.multi_head import multi_head_bytes_per_sequence
from app.calc.parameters import ParameterCounts, count_parameters, weight_bytes
from app.calc.weight_plan import convention
from app.catalog.catalog import Catalog
from app.catalog.checkpoints import Checkpoint
from app.catalog.engines import EngineRecord
from app.catalog.models import ModelRecord
from app.holding import CONTEXT_TOKENS, ENGINE, KV_CACHE, Load, loads

KV_CONTEXTS = (1_024, CONTEXT_TOKENS, 131_072)


@dataclass(frozen=True, slots=True)
class CacheAt:
    """The cache of one sequence at a context, in bf16. `multi_head_bytes` is the same with plain multi-head attention.

    `beyond_limit` marks a context that the model was not made for; the number is what the formula gives all the same.
    """

    context_tokens: int
    sequence_bytes: float
    multi_head_bytes: float | None
    beyond_limit: bool

    @property
    def bytes_per_token(self) -> float:
        """Divided by the tokens, states included."""
        return self.sequence_bytes / self.context_tokens

    @property
    def saving(self) -> float | None:
        """How many times less than with multi-head attention."""
        return self.multi_head_bytes / self.sequence_bytes if self.multi_head_bytes and self.sequence_bytes else None


@dataclass(frozen=True, slots=True)
class ShippedFiles:
    """One published set of files: what a server loads of it, what else is in it, and its published size where known."""

    checkpoint: Checkpoint
    loaded_bytes: float
    mtp_bytes: float
    duplicate_bytes: float

    @property
    def computed_bytes(self) -> float:
        """The files by our count."""
        return self.loaded_bytes + self.mtp_bytes + self.duplicate_bytes

    @property
    def difference_bytes(self) -> float | None:
        """Published less computed; None where no size is published."""
        published = self.checkpoint.file_bytes
        return None if published is None else published - self.computed_bytes


class ModelFacts:
    """The numbers of one model. Each is worked out when it is first asked for."""

    def __init__(self, record: ModelRecord, engine: EngineRecord) -> None:
        self.record, self._engine = record, engine

    @property
    def architecture(self) -> Architecture:
        """The model for the calculators."""
        return self.record.architecture

    @cached_property
    def counts(self) -> ParameterCounts:
        """Its parameters, multi-token prediction not loaded."""
        return count_parameters(self.architecture)

    @cached_property
    def kind(self) -> MixerKind:
        """The sort of its attention."""
        return model_kind(self.architecture)

    @cached_property
    def has_experts(self) -> bool:
        """True for a mixture of experts."""
        return self.architecture.has_experts

    @cached_property
    def cache_at(self) -> tuple[CacheAt, ...]:
        """The cache at each of `KV_CONTEXTS`."""
        return tuple(self._cache_at(tokens) for tokens in KV_CONTEXTS)

    def _cache_at(self, tokens: int) -> CacheAt:
        limit, plain = (
            self.architecture.max_position,
            multi_head_bytes_per_sequence(self.architecture, tokens, KV_CACHE),
        )
        return CacheAt(
            tokens,
            scalar(kv_bytes_per_sequence(self.architecture, tokens, KV_CACHE)),
            None if plain is None else scalar(plain),
            limit is not None and tokens > limit,
        )

    @cached_property
    def usual_cache(self) -> CacheAt:
        """The cache at 8,192 tokens."""
        return next(at for at in self.cache_at if at.context_tokens == CONTEXT_TOKENS)

    @cached_property
    def cache_shape(self) -> CacheShape:
        """What one sequence keeps, like layers together."""
        return cache_shape(self.architecture)

    @cached_property
    def files(self) -> tuple[ShippedFiles, ...]:
        """Every published set of files, the shipped one first."""
        return tuple(self._files(checkpoint) for checkpoint in self.record.checkpoints)

    def _files(self, checkpoint: Checkpoint) -> ShippedFiles:
        loaded = checkpoint.computed_bytes(self.architecture)
        if not checkpoint.carries_mtp or self.record.mtp is None:
            return ShippedFiles(checkpoint, loaded, 0, 0)
        with_mtp = checkpoint.computed_bytes(self.record.architecture_with_mtp)
        copies = self.record.mtp.duplicate_params or 0
        with_copies = checkpoint.computed_bytes(self.record.architecture_with_mtp, copies)
        return ShippedFiles(checkpoint, loaded, with_mtp - loaded, with_copies - with_mtp)

    @property
    def shipped(self) -> ShippedFiles:
        """The first of them: what "as shipped" means."""
        return self.files[0]

    @cached_property
    def weight_bytes(self) -> Mapping[WeightFormat, float]:
        """Bytes of the weights in every format that has a name."""
        return {fmt: weight_bytes(self.counts, convention(fmt, self.architecture)) for fmt in WeightFormat}

    @cached_property
    def mtp_params(self) -> int:
        """Parameters of the multi-token-prediction layers, copies of embedding and head aside."""
        return count_parameters(self.record.architecture_with_mtp).mtp_params

    @cached_property
    def loads(self) -> tuple[Load, ...]:
        """What one card, or several, have to hold of it."""
        return loads(self.architecture, self.record.native_plan, self._engine)


class ModelShelf:
    """The facts of every model of a catalog, each worked out once for as long as the application runs."""

    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog
        self.facts: Mapping[str, ModelFacts] = {
            id_: ModelFacts(record, catalog.engines[ENGINE]) for id_, record in catalog.models.items()
        }

    def derived_from(self, id_: str) -> list[ModelRecord]:
        """The models that name this one as the one they were made from."""
        records = (facts.record for facts in self.facts.values())
        return [record for record in records if record.lineage is not None and record.lineage.base == id_]
