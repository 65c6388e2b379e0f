"""Every published configuration read: parameters, layer kinds and cache as they are known from elsewhere."""

from collections import Counter
from dataclasses import replace

import pytest

from app.calc.dtypes import Dtype
from app.calc.memory.cache import kv_bytes_per_sequence
from app.calc.model.architecture import Architecture, LayerGroup
from app.calc.model.layers.compressed_attention import CompressedAttention
from app.calc.model.layers.experts import Experts
from app.calc.model.layers.grouped_attention import GroupedAttention
from app.calc.model.layers.latent_attention import LatentAttention, SparseLatentAttention
from app.calc.model.layers.mamba import Mamba, Mamba2, ParallelMamba2
from app.calc.model.layers.rg_lru import RgLru
from app.calc.model.layers.rwkv import Rwkv6, Rwkv7
from app.calc.model.layers.short_convolution import ShortConvolution
from app.calc.model.layers.sparse_attention import BlockSparseAttention
from app.calc.model.parameters import count_parameters
from app.checkpoint.keys import Origin
from app.checkpoint.reading import FAMILIES, Reading, read_config
from tests.checkpoint.published import config, entries, unroll

ALL = sorted(entries())
WITH_TOTAL = [name for name in ALL if "text_params" in entries()[name]]
WITH_CACHE = [name for name in ALL if "kv_bytes_at_4096" in entries()[name]]
WINDOW_OF_THE_CONTEXT = ("phi-3-medium",)
"""Published as full attention, with a window in the file that is just as long as the context."""
WITH_PATTERN = [name for name in ALL if "mixers" in entries()[name]]


def read(name: str) -> Reading:
    return read_config(config(name), name)


def mixer_word(group: LayerGroup) -> str:
    """The layer pattern's word for a mixer."""
    mixer = group.mixer
    if isinstance(mixer, GroupedAttention):
        if mixer.chunk:
            return "chunked"
        return "sliding" if mixer.window else "full"
    if isinstance(mixer, CompressedAttention):
        return f"compressed_{mixer.compression}" if mixer.compression else "window_only"
    if mixer is None:
        return "no_attention"
    words = {
        LatentAttention: "mla",
        SparseLatentAttention: "mla",
        BlockSparseAttention: "block_sparse",
        ParallelMamba2: "parallel",
        RgLru: "rg_lru",
        Rwkv6: "rwkv6",
        Rwkv7: "rwkv7",
        ShortConvolution: "conv",
    }
    return words.get(type(mixer), "mamba" if isinstance(mixer, (Mamba, Mamba2)) else "linear")


def pattern(architecture: Architecture) -> Counter[str]:
    counted: Counter[str] = Counter()
    for group in architecture.layers:
        counted[mixer_word(group)] += group.count
    return counted


def test_there_is_much_to_read() -> None:
    families = {read(name).family for name in ALL}
    assert len(ALL) >= 200
    assert len(families) >= 60
    assert set(FAMILIES) - families == {"bailing_moe"}
    assert all(entries()[name]["source"] for name in ALL)


@pytest.mark.parametrize("name", WITH_TOTAL)
def test_parameters_are_those_published(name: str) -> None:
    assert count_parameters(read(name).architecture).text == entries()[name]["text_params"]


@pytest.mark.parametrize("name", WITH_CACHE)
def test_the_cache_is_as_large_as_published(name: str) -> None:
    cache = kv_bytes_per_sequence(read(name).architecture, 4096, Dtype.BF16)
    assert cache == entries()[name]["kv_bytes_at_4096"]


@pytest.mark.parametrize("name", WITH_PATTERN)
def test_layers_are_of_the_published_kinds(name: str) -> None:
    architecture, entry = read(name).architecture, entries()[name]
    found = pattern(architecture)
    expected = Counter({"full" if word == "attention" else word: n for word, n in entry["mixers"].items() if n})
    alone = expected.pop("mlp", 0) + expected.pop("moe", 0)  # where a layer is a mixer or a block
    if alone:
        expected["no_attention"] += alone
    if name in WINDOW_OF_THE_CONTEXT:
        expected = Counter(sliding=expected["full"])
    assert found == expected
    experts = sum(g.count for g in architecture.layers if any(isinstance(b, Experts) for b in g.feed_forwards))
    assert experts == entry["expert_layers"]


@pytest.mark.parametrize("name", [name for name in ALL if "mtp_params" in entries()[name]])
def test_multi_token_prediction_is_as_large_as_published(name: str) -> None:
    reading = read(name)
    assert reading.architecture.mtp is None
    loaded = replace(reading.architecture, mtp=reading.mtp)
    assert count_parameters(loaded).mtp_params == entries()[name]["mtp_params"]


@pytest.mark.parametrize("name", [name for name in ALL if "vision_config" in entries()[name]["keys"]])
def test_vision_towers_are_as_large_as_published_or_left_out_with_a_notice(name: str) -> None:
    reading, published = read(name), entries()[name].get("vision_params")
    if reading.architecture.vision_params:
        assert published in (None, reading.architecture.vision_params)
    else:
        assert any("not counted" in notice for notice in reading.notices)


@pytest.mark.parametrize("name", ALL)
def test_the_order_and_the_provenance_are_whole(name: str) -> None:
    reading = read(name)
    architecture = reading.architecture
    assert len(architecture.order) == architecture.n_layers
    for number, group in enumerate(architecture.layers):
        assert architecture.order.count(number) == group.count
    first_seen = list(dict.fromkeys(architecture.order))
    assert first_seen == sorted(first_seen)
    names = {field.name for field in reading.fields}
    assert {"hidden_size", "vocab_size"} <= names
    for field in reading.fields:
        assert (field.key is not None) or field.origin is not Origin.READ
    assert reading.family in FAMILIES
    assert reading.read_as is None


@pytest.mark.parametrize("name", ALL)
def test_a_key_that_was_read_is_in_the_file(name: str) -> None:
    for field in read(name).fields:
        if field.key is None:
            continue
        inside: object = config(name)
        for step in field.key.replace("[", ".").replace("]", "").split("."):
            inside = inside[int(step)] if isinstance(inside, list) else inside[step]  # type: ignore[index]
        assert inside is not None


def test_runs_stand_for_lists() -> None:
    assert unroll("a*2 b") == ["a", "a", "b"]
    assert unroll("(a b*2)*2 3") == ["a", "b", "b", "a", "b", "b", 3]
