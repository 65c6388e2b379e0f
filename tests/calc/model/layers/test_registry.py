"""What holds for every layer kind alike: names, arrays, more work, pieces of a prefill, parts of a split."""

from copy import deepcopy
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.calc.model.layers.compressed_attention import CompressedAttention
from app.calc.model.layers.dense import ChannelMix, DenseFeedForward
from app.calc.model.layers.experts import Experts
from app.calc.model.layers.grouped_attention import GroupedAttention, KvProjection, OutputGate, QkNorm
from app.calc.model.layers.latent_attention import LatentAttention, SparseLatentAttention
from app.calc.model.layers.mamba import Mamba, Mamba2, ParallelMamba2
from app.calc.model.layers.parts import FeedForward, Mixer, OperatorName, Run, Work
from app.calc.model.layers.recurrent import GatedDeltaNet, KimiDeltaAttention, LightningAttention
from app.calc.model.layers.registry import FEED_FORWARDS, MIXERS, kind_of
from app.calc.model.layers.rg_lru import RgLru
from app.calc.model.layers.rwkv import Rwkv6, Rwkv7
from app.calc.model.layers.short_convolution import ShortConvolution
from app.calc.model.layers.sparse_attention import BlockSparseAttention, Indexer
from app.calc.model.split import Split
from tests.calc.strategies import array, at, repeatable

LATENT = LatentAttention(16, 64, 16, 8, 16, q_rank=96)
GROUPED = GroupedAttention(16, 8, 32)
COMPRESSED = CompressedAttention(16, 64, 96, 32, 8, 24)
CHUNKED = replace(GROUPED, chunk=24)
SAMPLES: dict[str, Mixer] = {
    "full": GROUPED,
    "window": replace(GROUPED, window=24, qkv_bias=True, output_bias=True, sinks=True),
    "chunks": CHUNKED,
    "sharing": replace(GROUPED, kv_projection=KvProjection.NONE, shares_cache=True, qk_norm=QkNorm.QUERY_PER_HEAD),
    "gated": replace(GROUPED, output_gate=OutputGate.PER_HEAD, query_rank=32, v_head_dim=16),
    "gate per element": replace(GROUPED, output_gate=OutputGate.PER_ELEMENT, qkv_bias=True, v_head_dim=16),
    "latent": LATENT,
    "sparse latent": SparseLatentAttention(LATENT, 24, Indexer(4, 32)),
    "reused index": SparseLatentAttention(LATENT, 24),
    "block sparse": BlockSparseAttention(GROUPED, 3, 8, Indexer(4, 32, weighs_heads=False)),
    "window of V4": COMPRESSED,
    "8:1": replace(COMPRESSED, compression=8),
    "4:1": replace(COMPRESSED, compression=4, overlap=2, top=6, index_heads=4, index_dim=32),
    "delta-net": GatedDeltaNet(8, 16, 8, 8),
    "KDA": KimiDeltaAttention(16, 8, 8),
    "lightning": LightningAttention(16, 8),
    "mamba": Mamba(64, 4, 8, inner_norms=True),
    "mamba2": Mamba2(16, 8, 4, 8),
    "mamba2 without a norm": Mamba2(16, 8, 4, 8, gated_norm=False),
    "parallel": ParallelMamba2(GROUPED, Mamba2(16, 8, 4, 8)),
    "RG-LRU": RgLru(64, 8),
    "RWKV-6": Rwkv6(16, 8, 128, 8, 16),
    "RWKV-7": Rwkv7(16, 8, 128, 32, 24, 48, 16),
    "RWKV-7, first": Rwkv7(16, 8, 128, 32, 24, 48),
    "short convolution": ShortConvolution(64, bias=True),
}
HIDDEN = 128
ROWS_ON_EVERY_GPU = {"RWKV-6", "RWKV-7", "RWKV-7, first"}
"""Kinds that keep rows of the hidden size beside their state: of these every GPU holds all."""
EXPANDED = {"latent", "sparse latent", "reused index"}
"""Kinds whose prefill costs less arithmetic a pair than their decode, and may expand what is cached again."""
BLOCKS: dict[str, FeedForward] = {
    "gated": DenseFeedForward(96),
    "plain": DenseFeedForward(96, gated=False, bias=True),
    "experts": Experts(16, 4, 96),
    "shared": Experts(16, 4, 96, shared_size=64, shared_gate=True, correction_bias=True),
    "latent": Experts(16, 4, 96, latent_size=32, latent_norm=True, identity_experts=8, router_scales=True),
    "hashed": Experts(16, 4, 96, hash_table=100, bias=True, router_bias=True),
    "channel mixing": ChannelMix(96),
    "channel mixing under a gate": ChannelMix(96, receptance=True),
}
mixers = pytest.mark.parametrize("name", SAMPLES)
names = st.sampled_from(list(SAMPLES))
sizes = st.integers(1, 200)
cached_sizes = st.integers(0, 200)


