"""The shipped models against published totals and caches computed elsewhere, and what the loader refuses."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from app.calc.architecture import QkNorm
from app.calc.dtypes import Dtype
from app.calc.kv_cache import kv_bytes_per_sequence
from app.calc.operators import decode_operators
from app.calc.parameters import count_parameters
from app.catalog.errors import CatalogError
from app.catalog.models import Confidence, load_models
from app.scenario import Scenario
from tests.factories import deployment

CATALOG = load_models()
ALL = pytest.mark.parametrize("model", CATALOG)
# Of each model, worked out apart from this code from its published config: parameters of the text model, weights that
# one decoded token reads, and bytes of bf16 cache a token at 1,024, 8,192 and 131,072 tokens.
FACTS: dict[str, dict[str, Any]] = json.loads((Path(__file__).parents[1] / "data" / "models.json").read_text())
CONTEXTS = (1024, 8192, 131_072)
# Their published total is a rounded label, or one that the published dimensions contradict.
LABELS_THAT_DEVIATE = {"devstral-2-123b", "ministral-3-14b", "mpt-30b", "opt-66b", "opt-175b"}
# Rows of their position table are gathered like those of the embedding; the figures made elsewhere count the table.
POSITION_TABLES = {"opt-13b": 2050 * 5120, "opt-66b": 2050 * 9216, "opt-175b": 2050 * 12_288}


def test_82_models_each_with_facts_to_compare() -> None:
    assert len(CATALOG) == 82
    assert set(FACTS) == set(CATALOG)


def test_one_row_in_full() -> None:
    row = CATALOG["llama-3.1-8b"]
    assert (row.id, row.family, row.model_type, row.confidence) == ("llama-3.1-8b", "Llama 3", "llama", Confidence.HIGH)
    assert (row.hub_id, row.native_dtype) == ("meta-llama/Llama-3.1-8B", "bf16")
    assert (row.shape.hidden_size, row.shape.vocab_size, row.shape.max_position) == (4096, 128_256, 131_072)
    assert row.shape.tied_embeddings is False
    (group,) = row.layers
    attention = group.attention
    assert (group.count, attention.n_heads, attention.n_kv_heads, attention.head_dim) == (32, 32, 8, 128)
    assert (attention.window, attention.qkv_bias, attention.qk_norm) == (None, False, QkNorm.NONE)
    assert (group.feed_forward.intermediate_size, group.feed_forward.gated, group.norms) == (14_336, True, 2)
    assert row.stated.params == 8_030_261_248
    assert row.architecture.name == row.name


@ALL
def test_the_parameters_are_the_published_total_to_the_last_one(model: str) -> None:
    record = CATALOG[model]
    counted = count_parameters(record.architecture).total + sum(record.stated.beside_weights.values())
    if model in LABELS_THAT_DEVIATE:
        assert record.stated.deviation_reason
        assert 1e-4 < abs(record.deviation) < 0.02
    else:
        assert record.stated.deviation_reason is None
        assert counted == record.stated.params
        assert record.deviation == 0


def test_the_models_whose_label_deviates_by_name() -> None:
    assert {model for model, record in CATALOG.items() if record.stated.deviation_reason} == LABELS_THAT_DEVIATE


@ALL
def test_the_parameters_of_the_text_model(model: str) -> None:
    assert count_parameters(CATALOG[model].architecture).text == FACTS[model]["text_params"]


@ALL
def test_the_weights_that_a_token_reads(model: str) -> None:
    architecture = CATALOG[model].architecture
    operators = decode_operators(deployment(architecture=architecture), 1, 0)
    row = 2 * architecture.hidden_size * (2 if architecture.learned_positions else 1)
    written = sum(group.count * 2 * group.attention.kv_width * 2 for group in architecture.layers)
    read = (sum(float(op.bytes) for op in operators) - row - written) / 2
    assert read == FACTS[model]["weights_read_per_token"] - POSITION_TABLES.get(model, 0)


@pytest.mark.parametrize("context", CONTEXTS)
@ALL
def test_the_cache_of_a_sequence_to_the_byte(model: str, context: int) -> None:
    per_token = FACTS[model]["kv_bytes_per_token_bf16"][CONTEXTS.index(context)]
    held = kv_bytes_per_sequence(CATALOG[model].architecture, context, Dtype.BF16)
    assert held == per_token * context
    assert kv_bytes_per_sequence(CATALOG[model].architecture, context, Dtype.FP8) == per_token * context / 2


@pytest.mark.parametrize(
    ("model", "context", "per_token"),
    [
        ("llama-3.1-8b", 4096, 131_072),
        ("llama-3.1-70b", 4096, 327_680),
        ("gemma-3-27b", 4096, 188_416),
        ("gemma-3-27b", 32_768, 95_232),
        ("gemma-3-27b", 131_072, 85_248),
        ("falcon-7b", 2048, 8192),
        ("llama-2-7b", 4096, 524_288),
        ("phi-3-medium", 131_072, 204_800),
        ("opt-175b", 2048, 4_718_592),
    ],
)
def test_bytes_of_cache_a_token_that_are_published(model: str, context: int, per_token: int) -> None:
    held = float(kv_bytes_per_sequence(CATALOG[model].architecture, context, Dtype.BF16))
    assert held / context == per_token


def test_the_models_with_windows_by_name() -> None:
    windows = {
        model: [(group.count, group.attention.window) for group in record.layers]
        for model, record in CATALOG.items()
        if any(group.attention.window for group in record.layers)
    }
    assert set(windows) == {
        "command-r7b",
        "command-a-111b",
        "gemma-2-2b",
        "gemma-2-9b",
        "gemma-2-27b",
        "gemma-3-1b",
        "gemma-3-4b",
        "gemma-3-12b",
        "gemma-3-27b",
        "mistral-7b-v0.1",
        "ministral-8b",
        "phi-3-mini",
    }
    assert sorted(windows["gemma-3-27b"], key=lambda group: group[0]) == [(10, None), (52, 1024)]
    assert windows["phi-3-mini"] == [(32, 2047)]


@ALL
def test_a_scenario_can_name_the_model_and_it_has_what_a_page_shows(model: str) -> None:
    record = CATALOG[model]
    assert Scenario.model_validate({"model": {"id": model}, "hardware": {"id": "x"}}).model.id == model
    assert record.id == model
    for text in (record.name, record.family, record.hub_id, record.stated.basis, *record.sources, *record.caveats):
        assert text.strip() == text != ""
    assert re.fullmatch(r"[\w.-]+/[\w.-]+", record.hub_id)
    assert record.native_dtype in set(Dtype)
    assert record.shape.max_position >= 1024


def test_names_are_unique() -> None:
    assert len({record.name for record in CATALOG.values()}) == len(CATALOG)


SOUND = """\
[[model]]
id = "tiny"
name = "Tiny"
family = "Tiny"
hub_id = "tiny/tiny"
model_type = "llama"
confidence = "high"
native_dtype = "bf16"
sources = ["worked by hand"]
caveats = []
stated = { params = 512, basis = "by hand" }
shape = { hidden_size = 4, vocab_size = 10, max_position = 32, tied_embeddings = false }

