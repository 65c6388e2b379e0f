"""Scenarios for optimizations: kinds of models and cards, targets, and techniques that are used already."""

import json
from collections.abc import Mapping
from functools import cache

from app.scenario.answer import Answer
from app.web.query import answer_from
from tests.checkpoint.published import config
from tests.factories import shipped_catalog

REFERENCE: Mapping[str, str] = {"model": "llama-3.1-8b", "hw": "h100-sxm-80gb"}
OWN_CARD: Mapping[str, str] = {"hw": "custom", "hw_name": "My card", "hw_mem": "80", "hw_bw": "3350", "hw_bf16": "989"}
TARGETS: Mapping[str, str] = {"ttft": "2", "tpot": "0.05"}
SCENARIOS: Mapping[str, Mapping[str, str]] = {
    "reference": REFERENCE,
    "saturated, with targets": {**REFERENCE, "batch": "", **TARGETS},
    "experts on eight cards": {"model": "deepseek-v3", "hw": "h200-sxm", "tp": "8", "batch": "256", **TARGETS},
    "experts and windows": {"model": "gpt-oss-120b", "hw": "h100-sxm-80gb", "tp": "2", "batch": "32"},
    "a hybrid": {"model": "qwen3-next-80b-a3b", "hw": "h200-sxm", "w": "fp8"},
    "no attention": {"config": json.dumps(config("rwkv7-1.5b")), "model_name": "Own", "hw": "h100-sxm-80gb"},
    "own card": {**REFERENCE, **OWN_CARD},
    "apple": {**REFERENCE, "hw": "apple-m1-max", "batch": "1"},
    "does not fit": {"model": "llama-3.1-70b", "hw": "rtx-4090", **TARGETS},
    "guesses": {**REFERENCE, "draft_tokens": "3", "method": "eagle", "accept_len": "2.8"},
    "apart": {**REFERENCE, "count": "3", "pd_hw": "h100-sxm-80gb", "pd_x": "1", "batch": "192", "ttft": "1"},
    "apart on two kinds of card": {**REFERENCE, "hw": "b200-sxm", "count": "3", "pd_hw": "h100-sxm-80gb", "pd_x": "1"},
    "as it was once": {
        **REFERENCE,
        "static": "1",
        "reserved": "2048",
        "spread": "exponential",
        "chunked": "0",
        "hit": "0.5",
        "ttft": "1",
    },
    "one token": {**REFERENCE, "prompt": "1", "out": "1", "batch": "1"},
}


@cache
def answers() -> Mapping[str, Answer]:
    """The answer to each."""
    return {name: answer_from(list(items.items()), shipped_catalog()) for name, items in SCENARIOS.items()}