def decode(context: float, sequences: float = 1.0) -> Run:
    return Run(sequences, 1.0, context - 1.0, is_decode=True)


def prefill(new: float, cached: float = 0.0) -> Run:
    return Run(1.0, new, cached, is_decode=False)


def flops(work: tuple[Work, ...]) -> dict[OperatorName, float]:
    """By operator; expanding latents saves arithmetic on their pairs, so the two are one sum."""
    found: dict[OperatorName, float] = {}
    for part in work:
        operator = OperatorName.ATTENTION if part.operator is OperatorName.LATENT_UP else part.operator
        found[operator] = found.get(operator, 0.0) + float(part.flops)
    return found


def read(work: tuple[Work, ...]) -> float:
    return sum(float(part.cache_elements) for part in work)


def test_every_registered_kind_is_among_the_samples_and_has_its_name() -> None:
    assert {kind_of(mixer) for mixer in SAMPLES.values()} == set(MIXERS)
    assert {kind_of(block) for block in BLOCKS.values()} == set(FEED_FORWARDS)
    for part in SAMPLES.values():
        assert MIXERS[kind_of(part)] is type(part)
    for block in BLOCKS.values():
        assert FEED_FORWARDS[kind_of(block)] is type(block)
    assert not set(MIXERS) & set(FEED_FORWARDS)


def test_what_is_not_registered_has_no_name() -> None:
    class Relative(GroupedAttention):
        """A subclass is another kind."""

    with pytest.raises(KeyError, match="Relative"):
        kind_of(Relative(8, 8, 8))


@mixers
def test_a_kind_is_a_value_with_a_label(name: str) -> None:
    mixer = SAMPLES[name]
    assert mixer.label
    assert deepcopy(mixer) == mixer
    assert hash(deepcopy(mixer)) == hash(mixer)
    assert all(weights.stored > 0 for weights in mixer.weights(HIDDEN))


@pytest.mark.parametrize(
    ("name", "gains", "normed"),
    [
        ("full", 0, 0),
        ("sharing", 32, 16 * 32),  # queries alone, a gain for each place of a head
        ("gated", 32, 32),  # the factorised query
        ("latent", 96 + 64, 96 + 64),
        ("sparse latent", 96 + 64, 96 + 64),
        ("4:1", 96 + 64, 96 + 64),
        ("delta-net", 8, 16 * 8),  # one gain for each place of a head, every head normed
        ("KDA", 8, 16 * 8),
        ("lightning", 16 * 8, 16 * 8),
        ("mamba", 8 + 2 * 4, 8 + 2 * 4),
        ("mamba2", 16 * 8, 16 * 8),
        ("mamba2 without a norm", 0, 0),
        ("parallel", 16 * 8, 16 * 8),
        ("RWKV-6", 2 * 16 * 8, 16 * 8),  # a gain and a bias
        ("RWKV-7", 2 * 16 * 8, 16 * 8),
    ],
)
def test_norms_cost_four_flops_for_each_element_that_they_norm(name: str, gains: int, normed: int) -> None:
    norms = [weights for weights in SAMPLES[name].weights(HIDDEN) if weights.operator is OperatorName.NORMS]
    assert sum(weights.params for weights in norms) == gains
    assert sum(weights.flops for weights in norms) == 4 * normed


@mixers
def test_a_layer_keeps_rows_or_a_state_and_both_only_side_by_side(name: str) -> None:
    mixer = SAMPLES[name]
    if name == "sharing":
        assert (mixer.cache(), mixer.state()) == ((), ())
    elif name == "parallel":
        assert mixer.cache()
        assert mixer.state()
    else:
        assert bool(mixer.cache()) != bool(mixer.state())


@repeatable
@given(names, st.lists(sizes, min_size=1, max_size=3), st.lists(sizes, min_size=1, max_size=3))
def test_decode_of_arrays_is_that_of_their_elements(name: str, batches: list[int], contexts: list[int]) -> None:
    mixer, shape = SAMPLES[name], (len(batches), len(contexts))
    rows, columns = array([float(n) for n in batches])[:, None], array([float(n) for n in contexts])
    table = mixer.work(Run(rows, 1.0, columns - 1.0, is_decode=True))
    for i, sequences in enumerate(batches):
        for j, context in enumerate(contexts):
            same(table, mixer.work(decode(float(context), float(sequences))), shape, (i, j))