[[model.layers]]
count = 2
attention = { n_heads = 4, n_kv_heads = 2, head_dim = 3 }
feed_forward = { intermediate_size = 8 }
norms = 2
"""
# 80 of embedding and head, 2 × (4 × 24 + 48) attention, 2 × 96 feed-forward, 2 × 8 + 4 norms
SOUND = SOUND.replace("512", str(80 + 288 + 192 + 20))


def load(folder: Path, text: str, name: str = "tiny.toml") -> Any:
    (folder / name).write_text(text, encoding="utf-8")
    return load_models(folder)


def test_a_sound_row_is_read(tmp_path: Path) -> None:
    row = load(tmp_path, SOUND)["tiny"]
    assert row.deviation == 0
    assert row.shape.learned_positions == 0
    assert row.same_shape == ()


def test_what_is_stored_beside_weights_counts_towards_the_stated_total(tmp_path: Path) -> None:
    text = SOUND.replace("params = 580", "params = 600").replace(
        'basis = "by hand"', 'basis = "by hand", beside_weights = { rotary_buffers = 20 }'
    )
    assert load(tmp_path, text)["tiny"].deviation == 0


def test_a_total_that_deviates_needs_its_reason(tmp_path: Path) -> None:
    off = SOUND.replace("params = 580", "params = 600")
    with pytest.raises(CatalogError, match=r"row tiny, stated\.params: the dimensions give a total -3\.33% from this"):
        load(tmp_path, off)
    reasoned = off.replace('basis = "by hand"', 'basis = "by hand", deviation_reason = "The label is rounded."')
    assert load(tmp_path, reasoned)["tiny"].deviation == pytest.approx(-1 / 30)


HUGE = "1" + "0" * 400
BAD_ROWS: list[tuple[str, str, str, str]] = [
    ('id = "tiny"\n', "", "id", "missing key"),
    ('name = "Tiny"\n', "", "name", "missing key"),
    ('sources = ["worked by hand"]\n', "", "sources", "missing key"),
    ('sources = ["worked by hand"]', "sources = []", "sources", "no number without a source"),
    ('sources = ["worked by hand"]', 'sources = [""]', r"sources\[1\]", "must be a text"),
    ('sources = ["worked by hand"]', 'sources = "hand"', "sources", "must be a list"),
    ('name = "Tiny"', 'name = "  "', "name", "must be a text"),
    ('name = "Tiny"', "name = 5", "name", "must be a text"),
    ('confidence = "high"', 'confidence = "sure"', "confidence", "'sure' is none of high, medium"),
    ('family = "Tiny"', 'family = "Tiny"\ncolour = "red"', "colour", "unknown key"),
    ("hidden_size = 4", "hidden_size = 0", r"shape\.hidden_size", "finite and above zero"),
    ("hidden_size = 4", "hidden_size = -4", r"shape\.hidden_size", "finite and above zero"),
    ("hidden_size = 4", "hidden_size = 4.0", r"shape\.hidden_size", "whole number"),
    ("hidden_size = 4", 'hidden_size = "4"', r"shape\.hidden_size", "whole number"),
    ("hidden_size = 4", "hidden_size = true", r"shape\.hidden_size", "whole number"),
    ("hidden_size = 4", "hidden_size = nan", r"shape\.hidden_size", "whole number"),
    ("hidden_size = 4", "hidden_size = inf", r"shape\.hidden_size", "whole number"),
    ("hidden_size = 4, ", "", r"shape\.hidden_size", "missing key"),
    ("tied_embeddings = false", "tied_embeddings = 0", r"shape\.tied_embeddings", "true or false"),
    ("tied_embeddings = false", 'tied_embeddings = "false"', r"shape\.tied_embeddings", "true or false"),
    ("params = 580", "params = 5.8e2", r"stated\.params", "whole number"),
    ('basis = "by hand"', 'basis = ""', r"stated\.basis", "must be a text"),
    ("count = 2", "count = 0", r"layers\[1\]\.count", "finite and above zero"),
    ("norms = 2", "norms = 1.5", r"layers\[1\]\.norms", "whole number"),
    ("head_dim = 3", "head_dim = 3, window = 0", r"layers\[1\]\.attention\.window", "finite and above zero"),
    ("head_dim = 3", "head_dim = 3, windows = 5", r"layers\[1\]\.attention\.windows", "unknown key"),
    ("head_dim = 3", 'head_dim = 3, qk_norm = "some"', r"layers\[1\]\.attention\.qk_norm", "'some' is none of"),
    ("n_kv_heads = 2", "n_kv_heads = 3", r"layers\[1\]\.attention", "the KV heads do not divide the heads"),
    ("n_kv_heads = 2", "n_kv_heads = 8", r"layers\[1\]\.attention", "the KV heads do not divide the heads"),
    ("feed_forward = { intermediate_size = 8 }", "feed_forward = 8", r"layers\[1\]\.feed_forward", "must be a table"),
    ("feed_forward = { intermediate_size = 8 }\n", "", r"layers\[1\]\.feed_forward", "missing key"),
]


@pytest.mark.parametrize(("old", "new", "field", "message"), BAD_ROWS, ids=[f"{row[2]}-{row[1]}" for row in BAD_ROWS])
def test_a_bad_row_is_refused_with_its_field(tmp_path: Path, old: str, new: str, field: str, message: str) -> None:
    assert SOUND.count(old) == 1
    with pytest.raises(CatalogError, match=rf"tiny\.toml, row (tiny|#1), {field}: .*{re.escape(message)}"):
        load(tmp_path, SOUND.replace(old, new))


def test_a_model_has_layers(tmp_path: Path) -> None:
    head = SOUND.partition("[[model.layers]]")[0]
    with pytest.raises(CatalogError, match="layers: missing key"):
        load(tmp_path, head)
    with pytest.raises(CatalogError, match="layers: a model has layers"):
        load(tmp_path, head + "layers = []\n")


def test_an_id_stands_once_in_all_files(tmp_path: Path) -> None:
    load(tmp_path, SOUND, "first.toml")
    with pytest.raises(CatalogError, match=r"second\.toml, row tiny, id: an earlier row has this id"):
        load(tmp_path, SOUND, "second.toml")


def test_the_loaded_catalog_cannot_be_changed() -> None:
    with pytest.raises(TypeError):
        CATALOG["other"] = CATALOG["llama-3.1-8b"]  # type: ignore[index]
