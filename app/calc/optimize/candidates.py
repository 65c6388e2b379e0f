"""Single changes that may be worth a try: each a patch on the scenario, and the deployment that it leads to.

What was measured under the old conditions is forgotten where a change ends them; a measured pool rules out every change
that only moves the pool, because nothing is known of the other one.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from app.calc.deployment import Deployment
from app.calc.dtypes import Dtype, WeightFormat
from app.calc.measure import Measures
from app.calc.memory.capacity import memory
from app.calc.memory.engines.parts import MOST_CARDS, MOST_CONCURRENT, Part
from app.calc.memory.rank import holds
from app.calc.model.attention_variants import Alternative
from app.calc.model.layers.latent_attention import LatentAttention, SpannedLatentAttention, SparseLatentAttention
from app.calc.model.parameters import convention
from app.calc.model.split import Split, SplitError
from app.calc.optimize.optimization import Candidate
from app.calc.optimize.registry import candidates as optimizations_not_used
from app.calc.sweep import MEASURED_PARTS, OF_CARD, forgetting, patch_of
from app.calc.verdict import State, needed_in, state_of

MOST_STAGES = 8
LARGEST_SHARE = 0.95
"""Above it little is left for what an engine does not foresee."""
SMALL_STEP_TOKENS = 2048
LEAST_SEQUENCES = 16
NOTABLE_ACTIVATIONS = 0.02
"""Of the engine's share: below it a smaller batch would move nothing."""
FASTER = 1.1
SLACK = 1.05
"""The share of the next card that an engine may use differs by no more: some reckon after a fixed part."""
_WIDTHS = tuple(2**n for n in range(1, MOST_CARDS.bit_length()))


def candidates(deployment: Deployment, measures: Measures, alternatives: Sequence[Alternative]) -> Iterator[Candidate]:
    """Every change to look at; whether it helps is for the caller to measure."""
    asked = _Asked(deployment, measures, tuple(alternatives))
    for find in _EVERYWHERE:
        yield from find(asked)
    yield from optimizations_not_used(deployment)
    if asked.state is not State.FITS and asked.pool_follows:
        for find in _WHERE_MEMORY_IS_SHORT:
            yield from find(asked)


@dataclass(frozen=True, slots=True)
class _Asked:
    """What is evaluated now, and its numbers."""

    deployment: Deployment
    measures: Measures
    alternatives: tuple[Alternative, ...] = field(repr=False)

    @property
    def state(self) -> State:
        return state_of(self.deployment, self.measures)

    @property
    def pool_follows(self) -> bool:
        """True where the pool is computed, so that it follows from what changes."""
        return self.deployment.engine.given.kv_pool is None

    def forgetting(self, *names: str) -> tuple[Deployment, dict[str, None]]:
        """The deployment without measurements that a change would make untrue, and the patch that drops them."""
        return forgetting(self.deployment, *names)


def _narrower_cache(asked: _Asked) -> Iterator[Candidate]:
    precision = asked.deployment.precision
    if precision.kv_cache.bits > Dtype.FP8.bits:
        changed = replace(asked.deployment, precision=replace(precision, kv_cache=Dtype.FP8))
        yield Candidate({"precision": {"kv_cache": "fp8"}}, "Keep the cache in FP8", changed)


def _narrower_weights(asked: _Asked) -> Iterator[Candidate]:
    """Narrower weights. A measured pool is kept: they would leave at least as much room for it."""
    deployment, forgotten = asked.forgetting("weights")
    precision, rates = deployment.precision, deployment.rates
    bits, model, wide = precision.weights.narrowest.element.bits, deployment.architecture, deployment.wide_dtype
    choices = [
        (WeightFormat.FP8, Dtype.FP8, Dtype.FP8 if Dtype.FP8 in rates else wide),
        (WeightFormat.INT4, Dtype.INT4, wide),
    ]
    for weights, element, compute in choices:
        if bits <= element.bits:
            continue
        changed = replace(precision, weights=convention(weights, model), compute=compute)
        name = str(weights).upper()
        label = f"Weights in {name}, arithmetic in {str(compute).upper()}"
        if compute is Dtype.FP8:
            label = f"Weights and arithmetic in {name}"
        patch = patch_of(forgotten, precision={"weights": str(weights), "compute": str(compute)})
        yield Candidate(patch, label, replace(deployment, precision=changed))


def _other_concurrency(asked: _Asked) -> Iterator[Candidate]:
    fitting = min(asked.measures.memory.max_concurrency, MOST_CONCURRENT)
    wanted = asked.deployment.workload.concurrency
    if wanted is None or fitting < 1 or fitting == wanted:
        return
    changed = replace(asked.deployment, workload=replace(asked.deployment.workload, concurrency=fitting))
    verb = "Serve as many at a time as fit" if fitting > wanted else "Serve fewer at a time"
    yield Candidate({"workload": {"concurrency": fitting}}, f"{verb}: {fitting:,}", changed)


