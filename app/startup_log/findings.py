"""The partial scenario as it grows, its values kept within what a scenario can hold."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from app.startup_log.reading import Missing, Told


@dataclass(frozen=True, slots=True)
class Field:
    """A field of the scenario: what it is called, and its bounds where it is a number."""

    label: str
    least: float | None = None
    most: float | None = None
    whole: bool = True
    asked_for: bool = True


def _bytes(label: str, least: float = 0) -> Field:
    return Field(label, least, 1e15, whole=False)


# The bounds are those of app.scenario; a test holds the two together.
FIELDS: Mapping[str, Field] = {
    "model.id": Field("Model"),
    "model.mtp": Field("Multi-token prediction", asked_for=False),
    "hardware.id": Field("Accelerator"),
    "hardware.count": Field("Accelerators", 1, 10**6),
    "precision.weights": Field("Weight format"),
    "precision.kv_cache": Field("Element type of the cache"),
    "parallelism.tensor": Field("Tensor parallelism", 1, 1024),
    "parallelism.pipeline": Field("Pipeline stages", 1, 1024),
    "parallelism.expert": Field("Expert parallelism", 1, 4096, asked_for=False),
    "parallelism.data": Field("Data-parallel attention", 1, 4096, asked_for=False),
    "parallelism.decode_context": Field("Decode context parallelism", 1, 1024, asked_for=False),
    "engine.id": Field("Engine"),
    "engine.version": Field("Release"),
    "engine.memory_utilization": Field("Memory setting", 0.01, 1, whole=False),
    "engine.max_model_len": Field("Longest sequence", 1, 10**8),
    "engine.max_num_seqs": Field("Sequences at a time", 1, 10**6),
    "engine.max_batched_tokens": Field("Tokens of a prefill step", 1, 10**8),
    "engine.block_size": Field("Tokens of a block", 1, 65536),
    "engine.prefix_caching": Field("Prefix caching"),
    "engine.enforce_eager": Field("No CUDA graphs", asked_for=False),
    "engine.total_memory_bytes": _bytes("Memory of the card as the engine sees it", 1),
    "engine.weights_bytes": _bytes("Loaded weights"),
    "engine.activation_bytes": _bytes("Peak of the activations"),
    "engine.non_framework_bytes": _bytes("Memory that is neither weights nor activations"),
    "engine.graph_bytes": _bytes("CUDA graphs, as far as they are charged"),
    "engine.kv_pool_bytes": _bytes("Cache pool", 1),
    "techniques.speculative.draft_tokens": Field("Guessed tokens", 1, 64, asked_for=False),
    "techniques.speculative.draft.id": Field("Draft model", asked_for=False),
    "observed.kv_tokens": Field("Tokens of the cache", 0, 10**12),
    "observed.gpu_blocks": Field("Blocks of the cache", 0, 10**12),
    "observed.max_concurrency": Field("Longest requests at a time", 0, 1e9, whole=False),
}


@dataclass(slots=True)
class Findings:
    """What has been found so far."""

    values: dict[str, str | float | bool] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def tell(self, path: str, value: str | float | bool | None) -> None:
        """Fill a field, unless nothing is known or the number is none that a scenario can hold."""
        if value is None:
            return
        described = FIELDS[path]
        if described.least is None or described.most is None:
            self.values[path] = str(value) if isinstance(value, str) else value  # an enum's member as its word
            return
        number = float(value)
        if not described.least <= number <= described.most or (described.whole and number != int(number)):
            self.note(f"{described.label}: {number:,.6g} is left out, for a scenario cannot hold it.")
            return
        self.values[path] = int(number) if described.whole else number

    def note(self, sentence: str) -> None:
        """Add a sentence, once."""
        if sentence not in self.notes:
            self.notes.append(sentence)

    def document(self) -> dict[str, Any]:
        """The fields as a nested document, in the order of the table."""
        document: dict[str, Any] = {}
        for path in FIELDS:
            if path in self.values:
                inner = document
                *parents, last = path.split(".")
                for key in parents:
                    inner = inner.setdefault(key, {})
                inner[last] = self.values[path]
        return document

    def told(self) -> tuple[Told, ...]:
        """The filled fields."""
        return tuple(Told(path, f.label, self.values[path]) for path, f in FIELDS.items() if path in self.values)

    def missing(self, does_not_apply: tuple[str, ...]) -> tuple[Missing, ...]:
        """The fields that a log of this engine may fill and this one does not."""
        return tuple(
            Missing(path, f.label)
            for path, f in FIELDS.items()
            if f.asked_for and path not in self.values and path not in does_not_apply
        )
