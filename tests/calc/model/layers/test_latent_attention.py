"""Latent attention: layers of real models by hand, one row for all heads, absorbed decode, prefill as is cheaper."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.calc.model.layers.latent_attention import LatentAttention
from app.calc.model.layers.parts import OperatorName, Run
from app.calc.model.layers.span import FULL, Selection, Span
from app.calc.model.split import SplitError
from tests.calc.strategies import array, at, repeatable

DEEPSEEK_V3 = LatentAttention(128, 512, 128, 64, 128, q_rank=1536)
DEEPSEEK_V2_LITE = LatentAttention(16, 512, 128, 64, 128)
KIMI_LINEAR = LatentAttention(32, 512, 128, 64, 128)
KIMI_K3 = LatentAttention(96, 512, 128, 64, 128, q_rank=1536, gated=True)
LONGCAT = LatentAttention(64, 512, 128, 64, 128, q_rank=1536)
GLM_5 = LatentAttention(64, 512, 192, 64, 256, q_rank=2048)


def stored(attention: LatentAttention, hidden_size: int) -> int:
    return sum(weights.stored for weights in attention.weights(hidden_size))


def test_a_layer_of_deepseek_v3_part_by_part() -> None:
    query = 7168 * 1536 + 1536 * 128 * (128 + 64)
    down, up, out = 7168 * (512 + 64), 512 * 128 * (128 + 128), 128 * 128 * 7168
    assert (query, down, up, out) == (11_010_048 + 37_748_736, 4_128_768, 16_777_216, 117_440_512)
    assert stored(DEEPSEEK_V3, 7168) == query + down + up + out + 1536 + 512 == 187_107_328
    by_operator = {weights.operator: weights.params for weights in DEEPSEEK_V3.weights(7168)}
    assert by_operator == {
        OperatorName.QKV: query + down,
        OperatorName.NORMS: 2048,
        OperatorName.LATENT_UP: up,
        OperatorName.OUTPUT: out,
    }


@pytest.mark.parametrize(
    ("attention", "hidden_size", "by_hand", "layers", "published"),
    [
        (DEEPSEEK_V3, 7168, 187_107_328, 61, 11_413_547_008),
        # Without a query rank: one matrix for the queries, and one norm.
        (
            DEEPSEEK_V2_LITE,
            2048,
            2048 * 16 * 192 + 2048 * 576 + 512 + 512 * 16 * 256 + 16 * 128 * 2048,
            27,
            371_602_944,
        ),
        (KIMI_LINEAR, 2304, 2304 * 32 * 192 + 2304 * 576 + 512 + 512 * 32 * 256 + 32 * 128 * 2304, 7, 203_804_160),
        # A gate as wide as the output.
        (
            KIMI_K3,
            7168,
            1536 * (7168 + 96 * 192) + 1536 + 7168 * 576 + 512 + 512 * 96 * 256 + 2 * 7168 * 96 * 128,
            24,
            5_572_706_304,
        ),
        (
            LONGCAT,
            6144,
            1536 * (6144 + 64 * 192) + 1536 + 6144 * 576 + 512 + 512 * 64 * 256 + 64 * 128 * 6144,
            56,
            5_072_076_800,
        ),
        (
            GLM_5,
            6144,
            2048 * (6144 + 64 * 256) + 2048 + 6144 * 576 + 512 + 512 * 64 * (192 + 256) + 64 * 256 * 6144,
            78,
            12_871_732_224,
        ),
    ],
)
def test_layers_sum_to_the_published_attention(
    attention: LatentAttention, hidden_size: int, by_hand: int, layers: int, published: int
) -> None:
    assert stored(attention, hidden_size) == by_hand
    assert layers * by_hand == published


@pytest.mark.parametrize(
    ("attention", "layers", "per_token_bf16"),
    [
        (DEEPSEEK_V3, 61, 70_272),  # 61 × (512 + 64) × 2 B
        (DEEPSEEK_V2_LITE, 27, 31_104),
        (LONGCAT, 56, 64_512),
        (KIMI_LINEAR, 7, 8_064),  # beside 43,417,600 B of states
    ],
)
def test_the_cache_is_one_row_for_all_heads(attention: LatentAttention, layers: int, per_token_bf16: int) -> None:
    (row,) = attention.cache()
    assert row.width == attention.row_width == 576
    assert layers * row.width_per_token * 2 == per_token_bf16
    assert (row.span, attention.state()) == (FULL, ())


small = st.builds(
    LatentAttention,
    n_heads=st.integers(1, 3),
    kv_rank=st.sampled_from([1, 8]),
    nope_dim=st.sampled_from([2, 5]),
    rope_dim=st.sampled_from([1, 3]),
    v_dim=st.sampled_from([2, 4]),
    q_rank=st.sampled_from([None, 6]),
)
spans: st.SearchStrategy[Span] = st.just(FULL) | st.builds(Selection, st.integers(1, 20))


def seen(span: Span, position: int) -> set[int]:
    """Everything, or the query itself beside the first positions: the selection that repeats most."""
    if isinstance(span, Selection):
        return {*range(min(position, span.top - 1)), position}
    return set(range(position + 1))


@repeatable
@given(small, spans, st.integers(1, 10), st.integers(1, 60))
def test_an_absorbed_decode_step_is_what_is_counted_one_by_one(
    attention: LatentAttention, span: Span, sequences: int, context: int
) -> None:
    """Each head scores the whole row, latent and rotary part, and sums latents: 2·H·(2r + p) a pair."""
    flops, rows = 0, seen(span, context - 1)
    for _ in rows:
        for _ in range(attention.n_heads):
            flops += 2 * (attention.kv_rank + attention.rope_dim)
            flops += 2 * attention.kv_rank
    (work,) = attention.attend(Run(float(sequences), 1.0, context - 1.0, is_decode=True), span)
    assert work.operator is OperatorName.ATTENTION
    assert work.flops == sequences * flops
    assert work.cache_elements == sequences * len(rows) * (attention.kv_rank + attention.rope_dim)


def own_and_others(span: Span, position: int, cached: int) -> tuple[list[int], list[int]]:
    """Positions of the pass, and cached ones, that a query sees: of a selection as many of its own as there are."""
    own, before = list(range(cached, position + 1)), list(range(cached))
    if isinstance(span, Selection):
        own = own[-span.top :]
        before = before[: span.top - len(own)]
    return own, before


def prefill_by_hand(attention: LatentAttention, span: Span, new: int, cached: int) -> tuple[int, int, int, int]:
    """FLOP of own pairs, of pairs with cached latents absorbed and expanded, and of making those latents' heads."""
    own = absorbed = expanded = up = 0
    used: set[int] = set()
    for position in range(cached, cached + new):
        mine, before = own_and_others(span, position, cached)
        used.update(before)
        for _head in range(attention.n_heads):
            for _ in mine:
                wide = 2 * (attention.nope_dim + attention.rope_dim) + 2 * attention.v_dim
                own += min(wide, 2 * (attention.kv_rank + attention.rope_dim) + 2 * attention.kv_rank)
            for _ in before:
                absorbed += 2 * (attention.kv_rank + attention.rope_dim) + 2 * attention.kv_rank
                expanded += 2 * (attention.nope_dim + attention.rope_dim) + 2 * attention.v_dim
    for _latent in used:
        for _head in range(attention.n_heads):
            up += 2 * attention.kv_rank * (attention.nope_dim + attention.v_dim)
    return own, absorbed, expanded, up


