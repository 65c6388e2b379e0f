"""What was logged or typed beside what the rules would have assumed, line by line, with the reason for a difference."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from app.calc.deployment import Deployment
from app.calc.measure import Measures
from app.calc.memory.capacity import Memory, memory
from app.calc.memory.engines.parts import NOTHING_GIVEN, Interval, Part
from app.calc.quantity import quantity

SAME = 0.005
"""Relative differences below this are rounding."""
NOTABLE_BYTES = 0.02 * 2**30
NEAR = 0.02
_AGREES = "Agrees."
_NEAR = "Nearly the same, and within the interval."


@dataclass(frozen=True, slots=True)
class Line:
    """One figure: `logged` as measured, `predicted` from the scenario alone with its interval; all in `unit`."""

    id: str
    label: str
    logged: float
    predicted: Interval
    unit: str
    reason: str

    @property
    def difference(self) -> float | None:
        """Predicted ÷ logged − 1; None where nothing was logged to divide by."""
        return self.predicted.mid / self.logged - 1 if self.logged > 0 else None

    @property
    def is_inside(self) -> bool:
        """True where the interval holds what was logged, or they agree."""
        return self.predicted.low <= self.logged <= self.predicted.high or self.reason == _AGREES


def compare(deployment: Deployment, measures: Measures) -> tuple[Line, ...]:
    """Every figure that was given or observed, beside its prediction; nothing where nothing was."""
    if deployment.engine.given == NOTHING_GIVEN and deployment.observed.is_empty:
        return ()
    alone = replace(deployment, engine=replace(deployment.engine, given=NOTHING_GIVEN))
    sides = _Sides(deployment, measures.memory, memory(alone))
    return (*sides.parts(), *sides.pool(), *sides.outcome())


@dataclass(frozen=True, slots=True)
class _Sides:
    """The memory with what was given, and without it."""

    deployment: Deployment
    held: Memory
    alone: Memory

    def parts(self) -> Iterator[Line]:
        given, rank = self.deployment.engine.given, self.alone.tightest
        if given.total_memory is not None:
            seen = Interval.exactly(rank.seen_bytes)
            yield _line("total_memory", "Memory that the engine sees", given.total_memory, seen, self._seen())
        if given.weights is not None:
            yield _line("weights", "Weights", given.weights, rank.weights, self._weights())
        sizes = {overhead.part: overhead.bytes for overhead in rank.overheads}
        for part, id_, label, value in (
            (Part.ACTIVATION, "activation", "Peak of the activations", given.activation),
            (Part.NON_FRAMEWORK, "non_framework", "Non-framework memory", given.non_framework),
            (Part.GRAPHS, "graphs", self._graphs_label(), given.graphs),
        ):
            if value is not None and part in sizes and (value or part is not Part.NON_FRAMEWORK):
                yield _line(id_, label, value, sizes[part], self._overhead(part, value))

    def _graphs_label(self) -> str:
        charged = self.alone.tightest.is_charged(Part.GRAPHS)
        return "CUDA graphs, as charged" if charged else "CUDA graphs, outside the share"

    def pool(self) -> Iterator[Line]:
        """The pool; of an engine that allocates what is asked for, that."""
        pool = self.deployment.engine.given.kv_pool
        asked = self._asked("pool")
        if pool is not None and asked is not None:
            reason = "Another type of the cache, slots that share one context, or windows at full length."
            yield _line("kv_pool", "Cache, as allocated", pool, Interval.exactly(asked), reason)
        elif pool is not None:
            yield _line("kv_pool", "Cache pool", pool, self.alone.tightest.pool, self._pool_parts(pool))

    def outcome(self) -> Iterator[Line]:
        """Tokens, blocks and concurrency: from the scenario alone, and from the pool that was given."""
        observed, has_pool = self.deployment.observed, self.deployment.engine.given.kv_pool is not None
        context = self._asked("context")
        if observed.kv_tokens is not None and context is not None:
            reason = "Slots × the longest context, as far as the scenario says both."
            yield _line(
                "kv_tokens", "Cells of the context", observed.kv_tokens, Interval.exactly(context), reason, "tokens"
            )
        elif observed.kv_tokens is not None:
            low, high = self.alone.kv_pool_tokens_interval
            sides = Interval(low, self.alone.kv_pool_tokens, high)
            follows = "Follows from the difference of the pool." if has_pool else self._tokens()
            yield _line("kv_tokens", "Tokens of the cache", observed.kv_tokens, sides, follows, "tokens")
            if has_pool:
                exact, label = Interval.exactly(self.held.kv_pool_tokens), "Tokens of the cache, from the pool above"
                yield _line("kv_tokens_of_pool", label, observed.kv_tokens, exact, self._of_pool(), "tokens")
        printed = {line.id: line.value for line in (self.held if has_pool else self.alone).log_lines}
        for id_, label, logged, key, unit in (
            ("gpu_blocks", "Blocks", observed.gpu_blocks, "blocks", "blocks"),
            ("max_concurrency", "Longest requests at a time", observed.max_concurrency, "concurrency", ""),
        ):
            if logged is not None and key in printed:
                reason = self._of_pool() if has_pool else "Follows from the predicted pool."
                yield _line(id_, label, logged, Interval.exactly(printed[key]), reason, unit)

    def _asked(self, id_: str) -> float | None:
        """What llama.cpp allocates because it is asked to, by the id of its line; None for an engine with a share."""
        lines = {line.id: line.value for line in self.alone.log_lines}
        return lines.get(id_) if "context" in lines else None

    def _seen(self) -> str:
        if self.deployment.engine.id == "sglang":
            return "SGLang reckons with what is free before loading: the context and other programs are taken off."
        return "Another card than named, another driver, or memory that other programs hold."

    def _weights(self) -> str:
        label = self.deployment.precision.weights.label
        return (
            f"What is loaded is not what {label} says of every tensor: parts that stay wide, a vision tower or draft "
            "layers loaded or left out, matrices filled up to whole tiles."
        )

    def _overhead(self, part: Part, logged: float) -> str:
        engine = self.deployment.engine
        if part is Part.ACTIVATION:
            more = logged > self.alone.tightest.overhead(part).mid
            unsaid = "" if engine.max_num_seqs else f" of {engine.profiled_seqs:,} sequences, the default,"
            if more:
                return "A vision encoder's profile, attention workspaces or a longer profiling pass than one step."
            return f"Sampler's buffers{unsaid} were smaller: fewer sequences, or a sampler that does not sort."
        if part is Part.NON_FRAMEWORK:
            return "Collectives and workspaces differ by topology and library; other programs may be counted in it."
        return "Graphs depend on how many batch sizes are captured; releases charge them, estimate them, or neither."

    def _pool_parts(self, logged: float) -> str:
        """The difference of the pool, taken apart into those of its parts."""
        given, rank, engine = self.deployment.engine.given, self.alone.tightest, self.deployment.engine
        missing = logged - rank.pool.mid
        found: list[tuple[str, float]] = []
        if given.total_memory is not None:
            found.append(("memory seen", engine.memory_utilization * (given.total_memory - rank.seen_bytes)))
        if given.weights is not None:
            found.append(("weights", rank.weights.mid - given.weights))
        for part, words, value in (
            (Part.ACTIVATION, "activations", given.activation),
            (Part.NON_FRAMEWORK, "non-framework memory", given.non_framework),
            (Part.GRAPHS, "graphs", given.graphs),
        ):
            if value is not None and rank.is_charged(part):
                found.append((words, rank.overhead(part).mid - value))
        rest = missing - sum(size for _, size in found)
        told = [f"{_signed(size)} by {words}" for words, size in found if abs(size) > NOTABLE_BYTES]
        if abs(rest) > NOTABLE_BYTES:
            told.append(f"{_signed(rest)} that no line of the log accounts for")
        return f"The log has {_signed(missing)}: {', '.join(told)}." if told else f"The log has {_signed(missing)}."

    def _tokens(self) -> str:
        return "Overheads, weights or the card differ from what is assumed; the log's memory lines would tell which."

    def _of_pool(self) -> str:
        if self.deployment.split.gpus > 1:
            return "The log's memory line is one rank's, and the smallest rank decides; or the block size differs."
        return "The pool is printed with two digits; or blocks are of another size than assumed."


def _line(id_: str, label: str, logged: float, predicted: Interval, reason: str, unit: str = "B") -> Line:
    difference = abs(predicted.mid - logged)
    if difference <= SAME * abs(logged) or (unit == "B" and difference <= NOTABLE_BYTES):
        reason = _AGREES
    elif difference <= NEAR * abs(logged) and predicted.low <= logged <= predicted.high:
        reason = _NEAR
    return Line(id_, label, float(logged), predicted, unit, reason)


def _signed(size: float) -> str:
    return f"{quantity(abs(size), 'B', 3, binary=True)} {'more' if size > 0 else 'less'}"
