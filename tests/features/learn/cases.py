"""Scenarios for which the lesson must tell the truth: every kind of model and card, and the ends of the workload."""

import json
from collections.abc import Mapping
from functools import cache

from app.features.learn.lesson import Lesson, lesson
from app.web.query import answer_from
from tests.checkpoint.published import config
from tests.factories import shipped_catalog
from tests.features.asking import OWN_CARD

REFERENCE: Mapping[str, str] = {"model": "llama-3.1-8b", **OWN_CARD}
"""The reference case with the round figures of the story: 989e12 FLOP/s, 3.35e12 B/s, 80e9 B."""
USUAL: Mapping[str, str] = {"model": "llama-3.1-8b", "hw": "h100-sxm-80gb"}
SCENARIOS: Mapping[str, Mapping[str, str]] = {
    "reference": REFERENCE,
    "usual": USUAL,
    "one user": {**USUAL, "batch": "1"},
    "saturated": {**USUAL, "batch": ""},
    "beyond the ridge": {**USUAL, "batch": "600"},
    "one prompt token": {**USUAL, "prompt": "1"},
    "one output token": {**USUAL, "out": "1"},
    "targets": {**USUAL, "ttft": "5", "tpot": "0.5"},
    "experts, latent cache, eight cards": {"model": "deepseek-v3", "hw": "h200-sxm", "tp": "8"},
    "hybrid": {"model": "qwen3-next-80b-a3b", "hw": "h200-sxm", "tp": "2"},
    "experts and windows": {"model": "gpt-oss-120b", "hw": "h100-sxm-80gb", "tp": "2"},
    "windows": {"model": "gemma-3-27b", "hw": "h200-sxm"},
    "every head for itself": {"model": "llama-2-7b", "hw": "a100-sxm-80gb", "batch": "4"},
    "no cache": {"model": "custom", "model_name": "Own", "config": json.dumps(config("rwkv6-1.6b")), "hw": "l4"},
    "does not fit": {"model": "llama-3.1-70b", "hw": "rtx-4090", "w": "fp16"},
    "no link": {**REFERENCE, "hw_mem": "30", "tp": "2"},
    "integrated": {"model": "qwen3-14b", "hw": "apple-m4-max", "w": "int4"},
    "edge": {"model": "llama-3.1-8b", "hw": "jetson-agx-orin-64gb", "batch": "2"},
    "little arithmetic": {**REFERENCE, "hw_bf16": "0.5"},
    "little bandwidth": {**REFERENCE, "hw_bw": "0.5", "batch": "1"},
    "replicas": {**USUAL, "tp": "2", "count": "4"},
}


@cache
def told(name: str, chat_tokens: int = 4096) -> Lesson:
    """The lesson of a scenario."""
    catalog = shipped_catalog()
    return lesson(answer_from(SCENARIOS[name].items(), catalog), chat_tokens, catalog)