@repeatable
@given(names, st.lists(sizes, min_size=1, max_size=3), st.lists(cached_sizes, min_size=1, max_size=3))
def test_prefill_of_arrays_is_that_of_their_elements(name: str, lengths: list[int], cached: list[int]) -> None:
    mixer, shape = SAMPLES[name], (len(lengths), len(cached))
    rows, columns = array([float(n) for n in lengths])[:, None], array([float(n) for n in cached])
    table = mixer.work(Run(1.0, rows, columns, is_decode=False))
    for i, new in enumerate(lengths):
        for j, before in enumerate(cached):
            same(table, mixer.work(prefill(float(new), float(before))), shape, (i, j))


def same(table: tuple[Work, ...], one: tuple[Work, ...], shape: tuple[int, ...], index: tuple[int, ...]) -> None:
    for many, single in zip(table, one, strict=True):
        assert many.operator is single.operator
        assert at(many.flops, shape, index) == single.flops
        assert at(many.cache_elements, shape, index) == single.cache_elements
        assert at(many.state_bytes, shape, index) == single.state_bytes


@repeatable
@given(names, sizes, sizes, st.integers(1, 50))
def test_work_is_in_proportion_to_the_sequences(name: str, context: int, new: int, sequences: int) -> None:
    mixer = SAMPLES[name]
    for run in (decode(float(context)), prefill(float(new), float(context))):
        one, many = mixer.work(run), mixer.work(replace(run, sequences=float(sequences)))
        for single, all_of_them in zip(one, many, strict=True):
            assert all_of_them.flops == sequences * float(single.flops)
            assert all_of_them.cache_elements == sequences * float(single.cache_elements)
            assert all_of_them.state_bytes == sequences * float(single.state_bytes)


def not_less(more: tuple[Work, ...], less: tuple[Work, ...]) -> None:
    longer, shorter = flops(more), flops(less)
    assert longer.keys() == shorter.keys()
    assert all(longer[operator] >= found >= 0 for operator, found in shorter.items())
    for one, other in zip(more, less, strict=True):
        assert float(one.flops) >= 0
        assert float(one.cache_elements) >= float(other.cache_elements) >= 0
        assert float(one.state_bytes) >= float(other.state_bytes) >= 0


@repeatable
@given(names.filter(lambda name: name != "chunks"), sizes, cached_sizes, cached_sizes)
def test_a_longer_context_is_never_less_work_outside_chunks(name: str, size: int, cached: int, more: int) -> None:
    mixer = SAMPLES[name]
    not_less(mixer.work(decode(float(size + more))), mixer.work(decode(float(size))))
    not_less(mixer.work(prefill(float(size), float(cached + more))), mixer.work(prefill(float(size), float(cached))))


@repeatable
@given(names, sizes, cached_sizes, cached_sizes)
def test_more_new_tokens_are_never_less_work(name: str, new: int, cached: int, more: int) -> None:
    """This holds for chunks too: the tokens before see what they saw."""
    mixer = SAMPLES[name]
    not_less(mixer.work(prefill(float(new + more), float(cached))), mixer.work(prefill(float(new), float(cached))))


def test_a_token_that_starts_a_chunk_is_less_work_than_the_one_before() -> None:
    (last,), (first,) = CHUNKED.work(decode(48.0)), CHUNKED.work(decode(49.0))
    assert last.flops == 24 * float(first.flops)
    assert last.cache_elements == 24 * float(first.cache_elements)
    (within,), (after,) = CHUNKED.work(prefill(1.0, 23.0)), CHUNKED.work(prefill(1.0, 24.0))
    assert within.flops == 24 * float(after.flops)


@repeatable
@given(names.filter(lambda name: name not in EXPANDED), cached_sizes)
def test_a_decode_step_costs_what_one_more_token_adds_to_a_prefill(name: str, n: int) -> None:
    mixer = SAMPLES[name]
    longer, shorter = flops(mixer.work(prefill(n + 1.0))), flops(mixer.work(prefill(float(n))))
    for operator, found in flops(mixer.work(decode(n + 1.0))).items():
        assert found == pytest.approx(longer[operator] - shorter[operator], rel=1e-9)


