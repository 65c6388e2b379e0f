"""The example of CONTRIBUTING.md as it stands there: a layer kind is a module and a line, a model of it a row."""

import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType, ModuleType

import pytest

from app.calc.dtypes import Dtype
from app.calc.measure import measure
from app.calc.memory.cache import kv_bytes_per_sequence
from app.calc.model.layers.parts import Mixer
from app.calc.model.layers.registry import MIXERS
from app.calc.model.split import Split
from app.catalog import rows
from app.catalog.models import load_models
from tests.factories import deployment

GUIDE = (Path(__file__).parents[1] / "CONTRIBUTING.md").read_text(encoding="utf-8")
ROW = """\
[[model]]
id = "retnet"
name = "RetNet"
family = "RetNet"
hub_id = "example/retnet"
model_type = "retnet"
confidence = "medium"
sources = ["worked by hand"]
caveats = []
stated = { params = 5410, basis = "by hand" }
shape = { hidden_size = 10, vocab_size = 20, max_position = 2048, tied_embeddings = false }

[[model.checkpoint]]
label = "BF16"

[[model.layers]]
count = 2
mixer = { kind = "retention", heads = 4, head_dim = 8 }
feed_forwards = [{ kind = "dense", intermediate_size = 50 }]
"""
# 400 of embedding and head, 2 × (5 × 10 × 32 + 3 × 10 × 50 + 2 × 10), and 10 of the last norm.
ROW = ROW.replace("5410", str(400 + 2 * (1600 + 1500 + 20) + 10))


@pytest.fixture
def retention(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Mixer]]:
    """The example's class, under the name that its line of registration gives it."""
    (source,) = re.findall(r"```python\n(.+?)```", GUIDE, flags=re.DOTALL)
    (name, class_name) = re.findall(r'registry\.py`: `"(\w+)": (\w+),`', GUIDE)[0]
    module = ModuleType("example_retention")
    monkeypatch.setitem(sys.modules, module.__name__, module)  # dataclasses look their module up
    exec(compile(source, "CONTRIBUTING.md", "exec"), module.__dict__)
    kind: type[Mixer] = getattr(module, class_name)
    monkeypatch.setattr(rows, "KINDS", {**rows.KINDS, Mixer: MappingProxyType({**MIXERS, name: kind})})
    rows._adapter.cache_clear()
    yield kind
    rows._adapter.cache_clear()


def test_a_row_may_name_the_new_kind_and_everything_is_computed(retention: type[Mixer], tmp_path: Path) -> None:
    (tmp_path / "retnet.toml").write_text(ROW, encoding="utf-8")
    record = load_models(tmp_path)["retnet"]
    assert isinstance(record.layers[0].mixer, retention)
    assert record.deviation == 0
    state = 2 * 4 * 8 * 8 * 4  # layers, heads, matrix of 8 × 8, four bytes
    assert kv_bytes_per_sequence(record.architecture, 1000, Dtype.BF16) == state
    whole = measure(deployment(architecture=record.architecture))
    half = measure(deployment(architecture=record.architecture, split=Split(2)))
    assert whole.decode.ceiling_s > 0
    assert half.memory.gpu_bytes_per_sequence == state / 2
    assert "retention" in record.architecture.attention_kind


def test_the_row_of_the_text_is_one_that_loads(retention: type[Mixer], tmp_path: Path) -> None:
    (shown,) = re.findall(r"`mixer = (\{ kind = \"retention\".+?\})`", GUIDE)
    text = ROW.replace('{ kind = "retention", heads = 4, head_dim = 8 }', shown).replace(
        'basis = "by hand"', 'basis = "by hand", deviation_reason = "Another width."'
    )
    (tmp_path / "retnet.toml").write_text(text, encoding="utf-8")
    (group,) = load_models(tmp_path)["retnet"].layers
    assert replace(group, count=1).label.startswith("retention")
