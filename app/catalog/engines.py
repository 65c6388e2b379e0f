"""The inference engines a scenario can name: rules for memory, releases, and the laws of their overheads."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated

from pydantic import Field

from app.calc.engines.ideal import IdealPolicy
from app.calc.engines.laws import OverheadLaws
from app.calc.engines.llama_cpp import LlamaCppPolicy
from app.calc.engines.parts import Policy
from app.calc.engines.sglang import SglangPolicy
from app.calc.engines.tensorrt_llm import TensorRtLlmPolicy
from app.calc.engines.vllm import VllmPolicy, VllmRelease
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
    """What holds from a release on; see `app.calc.engines.vllm.VllmRelease`. `since` is `from` in the file.

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