@repeatable
@given(names, cached_sizes)
def test_a_prefill_of_one_token_reads_what_a_decode_step_reads(name: str, cached: int) -> None:
    mixer = SAMPLES[name]
    one, step = mixer.work(prefill(1.0, float(cached))), mixer.work(decode(cached + 1.0))
    assert read(one) == read(step)
    assert sum(float(work.state_bytes) for work in one) == sum(float(work.state_bytes) for work in step)
    if name in EXPANDED:  # the token's own pair is expanded, those with the prefix are not
        own = 2 * LATENT.n_heads * (2 * LATENT.kv_rank - LATENT.nope_dim - LATENT.v_dim)
        assert flops(one) | {OperatorName.ATTENTION: flops(one)[OperatorName.ATTENTION] + own} == flops(step)
    else:
        assert flops(one) == flops(step)


@repeatable
@given(names, sizes, sizes, cached_sizes)
def test_a_prefill_in_two_pieces_computes_what_it_does_in_one(name: str, first: int, then: int, cached: int) -> None:
    mixer = SAMPLES[name]
    whole = flops(mixer.work(prefill(float(first + then), float(cached))))
    one = flops(mixer.work(prefill(float(first), float(cached))))
    other = flops(mixer.work(prefill(float(then), float(cached + first))))
    for operator, found in whole.items():
        if name in EXPANDED and operator is OperatorName.ATTENTION:
            # The second piece finds the first one's latents in the cache: it expands them again, or absorbs.
            assert one[operator] + other[operator] >= found
        else:
            assert one[operator] + other[operator] == pytest.approx(found, rel=1e-12)


@mixers
def test_one_gpu_holds_the_whole(name: str) -> None:
    assert SAMPLES[name].split(1) == SAMPLES[name]


@mixers
def test_halves_of_halves_are_quarters(name: str) -> None:
    assert SAMPLES[name].split(2).split(2) == SAMPLES[name].split(4)


@mixers
@pytest.mark.parametrize("ranks", [2, 4, 8])
def test_parts_of_all_gpus_do_all_the_work_and_copies_are_whole(name: str, ranks: int) -> None:
    mixer = SAMPLES[name]
    part = mixer.split(ranks)
    whole_bytes = sum(s.bytes for s in mixer.state())
    copied_bytes = mixer.state()[1].bytes if name in ROWS_ON_EVERY_GPU else 0.0
    for run in (decode(100.0, 3.0), prefill(50.0, 50.0)):
        for of_part, of_whole in zip(part.work(run), mixer.work(run), strict=True):
            copied = of_whole.operator is OperatorName.INDEXER
            assert (1 if copied else ranks) * float(of_part.flops) == of_whole.flops
            assert float(of_part.cache_elements) <= float(of_whole.cache_elements)
            assert ranks * float(of_part.cache_elements) >= float(of_whole.cache_elements)
            passes_copied = float(of_whole.state_bytes) / whole_bytes * copied_bytes if copied_bytes else 0.0
            divided = float(of_part.state_bytes) - passes_copied
            assert ranks * divided == float(of_whole.state_bytes) - passes_copied
    for of_part_w, of_whole_w in zip(part.weights(HIDDEN), mixer.weights(HIDDEN), strict=True):
        assert of_part_w.operator is of_whole_w.operator
        assert of_part_w.stored <= of_whole_w.stored <= ranks * of_part_w.stored
    assert ranks * (sum(s.bytes for s in part.state()) - copied_bytes) == whole_bytes - copied_bytes
    for row, whole in zip(part.cache(), mixer.cache(), strict=True):
        assert row.width in (whole.width, whole.width // ranks)


@pytest.mark.parametrize("name", BLOCKS)
@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 7])
def test_parts_of_a_block_are_at_least_the_whole(name: str, ranks: int) -> None:
    block = BLOCKS[name]
    part = block.split(Split(ranks))
    if ranks == 1:
        assert part == block
    for of_part, of_whole in zip(part.weights(HIDDEN), block.weights(HIDDEN), strict=True):
        assert of_part.stored <= of_whole.stored <= ranks * of_part.stored
        assert (of_part.copies, of_part.chosen) == (of_whole.copies, of_whole.chosen)


@mixers
def test_a_row_s_working_gives_its_width(name: str) -> None:
    """`{L}` is the layers and every symbol a number: for one layer the formula is the width."""
    for row in SAMPLES[name].cache():
        if row.working is not None:
            numbers = {symbol: value for symbol, _, value in row.working.terms}
            formula = row.working.formula.replace("{L}", "1").replace("×", "*")
            assert eval(formula, {"__builtins__": {}}, numbers) == row.width
            assert all(what for _, what, _ in row.working.terms)