@repeatable
@given(small, spans, st.integers(1, 40), st.integers(0, 40))
def test_a_prefill_is_the_cheaper_of_two_forms_counted_one_by_one(
    attention: LatentAttention, span: Span, new: int, cached: int
) -> None:
    """Keys and values of new tokens are the weights' work; those of cached latents are made only where that pays."""
    own, absorbed, expanded, made = prefill_by_hand(attention, span, new, cached)
    is_expanded = made + expanded <= absorbed
    up, work = attention.attend(Run(1.0, float(new), float(cached), is_decode=False), span)
    assert (up.operator, work.operator) == (OperatorName.LATENT_UP, OperatorName.ATTENTION)
    assert (up.flops, up.cache_elements) == (made if is_expanded else 0, 0)
    assert work.flops == own + (expanded if is_expanded else absorbed)
    rows = {key for position in range(cached, cached + new) for key in seen(span, position)}
    assert work.cache_elements == len(rows) * (attention.kv_rank + attention.rope_dim)


@pytest.mark.parametrize("attention", [DEEPSEEK_V3, KIMI_K3, GLM_5], ids=["DeepSeek-V3", "Kimi-K3", "GLM-5"])
@pytest.mark.parametrize("span", [FULL, Selection(2048)], ids=["all", "selection"])
@pytest.mark.parametrize("new", [1, 7, 170, 171, 600, 5000])
@pytest.mark.parametrize("cached", [0, 1, 2047, 100_000])
def test_a_prefill_is_never_charged_more_than_either_whole_form(
    attention: LatentAttention, span: Span, new: int, cached: int
) -> None:
    pairs = rows = 0
    for position in range(cached, cached + new):
        pairs += position + 1 if span is FULL else min(position + 1, 2048)
    rows = cached if span is FULL else min(cached, 2047)
    heads, r, p = attention.n_heads, attention.kv_rank, attention.rope_dim
    absorbed = 2 * heads * (2 * r + p) * pairs
    made = 2 * heads * r * (attention.nope_dim + attention.v_dim) * rows
    expanded = made + 2 * heads * (attention.nope_dim + p + attention.v_dim) * pairs
    up, work = attention.attend(Run(1.0, float(new), float(cached), is_decode=False), span)
    charged = float(up.flops) + float(work.flops)
    assert 0 < charged <= min(absorbed, expanded)
    assert up.flops in (0, made)
    if cached == 0:
        assert charged == expanded


