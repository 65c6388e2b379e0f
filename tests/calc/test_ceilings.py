"""Ceilings of the reference case against arithmetic done by hand, operator by operator.

Llama-3.1-8B: h = 4,096, 32 heads and 8 KV heads of 128, feed-forward 14,336, 32 layers, vocabulary 128,256, bf16.
One layer: queries, keys and values 4,096 × (4,096 + 2 × 1,024) = 25,165,824 weights; output 4,096 × 4,096 = 16,777,216;
gate and up 2 × 4,096 × 14,336 = 117,440,512; down 58,720,256; two norms of 4,096. Head 128,256 × 4,096 = 525,336,576.
"""

from dataclasses import replace

import pytest

from app.calc.accelerator import Accelerator, Bound
from app.calc.dtypes import Dtype, WeightFormat
from app.calc.measure import measure
from app.calc.model.architecture import Architecture, LayerGroup
from app.calc.model.layers.dense import DenseFeedForward
from app.calc.model.layers.grouped_attention import GroupedAttention, QkNorm
from app.calc.model.layers.parts import OperatorName
from app.calc.time.operators import Operator, decode_operators, prefill_operators
from app.calc.time.phase import ceiling_s, overlapped_s, phase_cost
from tests.factories import deployment, engine, h100_sxm, interleaved, llama_3_1_8b, precision, workload

PEAK, BANDWIDTH = 989e12, 3.35e12

# FLOP of one token and bytes of weights, all 32 layers.
QKV = (1_610_612_736, 1_610_612_736)  # 32 × 2 × 25,165,824
OUTPUT = (1_073_741_824, 1_073_741_824)  # 32 × 2 × 16,777,216
GATE_UP = (7_516_192_768, 7_516_192_768)  # 32 × 2 × 117,440,512
DOWN = (3_758_096_384, 3_758_096_384)  # 32 × 2 × 58,720,256
HEAD = (1_050_673_152, 1_050_673_152)  # 2 × 525,336,576
LAYER_NORM_FLOPS = 1_048_576  # 4 × 2 × 32 × 4,096
LAST_NORM_FLOPS = 16_384  # 4 × 4,096
NORM_BYTES = 532_480  # 2 × (2 × 32 × 4,096 + 4,096)
ROW_BYTES = 8_192  # 2 × 4,096, one row of the embedding
KV_BYTES = 131_072  # one token, all layers
SCORE_FLOPS = 524_288  # 32 × 2 products × 2 × 4,096, one query against one key

ByName = dict[str, tuple[float, float]]


def by_name(operators: list[Operator]) -> ByName:
    """FLOPs and bytes of each operator, its parts summed."""
    found: ByName = {}
    for op in operators:
        flops, moved = found.get(op.name, (0.0, 0.0))
        found[op.name] = (flops + float(op.flops), moved + float(op.bytes))
    return found


def by_hand_decode(batch: int, context: int) -> ByName:
    return {
        "embedding": (0, batch * ROW_BYTES),
        "norms": (batch * (LAYER_NORM_FLOPS + LAST_NORM_FLOPS), NORM_BYTES),
        "qkv": (batch * QKV[0], QKV[1] + batch * KV_BYTES),
        "scores_and_values": (batch * context * SCORE_FLOPS, batch * context * KV_BYTES),
        "attention_output": (batch * OUTPUT[0], OUTPUT[1]),
        "gate_up": (batch * GATE_UP[0], GATE_UP[1]),
        "down": (batch * DOWN[0], DOWN[1]),
        "head": (batch * HEAD[0], HEAD[1]),
    }


def by_hand_time(rows: ByName) -> float:
    return sum(max(flops / PEAK, moved / BANDWIDTH) for flops, moved in rows.values())


@pytest.mark.parametrize("batch", [1, 64, 512])
@pytest.mark.parametrize("context", [1, 4096, 131_072])
def test_each_decode_operator_computes_and_moves_what_hand_arithmetic_says(batch: int, context: int) -> None:
    assert by_name(decode_operators(deployment(), batch, context)) == by_hand_decode(batch, context)


def test_a_decode_step_at_4096_tokens_moves_15_01_gb_of_weights_and_0_537_gb_of_cache() -> None:
    moved = {name: row[1] for name, row in by_name(decode_operators(deployment(), 1, 4096)).items()}
    assert moved["scores_and_values"] == 536_870_912
    assert sum(moved.values()) == 15_546_859_520  # worked by hand: 2 × 7,504,924,672 + 4,097 × 131,072 + 8,192
    assert sum(moved.values()) - 4097 * 131_072 - 8_192 == 2 * 7_504_924_672 == 15_009_849_344


