"""Which release keeps which pace."""

from pathlib import Path

import pytest

from app.catalog.paces import load_paces
from app.catalog.rows import CatalogError


@pytest.mark.parametrize(
    ("engine", "version", "name"),
    [
        ("vllm", None, "vllm"),
        ("vllm", "0.6.3", "vllm-2024"),
        ("vllm", "0.7.0", "vllm"),
        ("vllm", "0.33.0", "vllm"),
        ("vllm", "2024", "vllm-2024"),
        ("vllm", "2025-06", "vllm"),
        ("vllm", "nightly", "vllm"),
        ("tensorrt-llm", "0.17", "tensorrt-llm-2024"),
        ("tensorrt-llm", "1.2", "tensorrt-llm"),
        ("sglang", "0.1", "sglang"),
        ("llama.cpp", "b6918", "llama.cpp"),
        ("ideal", None, ""),
    ],
)
def test_paces(engine: str, version: str | None, name: str) -> None:
    assert load_paces().pace(engine, version) == name


def test_a_broken_file_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "paces.toml"
    file.write_text('[[pace]]\nengine = "vllm"\n', encoding="utf-8")
    with pytest.raises(CatalogError):
        load_paces(file)
