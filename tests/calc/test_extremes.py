"""Every accelerator and every model, at the edges of what can be asked: no answer is a NaN or an infinity."""

from itertools import cycle, islice
from random import Random
from typing import Any

import pytest

from app.calc.dtypes import Dtype, WeightFormat
from app.checkpoint.text import dumps
from app.scenario.answer import Answer, answer
from app.scenario.document import document
from app.scenario.refusal import ScenarioError
from app.scenario.scenario import Scenario
from tests.factories import custom_card, scenario, shipped_catalog

ONE, MOST_TOKENS, MOST_USERS = 1, 10**8, 10**6
WORKLOADS: list[dict[str, Any]] = [
    {"prompt_tokens": ONE, "output_tokens": ONE, "concurrency": ONE},
    {"prompt_tokens": MOST_TOKENS, "output_tokens": MOST_TOKENS, "concurrency": MOST_USERS},
    {"prompt_tokens": MOST_TOKENS, "output_tokens": ONE, "concurrency": None, "prefix_hit_rate": 1},
    {"prompt_tokens": ONE, "output_tokens": MOST_TOKENS, "concurrency": ONE},
    {"prompt_tokens": ONE, "output_tokens": ONE, "concurrency": MOST_USERS, "prefix_hit_rate": 1},
    {"prompt_tokens": ONE, "output_tokens": ONE, "concurrency": None},
    {"prompt_tokens": 1000, "output_tokens": 500, "slo_ttft_s": 1e-300, "slo_tpot_s": 1e6, "prefix_hit_rate": 0.999999},
    {"prompt_tokens": MOST_TOKENS, "output_tokens": MOST_TOKENS, "concurrency": None},
]
ENGINES: list[dict[str, Any]] = [
    {},
    {"memory_utilization": 0.01, "max_num_seqs": 1},
    {"kv_pool_bytes": 1},
    {"kv_pool_bytes": 1e15, "max_num_seqs": MOST_USERS, "memory_utilization": 1},
    {"max_model_len": 1},
]
# The least weights that each type of arithmetic can work on; None leaves the choice open.
WEIGHTS = {Dtype.FP8: "fp8", Dtype.INT8: "int8", Dtype.FP4: "mxfp4", Dtype.INT4: "int4"}
CACHES = ["bf16", "fp8", "int4", "fp32"]
EDGE_MODELS = ["qwen2.5-0.5b", "opt-175b", "gemma-3-27b", "phi-3-mini"]
PARTS = 6
"""Of the models each card meets one part, the next card the next."""


def precisions(hardware: str) -> list[dict[str, Any]]:
    """Formats that the card can compute, one for each of its rates."""
    rates = shipped_catalog().devices[hardware].peak_flops_per_s
    return [
        {"weights": WEIGHTS.get(rate, "bf16"), "compute": rate.value, "kv_cache": cache}
        for rate, cache in zip(rates, cycle(CACHES), strict=False)
    ]


def answers_in_plain_numbers(asked: Scenario) -> Answer:
    """The answer; JSON that refuses NaN and infinity takes its document."""
    found = answer(asked, shipped_catalog())
    dumps(document(found))
    return found


@pytest.mark.parametrize("hardware", shipped_catalog().devices)
def test_a_card_against_its_share_of_the_models_in_numbers_that_are_finite(hardware: str) -> None:
    """A sixth of the models on each card, another one on the next: every model meets a sixth of the cards."""
    formats = precisions(hardware)
    if not formats:
        with pytest.raises(ScenarioError, match="known rates: none"):
            answers_in_plain_numbers(scenario(hardware=hardware))
        return
    place = list(shipped_catalog().devices).index(hardware)
    models = list(shipped_catalog().models)[place % PARTS :: PARTS]
    start = Random(hardware).randrange(1000)
    rounds = islice(zip(cycle(WORKLOADS), cycle(ENGINES), cycle(formats), strict=False), start, start + len(models))
    for model, (workload, engine, precision) in zip(models, rounds, strict=True):
        found = answers_in_plain_numbers(
            scenario(model, hardware, workload=workload, engine=engine, precision=precision)
        )
        measures = found.evaluation.measures
        assert measures.prefill.ceiling_s > 0
        assert measures.decode.ceiling_s > 0
        assert measures.serving.output_tokens_per_s.ceiling > 0


@pytest.mark.parametrize("workload", WORKLOADS)
@pytest.mark.parametrize("weights", WeightFormat)
def test_the_edges_of_custom_cards_in_numbers_that_are_finite(workload: dict[str, Any], weights: str) -> None:
    smallest = {"memory_gb": 0.001, "bandwidth_gb_per_s": 0.001, "dense_tflops": dict.fromkeys(Dtype, 1e-6)}
    largest = {
        "memory_gb": 1e6,
        "memory_reported_mib": 10**9,
        "bandwidth_gb_per_s": 1e9,
        "dense_tflops": dict.fromkeys(Dtype, 1e9),
        "tdp_w": 1e6,
        "usd_per_hour": 1e6,
    }
    slowest = custom_card(dense_tflops=dict.fromkeys(Dtype, 1e-6), usd_per_hour=0)
    # A card meets every other model with one format, and the rest with the next.
    first = list(WeightFormat).index(WeightFormat(weights))
    for place, card in enumerate((smallest, largest, slowest), first):
        for model in EDGE_MODELS[place % 2 :: 2]:
            hardware = {"custom": card}
            answers_in_plain_numbers(scenario(model, hardware, workload=workload, precision={"weights": weights}))


def test_the_largest_config_that_is_read_in_numbers_that_are_finite() -> None:
    config = {
        "model_type": "llama",
        "hidden_size": 1_000_000,
        "num_hidden_layers": 2_000,
        "num_attention_heads": 100_000,
        "head_dim": 100_000,
        "intermediate_size": 10_000_000,
        "vocab_size": 100_000_000,
        "max_position_embeddings": 100_000_000,
    }
    smallest = {key: value if key == "model_type" else 1 for key, value in config.items()}
    for described in (config, smallest):
        for workload in WORKLOADS:
            asked = {"model": {"config": described}, "hardware": {"id": "h100-sxm-80gb"}, "workload": workload}
            answers_in_plain_numbers(Scenario.model_validate(asked))