def test_decode_at_4096_tokens_takes_4_64_ms_for_one_user() -> None:
    found = float(ceiling_s(decode_operators(deployment(), 1, 4096), h100_sxm()))
    assert found == pytest.approx(4.64e-3, abs=0.005e-3)
    assert found == pytest.approx(15_546_859_520 / BANDWIDTH, rel=1e-12)  # every operator is bound by memory
    assert found == pytest.approx(by_hand_time(by_hand_decode(1, 4096)), rel=1e-12)


def test_decode_at_4096_tokens_takes_14_70_to_14_95_ms_for_64_users() -> None:
    found = float(ceiling_s(decode_operators(deployment(), 64, 4096), h100_sxm()))
    assert 14.70e-3 <= found <= 14.95e-3
    assert found == pytest.approx(49_378_500_608 / BANDWIDTH, rel=1e-12)  # 15,009,849,344 + 64 × 537,010,176
    assert found == pytest.approx(by_hand_time(by_hand_decode(64, 4096)), rel=1e-12)


def test_each_prefill_operator_of_1000_tokens_computes_and_moves_what_hand_arithmetic_says() -> None:
    pairs = 500_500  # 1,000 × 1,001 ÷ 2
    assert by_name(prefill_operators(deployment(), 1000)) == {
        "embedding": (0, 1000 * ROW_BYTES),
        "norms": (1000 * LAYER_NORM_FLOPS + LAST_NORM_FLOPS, NORM_BYTES),  # the last norm serves one position
        "qkv": (1000 * QKV[0], QKV[1] + 1000 * KV_BYTES),
        "scores_and_values": (pairs * SCORE_FLOPS, 1000 * KV_BYTES),
        "attention_output": (1000 * OUTPUT[0], OUTPUT[1]),
        "gate_up": (1000 * GATE_UP[0], GATE_UP[1]),
        "down": (1000 * DOWN[0], DOWN[1]),
        "head": HEAD,  # once, for the first output token
    }


def test_prefill_of_1000_tokens_takes_14_3_to_14_8_ms() -> None:
    found = float(ceiling_s(prefill_operators(deployment(), 1000), h100_sxm()))
    assert 14.3e-3 <= found <= 14.8e-3
    # Matrices 13.958643712e12, attention 0.262406144e12, norms of the layers 1.048576e9 FLOP ÷ 989e12; and three that
    # memory binds: embedding 8.192e6 B, last norm 8,192 B, head 1.050673152e9 B ÷ 3.35e12.
    compute = (13_958_643_712_000 + 262_406_144_000 + 1_048_576_000) / PEAK
    assert found == pytest.approx(compute + (8_192_000 + 8_192 + 1_050_673_152) / BANDWIDTH, rel=1e-12)


def test_a_prefix_of_600_cached_tokens_leaves_400_to_compute() -> None:
    by_hand: ByName = {
        "scores_and_values": (SCORE_FLOPS * (400 * 600 + 80_200), KV_BYTES * 1000),  # 400 × 401 ÷ 2 = 80,200
        "gate_up": (400 * GATE_UP[0], GATE_UP[1]),
        "qkv": (400 * QKV[0], QKV[1] + 400 * KV_BYTES),  # only what is new is written
    }
    rows = by_name(prefill_operators(deployment(), 400, 600))
    assert {name: rows[name] for name in by_hand} == by_hand


def test_the_phases_of_a_deployment_are_read_from_its_workload() -> None:
    asked = deployment(workload=workload(prompt_tokens=4000, output_tokens=192, concurrency=64, prefix_hit_rate=0.25))
    found = measure(asked)
    step = decode_operators(asked, 64, 4096)  # mid-answer: 4,000 + 192 ÷ 2
    prompt = prefill_operators(asked, 3000, 1000)
    assert found.decode.ceiling_s == pytest.approx(float(ceiling_s(step, h100_sxm())), rel=1e-12)
    assert found.prefill.ceiling_s == pytest.approx(float(ceiling_s(prompt, h100_sxm())), rel=1e-12)
    assert found.decode.overlapped_s == pytest.approx(float(overlapped_s(step, h100_sxm())), rel=1e-12)
    assert found.prefill.bound is Bound.COMPUTE
    assert found.decode.bound is Bound.MEMORY_BANDWIDTH


