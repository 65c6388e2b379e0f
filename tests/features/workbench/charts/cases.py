"""Scenarios at the edges of what a chart may be asked to draw."""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from app.features.workbench.charts.gallery import CHARTS
from app.scenario.answer import Answer, answer
from app.scenario.scenario import Scenario
from app.web.figure import Chart
from tests.factories import answer_to, custom_card, shipped_catalog

MOST_TOKENS, MOST_USERS = 10**8, 10**6
TINY_CONFIG: Mapping[str, Any] = {
    "model_type": "llama",
    "hidden_size": 1,
    "num_hidden_layers": 1,
    "num_attention_heads": 1,
    "intermediate_size": 1,
    "vocab_size": 1,
}
HUGE_CONFIG: Mapping[str, Any] = {
    "model_type": "llama",
    "hidden_size": 1_000_000,
    "num_hidden_layers": 2_000,
    "num_attention_heads": 10_000,
    "intermediate_size": 10_000_000,
    "vocab_size": 100_000_000,
}


def workload(prompt: int = 1000, output: int = 500, users: int | None = 64, **more: Any) -> dict[str, Any]:
    return {"prompt_tokens": prompt, "output_tokens": output, "concurrency": users, **more}


def answer_to_config(config: Mapping[str, Any], hardware: Mapping[str, Any], **sections: Any) -> Answer:
    """The answer for a custom model."""
    document = {"model": {"name": "Own", "config": dict(config)}, "hardware": dict(hardware), **sections}
    return answer(Scenario.model_validate(document), shipped_catalog())


def _own(**changes: Any) -> dict[str, Any]:
    return {"custom": custom_card(**changes)}


def _extremes() -> Iterator[tuple[str, Answer]]:
    longest = workload(MOST_TOKENS, MOST_TOKENS, MOST_USERS)
    yield "longest and most", answer_to(workload=longest)
    yield "longest, one user", answer_to(workload=workload(MOST_TOKENS, 1, 1))
    yield "one token in, one out", answer_to(workload=workload(1, 1, 1))
    slowest = _own(memory_gb=0.001, bandwidth_gb_per_s=0.001, dense_tflops={"bf16": 1e-6})
    yield "slowest card", answer_to(hardware=slowest, workload=longest)
    fastest = _own(memory_gb=1e6, bandwidth_gb_per_s=1e9, dense_tflops={"bf16": 1e9})
    yield "fastest card", answer_to(hardware=fastest, workload=workload(1, 1, MOST_USERS))
    yield "tiny model on the fastest card", answer_to_config(TINY_CONFIG, fastest, workload=workload(1, 1, MOST_USERS))
    yield "huge model on the slowest card", answer_to_config(HUGE_CONFIG, slowest, workload=longest)
    yield "all arithmetic", answer_to(hardware=_own(bandwidth_gb_per_s=0.001, dense_tflops={"bf16": 1e9}))
    yield "all bandwidth", answer_to(hardware=_own(bandwidth_gb_per_s=1e9, dense_tflops={"bf16": 1e-6}))


@cache
def extreme_answers() -> Mapping[str, Answer]:
    """Everything at the end of its range."""
    return dict(_extremes())


