"""What an engine does where nothing is set: its batch and its share, by card, split and release."""

import math

from app.calc.accelerator import Accelerator, MemoryBasis
from app.calc.architecture import Architecture
from app.calc.layers.latent_attention import LatentAttention
from app.calc.layers.sparse_latent_attention import SparseLatentAttention
from app.calc.split import Split
from app.calc.units import GIB, MIB
from app.catalog.engines import EngineRecord, Release, Rules

SGLANG_LARGEST_GIB = 160
SGLANG_LEAST_MIB = 512
SGLANG_LARGE_CARD_MIB = 60 * 1024
SGLANG_LARGE_RESERVE_MIB = 10 * 1024
SGLANG_MANY_RANKS = 4
SGLANG_GRAPH_BATCHES = ((35, 24, 80), (90, 256, 512), (math.inf, 512, 512))
"""Largest captured batch by memory of the card in GiB: with fewer tensor ranks than four, and with four and more."""


def usual_batch(rules: EngineRecord, release: Release | None, accelerator: Accelerator) -> tuple[int, int]:
    """Tokens of a prefill step and sequences that the engine sizes itself for, where nothing is set.

    Large cards get more, by the memory that the engine sees.
    """
    seen = accelerator.seen_bytes(MemoryBasis.REPORTED) / GIB
    is_excepted = any(accelerator.id.startswith(prefix) for prefix in rules.large_except)
    is_large = seen >= rules.large_from_gib and not is_excepted
    if not is_large or (release is not None and release.ignores_card):
        return rules.step_tokens, rules.num_seqs
    if rules.policy is Rules.SGLANG and seen >= SGLANG_LARGEST_GIB:
        return 2 * rules.large_step_tokens, rules.large_num_seqs
    return rules.large_step_tokens, rules.large_num_seqs


def is_latent(architecture: Architecture) -> bool:
    """True where a layer caches latents, for which engines take longer blocks."""
    kinds = (LatentAttention, SparseLatentAttention)
    return any(isinstance(group.mixer, kinds) for group in architecture.layers)


def usual_utilization(
    named: EngineRecord, rules: EngineRecord, accelerator: Accelerator, split: Split, step_tokens: int
) -> float:
    """The engine's default share. SGLang reserves by prefill step, graphs and split, in MiB.

    512 + 1.5 × step + 1,024 × TP × PP ÷ 8 + 2 × largest captured batch, and 10 GiB at least on cards above 60 GiB.
    Worked numbers: 0.847 on an RTX 4090; 0.805 on 16 H800 of 81,559 MiB, as a start-up log has it.
    Source: SGLang's server arguments of late 2025; earlier releases reserve a little less.
    """
    if rules.policy is not Rules.SGLANG:
        return named.default_memory_utilization
    memory_mib = accelerator.memory_bytes(MemoryBasis.REPORTED) / MIB
    few, many = next(sizes for below, *sizes in SGLANG_GRAPH_BATCHES if memory_mib / 1024 < below)
    batch = many if split.tensor >= SGLANG_MANY_RANKS else few
    reserved = SGLANG_LEAST_MIB + 1.5 * max(step_tokens, 2048) + 1024 * split.tensor * split.pipeline / 8 + 2 * batch
    if memory_mib > SGLANG_LARGE_CARD_MIB:
        reserved = max(reserved, SGLANG_LARGE_RESERVE_MIB)
    return max(0.01, round((memory_mib - reserved) / memory_mib, 3))