def test_a_prefix_that_is_found_whole_still_computes_the_last_token() -> None:
    asked = deployment(workload=workload(prompt_tokens=1000, prefix_hit_rate=1.0))
    assert asked.workload.cached_prompt_tokens == 999
    assert measure(asked).prefill.flops == sum(float(op.flops) for op in prefill_operators(asked, 1, 999))


def test_operators_run_in_order_and_each_is_named_once_in_a_phase() -> None:
    cost = phase_cost(decode_operators(deployment(architecture=interleaved()), 4, 1000), h100_sxm())
    plain = [
        OperatorName.EMBEDDING,
        OperatorName.NORMS,
        OperatorName.QKV,
        OperatorName.ATTENTION,
        OperatorName.OUTPUT,
        OperatorName.GATE_UP,
        OperatorName.DOWN,
        OperatorName.HEAD,
    ]
    assert [op.name for op in cost.operators] == plain


# One layer small enough to do in the head: h = 4, two heads and one KV head of 3, plain feed-forward of 5 with biases.
TINY = Architecture(
    "Tiny",
    hidden_size=4,
    vocab_size=10,
    layers=(
        LayerGroup(
            1,
            GroupedAttention(2, 1, 3, window=2, qkv_bias=True, output_bias=True, qk_norm=QkNorm.FULL_WIDTH),
            (DenseFeedForward(5, gated=False, bias=True),),
            norms=3,
        ),
    ),
    tied_embeddings=True,
    norm_bias=True,
    head_bias=True,
)


def test_biases_full_width_norms_windows_and_mixed_formats_by_hand() -> None:
    fp8 = precision(WeightFormat.FP8, Dtype.INT4, Dtype.FP8)
    rows = by_name(decode_operators(deployment(architecture=TINY, precision=fp8), 2, 7))
    scaled = 1 + 4 / 16_384  # one byte, and a share of four for a block of 128 × 128
    assert rows == {
        "embedding": (0, 2 * 4 * 2),
        # 3 norms of 4 and the widths 6 + 3 of queries and keys, and the last norm; with biases 3 × 8 + 9 and 8
        "norms": (2 * 4 * (3 * 4 + 9) + 2 * 4 * 4, 2 * (3 * 8 + 9 + 8)),
        "qkv": (2 * 2 * 4 * 12, 4 * 12 * scaled + 12 * 2 + 2 * (2 * 3 * 0.5)),
        "scores_and_values": (2 * 2 * 2 * 6 * 2, 2 * 2 * (2 * 3 * 0.5)),  # two sequences, two tokens in the window
        "attention_output": (2 * 2 * 6 * 4, 6 * 4 * scaled + 4 * 2),
        "gate_up": (2 * 2 * 4 * 5, 4 * 5 * scaled + 5 * 2),
        "down": (2 * 2 * 5 * 4, 5 * 4 * scaled + 4 * 2),
        "head": (2 * 2 * 40, 2 * (40 + 10)),
    }


def test_only_the_matrices_of_the_layers_run_in_the_narrow_type() -> None:
    fp8 = precision(WeightFormat.FP8, Dtype.BF16, Dtype.FP8)
    narrow = {op.name for op in decode_operators(deployment(precision=fp8), 1, 100) if op.dtype is Dtype.FP8}
    assert narrow == {OperatorName.QKV, OperatorName.OUTPUT, OperatorName.GATE_UP, OperatorName.DOWN}
    both = precision(WeightFormat.FP8, Dtype.FP8, Dtype.FP8)
    narrow = {op.name for op in decode_operators(deployment(precision=both), 1, 100) if op.dtype is Dtype.FP8}
    assert OperatorName.ATTENTION in narrow
    assert OperatorName.HEAD not in narrow


def test_a_card_without_a_16_bit_rate_computes_everything_in_the_matrix_type() -> None:
    card = Accelerator("x", "X", 80e9, None, 1e12, {Dtype.FP8: 1e15})
    asked = deployment(accelerator=card, precision=precision(WeightFormat.FP8, Dtype.BF16, Dtype.FP8))
    assert {op.dtype for op in decode_operators(asked, 1, 100)} == {Dtype.FP8}


def test_the_head_is_read_once_tied_or_not() -> None:
    tied = deployment(architecture=replace(llama_3_1_8b(), tied_embeddings=True))
    assert by_name(decode_operators(tied, 1, 1)) == by_name(decode_operators(deployment(), 1, 1))


def test_engine_settings_change_no_ceiling() -> None:
    plain, capped = measure(deployment()), measure(deployment(engine=engine(0.5)))
    assert plain.decode == capped.decode
    assert plain.prefill == capped.prefill