@cache
def answers() -> Mapping[str, Answer]:
    """Every kind of scenario, by name."""
    windowed = {**TINY_CONFIG, "model_type": "mistral", "hidden_size": 64, "sliding_window": 16}
    usual = {
        "reference": answer_to(),
        "one user": answer_to(workload=workload(users=1)),
        "saturated": answer_to(workload=workload(users=None)),
        "weights do not fit": answer_to("llama-3.1-70b", "rtx-4090"),
        "saturated, nothing fits": answer_to("llama-3.1-70b", "rtx-4090", workload=workload(users=None)),
        "users do not fit": answer_to(workload=workload(30_000, 2_000, 200)),
        "tight": answer_to(workload=workload(3_840, 512, 96)),
        "some layers windowed": answer_to("gemma-3-27b", "h200-sxm", workload=workload(60_000, 1_000, 8)),
        "all layers windowed": answer_to("mistral-7b-v0.1", "l4", workload=workload(20_000, 1_000, 4)),
        "short windows": answer_to_config(windowed, {"id": "h100-sxm-80gb"}, workload=workload(users=1)),
        "short windows, nothing fits": answer_to_config(
            {**windowed, "hidden_size": 4096}, _own(memory_gb=0.001), workload=workload(users=1)
        ),
        "beyond the model's limit": answer_to("llama-2-7b", workload=workload(8_000, 1_000, 4)),
        "custom card": answer_to(hardware=_own()),
        "custom card with a driver's figure": answer_to(hardware=_own(memory_reported_mib=81_559, tdp_w=700)),
        "narrow everything": answer_to(
            hardware="b200-sxm", precision={"weights": "nvfp4", "kv_cache": "fp8"}, workload=workload(users=256)
        ),
        "integers on an old card": answer_to(hardware="t4", precision={"weights": "int4", "kv_cache": "int8"}),
        "prefix all cached": answer_to(workload=workload(prefix_hit_rate=1.0)),
        "engine runs fewer": answer_to(engine={"max_num_seqs": 8}),
        "measured pool beyond the card": answer_to(engine={"kv_pool_bytes": 9e10}),
        "measured pool, small": answer_to(engine={"kv_pool_bytes": 1e9}),
        "least share": answer_to(engine={"memory_utilization": 0.01}),
        "marketed memory": answer_to(memory_basis="marketed"),
        "experts on eight cards": answer_to("deepseek-v3", "h200-sxm", parallelism={"tensor": 8}),
        "eight cards without a known link": answer_to(
            "llama-3.1-70b", _own(memory_gb=24), parallelism={"tensor": 8}, precision={"weights": "int4"}
        ),
        "states beside a cache": answer_to("qwen3-next-80b-a3b", "h200-sxm", precision={"weights": "fp8"}),
        "chunks": answer_to("llama-4-scout", "b200-sxm", workload=workload(20_000, 1_000, 4)),
        "compressed rows": answer_to("deepseek-v4-flash", "b200-sxm", workload=workload(100_000, 1_000, 4)),
        "a mixer or a block a layer": answer_to("nemotron-3-nano-30b-a3b", workload=workload(users=1)),
        "guesses": answer_to(
            techniques={"speculative": {"draft_tokens": 3, "method": "eagle", "acceptance_length": 2.8}},
            workload=workload(slo_ttft_s=0.5, slo_tpot_s=0.02, shared_prefix_tokens=500),
        ),
        "apart on two kinds of card": answer_to(
            hardware="h200-sxm", techniques={"disaggregation": {"hardware": {"id": "b200-sxm"}}}
        ),
        "as it was once": answer_to(
            techniques={"static_batching": True, "reserved_tokens": 4096, "attention": "mha"},
            workload=workload(answer_shape="uniform"),
        ),
    }
    return {**usual, **extreme_answers()}


@cache
def chart(name: str, id_: str, *, binary: bool = False) -> Chart:
    """One chart of one scenario."""
    return CHARTS[id_](answers()[name].evaluation, binary)


def every_chart() -> Iterator[Chart]:
    """Each chart of each scenario in both units."""
    for name in answers():
        for id_ in CHARTS:
            yield chart(name, id_)
            yield chart(name, id_, binary=True)


def leaves(value: Any) -> Iterator[Any]:
    """Every text, number and None inside a figure."""
    if isinstance(value, Mapping):
        for item in value.values():
            yield from leaves(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from leaves(item)
    else:
        yield value


def traces(figure: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    """The traces of that name."""
    return [trace for trace in figure["data"] if trace["name"] == name]


def lines(figure: Mapping[str, Any], role: str) -> list[dict[str, Any]]:
    """The drawn lines of a colour role."""
    shapes = figure["layout"].get("shapes", ())
    return [s for s in shapes if s["type"] == "line" and s["line"]["color"] == f"@{role}"]
