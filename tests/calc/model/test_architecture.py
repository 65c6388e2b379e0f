"""The sorts of layers by which models are listed and drawn, for every model of the catalog by name."""

from collections import Counter

import pytest

from app.calc.model.architecture import Blocks, Keeps, MixerKind, blocks, keeps, mixer_kind, model_kind
from app.calc.model.layers.mamba import ParallelMamba2
from app.calc.model.layers.registry import MIXERS
from app.checkpoint.reading import read_config
from tests.checkpoint.published import config
from tests.factories import shipped_catalog

IMPORTED = ("lfm2-1.2b", "falcon-h1-0.5b", "recurrentgemma-2b", "rwkv6-1.6b", "rwkv7-1.5b")
"""Published configurations with kinds of layers that no model of the catalog has."""
ARCHITECTURES = shipped_catalog().architectures
READ = {name: read_config(config(name), name).architecture for name in IMPORTED}
GROUPS = [group for one in (*ARCHITECTURES.values(), *READ.values()) for group in one.layers]


@pytest.mark.parametrize(
    ("model", "kind"),
    [
        ("llama-3.1-8b", MixerKind.FULL),
        ("mistral-7b-v0.1", MixerKind.WINDOW),
        ("gemma-3-27b", MixerKind.WINDOW),
        ("gpt-oss-120b", MixerKind.WINDOW),
        ("llama-4-scout", MixerKind.CHUNK),
        ("deepseek-v3", MixerKind.LATENT),
        ("deepseek-v3.2", MixerKind.SPARSE),
        ("minimax-m3", MixerKind.SPARSE),
        ("deepseek-v4-flash", MixerKind.COMPRESSED),
        ("kimi-linear-48b-a3b", MixerKind.RECURRENT),
        ("qwen3-next-80b-a3b", MixerKind.RECURRENT),
        ("jamba-1.5-mini", MixerKind.RECURRENT),
        ("llama-3.3-nemotron-super-49b", MixerKind.FULL),
    ],
)
def test_a_model_is_named_after_what_departs_furthest(model: str, kind: MixerKind) -> None:
    assert model_kind(ARCHITECTURES[model]) is kind


def test_every_model_has_a_sort() -> None:
    counts = Counter(model_kind(architecture) for architecture in ARCHITECTURES.values())
    assert sum(counts.values()) == len(ARCHITECTURES)
    assert set(counts) == set(MixerKind) - {MixerKind.NONE}


def test_what_is_recurrent_keeps_a_state_and_no_row_but_for_attention_beside_it() -> None:
    for group in GROUPS:
        if group.mixer is None:
            assert (mixer_kind(None), keeps(None)) == (MixerKind.NONE, Keeps.NOTHING)
        else:
            recurrent = mixer_kind(group.mixer) is MixerKind.RECURRENT
            assert recurrent == bool(group.mixer.state())
            beside = bool(group.mixer.state()) and bool(group.mixer.cache())
            assert beside == isinstance(group.mixer, ParallelMamba2)
            assert (keeps(group.mixer) is Keeps.STATE) == (recurrent and not beside)
    seen = {type(group.mixer) for group in GROUPS} - {type(None)}
    assert seen == set(MIXERS.values())  # so that no kind is without a test


@pytest.mark.parametrize(
    ("model", "kept"),
    [
        ("llama-3.1-8b", [Keeps.EVERYTHING]),
        ("gemma-3-27b", [Keeps.PART, Keeps.EVERYTHING]),
        ("gemma-3n-e4b", [Keeps.PART, Keeps.EVERYTHING, Keeps.NOTHING, Keeps.NOTHING]),
        ("deepseek-v4-flash", [Keeps.PART] * 4),
        ("qwen3-next-80b-a3b", [Keeps.STATE, Keeps.EVERYTHING]),
        ("lfm2-1.2b", [Keeps.STATE, Keeps.EVERYTHING]),
        ("falcon-h1-0.5b", [Keeps.EVERYTHING]),
        ("recurrentgemma-2b", [Keeps.STATE, Keeps.PART]),
        ("rwkv7-1.5b", [Keeps.STATE, Keeps.STATE]),
    ],
)
def test_what_layers_keep(model: str, kept: list[Keeps]) -> None:
    assert [keeps(group.mixer) for group in {**ARCHITECTURES, **READ}[model].layers] == kept


@pytest.mark.parametrize("name", IMPORTED)
def test_what_carries_a_state_is_named_after_it(name: str) -> None:
    assert model_kind(READ[name]) is MixerKind.RECURRENT


def test_blocks() -> None:
    assert [blocks(group) for group in ARCHITECTURES["deepseek-v3"].layers] == [Blocks.DENSE, Blocks.EXPERTS]
    named = {blocks(group) for group in ARCHITECTURES["nemotron-3-super-120b-a12b"].layers}
    assert named == {Blocks.NONE, Blocks.EXPERTS}