def test_one_token_after_a_long_prefix_is_charged_at_most_what_absorbed_needs() -> None:
    """Expanding 100,000 latents for one query would be 3.36e12 FLOP, a hundred times as much."""
    absorbed = 2 * 128 * (2 * 512 + 64) * 100_001
    up, work = DEEPSEEK_V3.work(Run(1.0, 1.0, 100_000.0, is_decode=False))
    assert up.flops == 0
    assert work.flops == absorbed - 2 * 128 * (2 * 512 - 128 - 128)  # the token's own pair is expanded
    assert work.flops <= absorbed <= 2.79e10


def test_a_latent_is_expanded_from_the_token_on_that_makes_it_pay() -> None:
    """512 × 256 ÷ (2 × 512 − 256) = 170.7 new tokens, however many are cached and whatever the heads."""
    for cached in (1.0, 1000.0, 100_000.0):
        for attention in (DEEPSEEK_V3, KIMI_K3):
            below, _ = attention.work(Run(1.0, 170.0, cached, is_decode=False))
            above, _ = attention.work(Run(1.0, 171.0, cached, is_decode=False))
            assert (below.flops, above.flops) == (0, 2 * 512 * attention.n_heads * 256 * cached)


@pytest.mark.parametrize("span", [FULL, Selection(24)], ids=["all", "selection"])
def test_a_prefill_of_arrays_is_that_of_their_elements(span: Span) -> None:
    lengths, cached = [1.0, 20.0, 170.0, 171.0, 4000.0], [0.0, 1.0, 4.0, 23.0, 24.0, 9999.0]
    shape = (len(lengths), len(cached))
    table = DEEPSEEK_V3.attend(Run(1.0, array(lengths)[:, None], array(cached), is_decode=False), span)
    for i, new in enumerate(lengths):
        for j, before in enumerate(cached):
            one = DEEPSEEK_V3.attend(Run(1.0, new, before, is_decode=False), span)
            for many, single in zip(table, one, strict=True):
                assert at(many.flops, shape, (i, j)) == single.flops
                assert at(many.cache_elements, shape, (i, j)) == single.cache_elements


