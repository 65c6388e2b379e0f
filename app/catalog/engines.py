"""The inference engines a scenario can name: rules for memory, releases, and the laws of their overheads.

What an engine does where nothing is set: its batch and its share, by card, split and release.
"""

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated

from pydantic import Field

from app.calc.accelerator import Accelerator, MemoryBasis
from app.calc.memory.engines.ideal import IdealPolicy
from app.calc.memory.engines.llama_cpp import LlamaCppPolicy
from app.calc.memory.engines.parts import Policy
from app.calc.memory.engines.rules import OverheadLaws
from app.calc.memory.engines.sglang import SglangPolicy
from app.calc.memory.engines.tensorrt_llm import TensorRtLlmPolicy
from app.calc.memory.engines.vllm import VllmPolicy, VllmRelease
from app.calc.model.architecture import Architecture
from app.calc.model.layers.latent_attention import LatentAttention, SparseLatentAttention
from app.calc.model.split import Split
from app.calc.quantity import GIB, MIB
from app.catalog.rows import CatalogError, Fault, read_catalog

DATA_FILE = Path(__file__).resolve().parent / "data" / "engines.toml"
_NUMBERS = re.compile(r"v?(\d{1,6})(?:\.(\d{1,6}))?(?:\.(\d{1,6}))?")
_UNTAGGED = re.compile(r"v?0\.[01]\.(?:0\.)?dev")
"""What a build from no tag calls itself: it is newer than its number."""


class Rules(StrEnum):
    """Which module divides the card; `underneath` leaves it to the engine that this one runs."""

    VLLM = "vllm"
    SGLANG = "sglang"
    TENSORRT_LLM = "tensorrt-llm"
    LLAMA_CPP = "llama.cpp"
    IDEAL = "ideal"
    UNDERNEATH = "underneath"


@dataclass(frozen=True, slots=True)
class Release:
    """What holds from a release on; see `app.calc.memory.engines.vllm.VllmRelease`. `since` is `from` in the file.

    `caches_states`: prefix caching is on by default for models with recurrent states. `ignores_card`: the default
    batch does not depend on the card.
    """

    since: Annotated[str, Field(alias="from")]
    profiles_model_len: bool = False
    is_uniform: bool = False
    charges_graphs: bool = True
    prints_concurrency: bool = True
    caches_states: bool = True
    logit_bytes: float = 10.0
    least_logit_bytes: float = 10.0
    ignores_card: bool = False


@dataclass(frozen=True, slots=True)
class EngineRecord:
    """An engine, and the name, default and meaning of its memory setting.

    `treated_as` names the engine whose laws and releases stand in. `…_tokens` and `…_num_seqs` are defaults; the
    `large_` ones hold for cards of `large_from_gib` and more, but not for ids that begin with one of `large_except`.
    """

    id: str
    name: str
    policy: Rules
    memory_setting: str
    default_memory_utilization: float
    fraction_of: str
    sources: tuple[str, ...]
    treated_as: str | None = None
    block_tokens: int = 16
    latent_block_tokens: int = 16
    step_tokens: int = 8192
    large_step_tokens: int = 8192
    num_seqs: int = 256
    large_num_seqs: int = 256
    large_from_gib: float = 0
    large_except: tuple[str, ...] = ()
    laws: OverheadLaws | None = None
    releases: Annotated[tuple[Release, ...], Field(alias="release")] = ()

    def release(self, version: str | None) -> Release | None:
        """The rules of a release: of the newest known where none is named, or where the name begins with no number."""
        asked = release_number(version)
        if asked is None:
            return self.releases[-1] if self.releases else None
        fitting = [release for release in self.releases if (release_number(release.since) or (0,)) <= asked]
        return fitting[-1] if fitting else None

    def make_policy(self, version: str | None) -> Policy:
        """The rules for the calculators.

        Raises:
            ValueError: the engine has none of its own.
        """
        if self.policy is Rules.IDEAL:
            return IdealPolicy()
        if self.laws is None:
            raise ValueError(f"{self.name} has no rules of its own.")
        if self.policy is Rules.SGLANG:
            return SglangPolicy(self.name, self.laws)
        if self.policy is Rules.TENSORRT_LLM:
            return TensorRtLlmPolicy(self.name, self.laws)
        if self.policy is Rules.LLAMA_CPP:
            return LlamaCppPolicy(self.name, self.laws)
        release = self.release(version)
        if release is None:
            raise ValueError(f"{self.name} has no release.")
        rules = VllmRelease(
            release.profiles_model_len,
            release.is_uniform,
            release.charges_graphs,
            release.prints_concurrency,
            release.logit_bytes,
            release.least_logit_bytes,
        )
        return VllmPolicy(self.name, rules, self.laws)


def release_number(version: str | None) -> tuple[int, int, int] | None:
    """Major, minor and patch of a version that begins with numbers; None for any other.

    A candidate counts as the release it leads to: its rules are those of the code it was made from.
    """
    found = _NUMBERS.match(version or "")
    if found is None or _UNTAGGED.match(version or ""):
        return None
    major, minor, patch = (int(part or 0) for part in found.groups())
    return major, minor, patch


def load_engines(file: Path = DATA_FILE) -> Mapping[str, EngineRecord]:
    """Every engine by id.

    Raises:
        CatalogError: a row is not to be trusted; names the file, the row and the field.
    """
    records = read_catalog(file, "engine", EngineRecord, _check)
    for record in records.values():
        if record.treated_as is not None and record.treated_as not in records:
            raise CatalogError(Fault(file, record.id, "treated_as", f"there is no engine {record.treated_as!r}"))
    return records


def _check(record: EngineRecord) -> Iterator[tuple[str, str]]:
    """An engine with rules of its own has laws, and vLLM's rules have releases in order."""
    own = record.policy not in (Rules.IDEAL, Rules.UNDERNEATH) and record.treated_as is None
    if own and record.laws is None:
        yield "laws", "an engine with rules of its own has laws"
    numbers = [release_number(release.since) for release in record.releases]
    if None in numbers or numbers != sorted(numbers, key=lambda n: n or (0, 0, 0)):
        yield "release", "releases are numbered, and stand in their order"
    if own and record.policy is Rules.VLLM and not numbers:
        yield "release", "there is at least one"


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