def _shorter_prompt(asked: _Asked) -> Iterator[Candidate]:
    workload = asked.deployment.workload
    prompt = asked.measures.memory.max_context_tokens - workload.output_tokens
    if asked.state is not State.DOES_NOT_FIT or not 1 <= prompt < workload.prompt_tokens:
        return
    changed = replace(asked.deployment, workload=replace(workload, prompt_tokens=prompt))
    yield Candidate({"workload": {"prompt_tokens": prompt}}, f"Shorten the prompt to {prompt:,} tokens", changed)


def _shorter_served(asked: _Asked) -> Iterator[Candidate]:
    """An engine that would not start, because of a longest sequence (or slots of it) that no request needs."""
    held, engine = asked.measures.memory, asked.deployment.engine
    is_too_long = held.refuses_to_start or held.tightest.reserved_bytes > held.per_gpu.kv_pool_bytes
    slots = engine.max_num_seqs or 1 if held.allocates_what_is_asked else 1
    length = held.tightest.plan.longest(held.per_gpu.kv_pool_bytes, slots) or 0
    if not is_too_long or length < asked.deployment.workload.total_tokens:
        return
    changed = replace(asked.deployment, engine=replace(engine, max_model_len=length))
    yield Candidate({"engine": {"max_model_len": length}}, f"Serve sequences of at most {length:,} tokens", changed)


def _context_ranks(asked: _Asked) -> Iterator[Candidate]:
    """Latents are copied to every tensor rank; decode context parallelism shares their tokens out instead."""
    split = asked.deployment.split
    mixers = (group.mixer for group in asked.deployment.architecture.layers)
    latent = any(
        isinstance(mixer, (LatentAttention, SpannedLatentAttention, SparseLatentAttention)) for mixer in mixers
    )
    if not latent or split.tensor == 1 or split.decode_context > 1 or not asked.pool_follows:
        return
    changed = replace(asked.deployment, split=replace(split, decode_context=split.tensor))
    patch = {"parallelism": {"decode_context": split.tensor}}
    yield Candidate(patch, f"Share the cache’s tokens out among {split.tensor:,} GPUs (DCP)", changed)


def _next_card(asked: _Asked) -> Iterator[Candidate]:
    """The smallest card that holds what this one cannot; or, where it fits, the next one with more bandwidth."""
    if not asked.pool_follows:
        return  # a pool measured on this card says nothing of another's
    deployment, forgotten = asked.forgetting(*OF_CARD)
    here, basis, short = deployment.accelerator, deployment.memory_basis, asked.state is State.DOES_NOT_FIT
    least = here.bandwidth_bytes_per_s * (1 if short else FASTER)
    held = asked.measures.memory
    bare = needed_in(deployment, held) - held.tightest.held_back_bytes  # no engine needs less
    usable = min(1.0, SLACK * held.budget_bytes / held.tightest.seen_bytes)
    found = [
        other
        for other in asked.alternatives
        if other.accelerator.id != here.id
        and deployment.precision.compute in other.accelerator.peak_flops_per_s
        and other.accelerator.memory_bytes(basis) * usable >= bare
        and other.accelerator.bandwidth_bytes_per_s >= least
    ]
    size = {id(other): other.accelerator.memory_bytes(basis) for other in found}
    pace = {id(other): other.accelerator.bandwidth_bytes_per_s for other in found}
    first, second = (size, pace) if short else (pace, size)
    for other in sorted(found, key=lambda other: (first[id(other)], second[id(other)])):
        card, changed = other.accelerator, other.carrying(deployment)
        if holds(changed):
            yield Candidate(patch_of(forgotten, hardware={"id": card.id}), f"Move to {card.name}", changed, True)
            return


def _more_gpus(asked: _Asked) -> Iterator[Candidate]:
    """The fewest further GPUs that hold it: tensor ranks as far as they divide and a node goes, then stages."""
    deployment, forgotten = asked.forgetting(*MEASURED_PARTS)
    held, split, budget = asked.measures.memory, deployment.split, asked.measures.memory.budget_bytes
    total = sum(rank.weights.mid for rank in held.ranks)
    for tried in _wider(deployment):
        ratio = tried.tensor // split.tensor * tried.pipeline
        if total / ratio > budget:
            continue  # not even an even share of the weights fits
        changed = replace(deployment, split=tried)
        if holds(changed):
            patch = patch_of(
                forgotten,
                hardware={"count": changed.decode_gpus},
                parallelism={"tensor": tried.tensor, "pipeline": tried.pipeline},
            )
            yield Candidate(patch, f"Split the model over {changed.gpus:,} GPUs ({tried.words})", changed, True)
            return