def test_a_decode_step_of_deepseek_v3_in_numbers() -> None:
    (work,) = DEEPSEEK_V3.work(Run(1.0, 1.0, 4095.0, is_decode=True))
    assert work.flops == 2 * 128 * (2 * 512 + 64) * 4096 == 1_140_850_688
    assert work.cache_elements == 576 * 4096


def test_a_prefill_of_deepseek_v3_in_numbers() -> None:
    up, work = DEEPSEEK_V3.work(Run(1.0, 1000.0, 0.0, is_decode=False))
    assert up.flops == 0  # nothing cached: each latent goes through the up projection as a token of the pass
    assert work.flops == 2 * 128 * (128 + 64 + 128) * 500_500
    again, _ = DEEPSEEK_V3.work(Run(1.0, 1000.0, 5000.0, is_decode=False))
    assert again.flops == 2 * 512 * 128 * 256 * 5000


def test_absorption_costs_a_token_what_the_up_projection_does() -> None:
    """Moving a query into the latent space is H·n·r, moving the sum out of it H·r·v: the parameters of the matrix."""
    (up,) = [weights for weights in DEEPSEEK_V3.weights(7168) if weights.operator is OperatorName.LATENT_UP]
    assert up.flops == 2 * 128 * 128 * 512 + 2 * 128 * 512 * 128


@repeatable
@given(small, st.integers(1, 200))
def test_the_pairs_of_a_decode_step_are_the_difference_of_two_prefills(attention: LatentAttention, n: int) -> None:
    """The arithmetic of a pair differs: absorbed in one, in the other the cheaper form, where nothing is cached."""
    longer = float(attention.work(Run(1.0, n + 1.0, 0.0, is_decode=False))[1].flops)
    shorter = float(attention.work(Run(1.0, float(n), 0.0, is_decode=False))[1].flops)
    (decode,) = attention.work(Run(1.0, 1.0, float(n), is_decode=True))
    expanded = 2 * attention.n_heads * (attention.nope_dim + attention.rope_dim + attention.v_dim)
    absorbed = 2 * attention.n_heads * (2 * attention.kv_rank + attention.rope_dim)
    assert (longer - shorter) / min(expanded, absorbed) == float(decode.flops) / absorbed == n + 1


@pytest.mark.parametrize("ranks", [1, 2, 8, 128])
def test_heads_are_divided_and_the_latent_is_on_every_gpu(ranks: int) -> None:
    part = DEEPSEEK_V3.split(ranks)
    copied = 7168 * 1536 + 7168 * 576 + 1536 + 512  # the down projections and their norms
    assert ranks * (stored(part, 7168) - copied) == stored(DEEPSEEK_V3, 7168) - copied
    assert part.cache() == DEEPSEEK_V3.cache()
    for run in (Run(2.0, 1.0, 4095.0, is_decode=True), Run(1.0, 100.0, 900.0, is_decode=False)):
        for of_part, of_whole in zip(part.work(run), DEEPSEEK_V3.work(run), strict=True):
            assert ranks * float(of_part.flops) == of_whole.flops
            assert of_part.cache_elements == of_whole.cache_elements


def test_a_gate_is_divided_with_the_heads() -> None:
    copied = 7168 * 1536 + 7168 * 576 + 1536 + 512
    assert 8 * (stored(KIMI_K3.split(8), 7168) - copied) == stored(KIMI_K3, 7168) - copied


def test_heads_that_do_not_divide_are_refused() -> None:
    with pytest.raises(SplitError, match=r"^128 attention heads do not divide among 3 GPUs\.$"):
        DEEPSEEK_V3.split(3)
    with pytest.raises(SplitError, match=r"^16 attention heads do not divide among 32 GPUs\.$"):
        DEEPSEEK_V2_LITE.split(32)


def test_the_kind_has_its_name() -> None:
    assert DEEPSEEK_V3.label == "MLA"
