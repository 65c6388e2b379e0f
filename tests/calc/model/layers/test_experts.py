"""Experts: layers of real models by hand, what a token meets of them, and what each GPU holds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.calc.model.layers.experts import ExpertGroup, Experts
from app.calc.model.layers.parts import OperatorName, WeightGroup
from app.calc.model.split import Split
from tests.calc.strategies import repeatable

QWEN3_30B = Experts(128, 8, 768)
QWEN3_NEXT = Experts(512, 10, 512, shared_size=512, shared_gate=True)
DEEPSEEK_V3 = Experts(256, 8, 2048, shared_size=2048, correction_bias=True)
GLM_4_5 = Experts(160, 8, 1536, shared_size=1536, correction_bias=True)
GPT_OSS_120B = Experts(128, 4, 2880, bias=True, router_bias=True)
NEMOTRON_SUPER = Experts(512, 22, 2688, gated=False, shared_size=5376, latent_size=1024)
KIMI_K3 = Experts(896, 16, 3072, shared_size=6144, latent_size=3584, latent_norm=True, correction_bias=True)
LONGCAT = Experts(512, 12, 2048, identity_experts=256, correction_bias=True)
V4_FLASH = Experts(256, 6, 2048, shared_size=2048, correction_bias=True)
V4_FLASH_HASHED = Experts(256, 6, 2048, shared_size=2048, hash_table=129_280)
GROK_1, GROK_2 = Experts(8, 2, 32_768), Experts(8, 2, 16_384, shared_size=32_768)
GEMMA_4_26B = Experts(128, 8, 704, shared_size=2112, router_scales=True)


def stored(block: Experts | ExpertGroup, hidden_size: int) -> dict[WeightGroup, int]:
    found: dict[WeightGroup, int] = {}
    for weights in block.weights(hidden_size):
        found[weights.group] = found.get(weights.group, 0) + weights.stored
    return found


@pytest.mark.parametrize(
    ("block", "hidden_size", "layers", "routed", "router", "shared"),
    [
        (QWEN3_30B, 2048, 48, 128 * 3 * 2048 * 768, 2048 * 128, 0),
        (QWEN3_NEXT, 2048, 48, 512 * 3 * 2048 * 512, 2048 * 512, 3 * 2048 * 512 + 2048),
        (DEEPSEEK_V3, 7168, 58, 256 * 3 * 7168 * 2048, 7168 * 256 + 256, 3 * 7168 * 2048),
        (GLM_4_5, 5120, 89, 160 * 3 * 5120 * 1536, 5120 * 160 + 160, 3 * 5120 * 1536),
        (GPT_OSS_120B, 2880, 36, 128 * (3 * 2880 * 2880 + 2 * 2880 + 2880), 2880 * 128 + 128, 0),
        (
            NEMOTRON_SUPER,
            4096,
            40,
            512 * 2 * 1024 * 2688,
            4096 * 512,
            2 * 4096 * 5376 + 2 * 4096 * 1024,
        ),
        (
            KIMI_K3,
            7168,
            92,
            896 * 3 * 3584 * 3072,
            7168 * 896 + 896,
            3 * 7168 * 6144 + 2 * 7168 * 3584 + 3584,
        ),
        (LONGCAT, 6144, 28, 512 * 3 * 6144 * 2048, 6144 * 768 + 768, 0),
        (V4_FLASH, 4096, 40, 256 * 3 * 4096 * 2048, 4096 * 256 + 256, 3 * 4096 * 2048),
        (V4_FLASH_HASHED, 4096, 3, 256 * 3 * 4096 * 2048, 4096 * 256 + 129_280 * 6, 3 * 4096 * 2048),
        (GROK_1, 6144, 64, 8 * 3 * 6144 * 32_768, 6144 * 8, 0),
        (GROK_2, 8192, 64, 8 * 3 * 8192 * 16_384, 8192 * 8, 3 * 8192 * 32_768),
        (GEMMA_4_26B, 2816, 30, 128 * 3 * 2816 * 704, 2816 * 128 + 2816 + 128, 3 * 2816 * 2112),
    ],
)
def test_a_layer_has_the_parameters_counted_by_hand(
    block: Experts, hidden_size: int, layers: int, routed: int, router: int, shared: int
) -> None:
    found = stored(block, hidden_size)
    assert found[WeightGroup.ROUTED_EXPERTS] == routed
    assert found[WeightGroup.ROUTER] == router
    assert found.get(WeightGroup.SHARED_EXPERTS, 0) == shared
    published = PUBLISHED[block]
    assert (layers * routed, layers * router, layers * shared) == published


PUBLISHED = {
    QWEN3_30B: (28_991_029_248, 12_582_912, 0),
    QWEN3_NEXT: (77_309_411_328, 50_331_648, 151_093_248),
    DEEPSEEK_V3: (653_908_770_816, 106_445_312, 2_554_331_136),
    GLM_4_5: (335_963_750_400, 72_923_040, 2_099_773_440),
    GPT_OSS_120B: (114_701_598_720, 13_275_648, 0),
    NEMOTRON_SUPER: (112_742_891_520, 83_886_080, 1_761_607_680 + 335_544_320),
    KIMI_K3: (2_722_740_830_208, 590_955_008, 12_155_092_992 + 4_727_310_336),
    LONGCAT: (541_165_879_296, 132_142_080, 0),
    # Of V4-Flash's 43 layers 3 are routed by a table: 277,025,390,592 in experts, 45,099,008 + 2,327,040 in routers.
    V4_FLASH: (277_025_390_592 // 43 * 40, 40 * 1_048_832, 1_082_130_432 // 43 * 40),
    V4_FLASH_HASHED: (277_025_390_592 // 43 * 3, 3 * 1_048_576 + 2_327_040, 1_082_130_432 // 43 * 3),
    GROK_1: (309_237_645_312, 3_145_728, 0),
    GROK_2: (206_158_430_208, 4_194_304, 51_539_607_552),
    GEMMA_4_26B: (22_837_985_280, 10_901_760, 535_265_280),
}


def test_the_worked_number_of_qwen3_30b() -> None:
    found = stored(QWEN3_30B, 2048)
    assert (found[WeightGroup.ROUTED_EXPERTS], found[WeightGroup.ROUTER]) == (603_979_776, 262_144)


def test_routers_of_v4_flash_sum_over_both_kinds_of_routing() -> None:
    routers = 40 * stored(V4_FLASH, 4096)[WeightGroup.ROUTER] + 3 * stored(V4_FLASH_HASHED, 4096)[WeightGroup.ROUTER]
    assert routers == 45_099_008 + 2_327_040


def test_a_hash_table_replaces_the_bias_and_a_token_reads_one_row_of_it() -> None:
    both = Experts(256, 6, 2048, correction_bias=True, hash_table=129_280)
    plain = Experts(256, 6, 2048, hash_table=129_280)
    assert both.weights(4096) == plain.weights(4096)
    (table,) = [weights for weights in plain.weights(4096) if weights.gathered is not None]
    assert (table.params, table.gathered, table.flops, table.is_matrix) == (129_280 * 6, 6, 0, False)


def test_a_token_meets_the_experts_it_chooses() -> None:
    (experts,) = [w for w in QWEN3_30B.weights(2048) if w.operator is OperatorName.EXPERTS]
    assert (experts.copies, experts.chosen, experts.params) == (128, 8, 3 * 2048 * 768)
    assert experts.active == 8 * 3 * 2048 * 768
    assert sum(w.flops for w in QWEN3_30B.weights(2048)) == 2 * (8 * 3 * 2048 * 768 + 2048 * 128)


def test_identity_experts_take_their_share_of_the_choices() -> None:
    assert LONGCAT.chosen == 12 * 512 / (512 + 256) == 8
    (experts,) = [w for w in LONGCAT.weights(6144) if w.operator is OperatorName.EXPERTS]
    assert (experts.copies, experts.chosen) == (512, 8)
    assert experts.touched(1) == 8


def test_biases_of_experts_are_chosen_with_them_and_cost_nothing() -> None:
    stacks = [w for w in GPT_OSS_120B.weights(2880) if w.operator is OperatorName.EXPERTS]
    assert [(w.params, w.is_matrix, w.copies, w.chosen) for w in stacks] == [
        (3 * 2880 * 2880, True, 128, 4),
        (3 * 2880, False, 128, 4),
    ]
    assert stacks[1].flops == 0


def test_latent_experts_work_at_the_latent_width_and_its_projections_are_shared() -> None:
    (experts,) = [w for w in NEMOTRON_SUPER.weights(4096) if w.operator is OperatorName.EXPERTS]
    assert experts.params == 2 * 1024 * 2688
    shared = [w for w in NEMOTRON_SUPER.weights(4096) if w.operator is OperatorName.SHARED_EXPERTS]
    assert sum(w.flops for w in shared) == 2 * (2 * 4096 * 1024 + 2 * 4096 * 5376)
    norm = [w for w in KIMI_K3.weights(7168) if w.operator is OperatorName.SHARED_EXPERTS and not w.is_matrix]
    assert [(w.params, w.flops) for w in norm] == [(3584, 4 * 3584)]


blocks = st.builds(
    Experts,
    n_experts=st.integers(2, 64),
    per_token=st.just(2),
    intermediate_size=st.integers(1, 3000),
    gated=st.booleans(),
    shared_size=st.none() | st.integers(1, 3000),
    shared_gate=st.booleans(),
    identity_experts=st.none() | st.integers(1, 9),
    latent_size=st.none() | st.integers(1, 64),
    correction_bias=st.booleans(),
    bias=st.booleans(),
    hash_table=st.none() | st.integers(1, 100),
)


@repeatable
@given(blocks, st.integers(1, 64))
def test_widths_are_divided_and_what_belongs_to_no_width_is_on_every_gpu(block: Experts, ranks: int) -> None:
    hidden, part = 32, block.split(Split(ranks))
    assert isinstance(part, Experts)
    found, whole = stored(part, hidden), stored(block, hidden)
    assert found[WeightGroup.ROUTER] == whole[WeightGroup.ROUTER]
    for divided, undivided in (
        (part.intermediate_size, block.intermediate_size),
        (part.shared_size, block.shared_size),
    ):
        if undivided is None:
            assert divided is None
        else:
            assert divided is not None
            assert undivided <= ranks * divided < undivided + ranks
    assert (part.n_experts, part.per_token, part.chosen) == (block.n_experts, block.per_token, block.chosen)
    for group, params in whole.items():
        assert ranks * found[group] >= params


@pytest.mark.parametrize("ranks", [1, 2, 4, 8, 16])
def test_parts_of_all_gpus_sum_to_the_whole_where_widths_divide(ranks: int) -> None:
    for block, hidden in ((QWEN3_30B, 2048), (DEEPSEEK_V3, 7168), (GROK_2, 8192)):
        part, whole = stored(block.split(Split(ranks)), hidden), stored(block, hidden)
        for group in (WeightGroup.ROUTED_EXPERTS, WeightGroup.SHARED_EXPERTS):
            assert ranks * part.get(group, 0) == whole.get(group, 0)
    part, copied = stored(NEMOTRON_SUPER.split(Split(ranks)), 4096), 2 * 4096 * 1024
    assert ranks * (part[WeightGroup.SHARED_EXPERTS] - copied) == 2 * 4096 * 5376


def test_a_width_that_does_not_divide_is_padded() -> None:
    part = GPT_OSS_120B.split(Split(7))
    assert isinstance(part, Experts)
    assert part.intermediate_size == 412  # 2,880 ÷ 7 = 411.4
    (matrices, biases) = [w for w in part.weights(2880) if w.operator is OperatorName.EXPERTS]
    assert (matrices.params, biases.params) == (3 * 2880 * 412, 2 * 412 + 2880)


def test_the_block_says_how_many_a_token_sees() -> None:
    assert QWEN3_30B.label == "8 of 128 experts"
    assert DEEPSEEK_V3.label == "8 of 256 experts and shared"