def _wider(deployment: Deployment) -> Iterator[Split]:
    """Splits over more GPUs, fewest first, as far as the model divides."""
    split, widest = deployment.split, deployment.split
    for factor in _WIDTHS:
        tried = replace(split, tensor=split.tensor * factor)
        if tried.tensor > MOST_CARDS or not _divides(deployment, tried):
            break
        widest = tried
        yield tried
    stages = 2 * split.pipeline
    while stages <= min(MOST_STAGES, deployment.architecture.n_layers):
        tried = replace(widest, pipeline=stages)
        if _divides(deployment, tried):
            yield tried
        stages *= 2


def _faster(asked: _Asked) -> Iterator[Candidate]:
    """Twice the GPUs to each layer where it fits already: faster for each user, at twice the price."""
    if asked.state is not State.FITS or not asked.pool_follows:
        return
    deployment, forgotten = forgetting(asked.deployment, *MEASURED_PARTS)
    tried = replace(deployment.split, tensor=2 * deployment.split.tensor)
    if tried.tensor > MOST_CARDS or not _divides(deployment, tried):
        return
    changed = replace(deployment, split=tried)
    count = changed.decode_gpus
    patch = patch_of(forgotten, hardware={"count": count}, parallelism={"tensor": tried.tensor})
    yield Candidate(patch, f"Split each layer over {tried.tensor:,} GPUs ({count:,} in all)", changed)


def _divides(deployment: Deployment, split: Split) -> bool:
    try:
        split.check()
        deployment.architecture.split(split)
    except SplitError:
        return False
    return True


def _smaller_batch(asked: _Asked) -> Iterator[Candidate]:
    """Fewer sequences, or fewer tokens of a step, to size buffers for; where activations are what is in the way."""
    rank = asked.measures.memory.tightest
    if not rank.is_charged(Part.ACTIVATION):
        return
    if rank.overhead(Part.ACTIVATION).mid < NOTABLE_ACTIVATIONS * rank.budget_bytes:
        return
    deployment, forgotten = asked.forgetting("activation")
    engine, running = deployment.engine, asked.measures.memory.rank_sequences
    sequences = max(LEAST_SEQUENCES, 1 << (running - 1).bit_length())
    if sequences < rank.rank.settings.sampled_seqs:
        changed = replace(deployment, engine=replace(engine, max_num_seqs=sequences))
        label = f"Size the batch for {sequences:,} sequences (max_num_seqs)"
        yield Candidate({"engine": {"max_num_seqs": sequences, **forgotten}}, label, changed)
    if engine.step_tokens > SMALL_STEP_TOKENS:
        changed = replace(deployment, engine=replace(engine, step_tokens=SMALL_STEP_TOKENS))
        label = f"Prefill in steps of {SMALL_STEP_TOKENS:,} tokens (max_num_batched_tokens)"
        yield Candidate({"engine": {"max_batched_tokens": SMALL_STEP_TOKENS, **forgotten}}, label, changed)


def _no_graphs(asked: _Asked) -> Iterator[Candidate]:
    rank = asked.measures.memory.tightest
    if not rank.is_charged(Part.GRAPHS) or not rank.overhead(Part.GRAPHS).mid:
        return
    deployment, forgotten = asked.forgetting("graphs")
    changed = replace(deployment, engine=replace(deployment.engine, is_eager=True))
    yield Candidate({"engine": {"enforce_eager": True, **forgotten}}, "Capture no CUDA graphs (enforce_eager)", changed)


def _larger_share(asked: _Asked) -> Iterator[Candidate]:
    engine = asked.deployment.engine
    if engine.memory_utilization >= LARGEST_SHARE:
        return
    changed = replace(asked.deployment, engine=replace(engine, memory_utilization=LARGEST_SHARE))
    if memory(changed).per_gpu.free_bytes >= 0:  # what is not charged must still find room outside
        patch = {"engine": {"memory_utilization": LARGEST_SHARE}}
        yield Candidate(patch, f"Raise the engine’s share of the card to {LARGEST_SHARE}", changed)


_Finder = Callable[[_Asked], Iterator[Candidate]]
_EVERYWHERE: tuple[_Finder, ...] = (
    _narrower_cache,
    _narrower_weights,
    _other_concurrency,
    _shorter_prompt,
    _shorter_served,
    _context_ranks,
    _next_card,
    _faster,
)
_WHERE_MEMORY_IS_SHORT: tuple[_Finder, ...] = (_more_gpus, _smaller_batch, _no_graphs, _larger_share)
