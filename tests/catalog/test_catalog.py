"""The whole catalog, and the version that follows every byte of it.

Links between groups of GPUs: rates by their standards, and rows that are not to be trusted.

Which release keeps which pace.
"""

from pathlib import Path

import pytest

from app.catalog.catalog import (
    DATA_FOLDER,
    VERSION_DIGITS,
    catalog_version,
    data_files,
    load_catalog,
    load_links,
    load_paces,
)
from app.catalog.rows import CatalogError
from tests.factories import shipped_catalog


def test_every_record_is_there_for_the_calculators_too() -> None:
    found = shipped_catalog()
    texts = [file.read_text(encoding="utf-8") for file in DATA_FOLDER.rglob("*.toml")]
    for kind, records in (("model", found.models), ("accelerator", found.accelerators), ("engine", found.engines)):
        assert len(records) == sum(text.splitlines().count(f"[[{kind}]]") for text in texts) > 0, kind
    assert list(found.architectures) == list(found.models)
    assert list(found.devices) == list(found.accelerators)
    for id_, record in found.models.items():
        assert found.architectures[id_] == record.architecture
        assert found.plans[id_] == record.native_plan
    for id_, device in found.devices.items():
        assert device == found.accelerators[id_].accelerator


def test_nothing_in_it_can_be_changed() -> None:
    found = shipped_catalog()
    for part in (found.models, found.accelerators, found.engines, found.architectures, found.devices):
        with pytest.raises(TypeError):
            part["new"] = next(iter(part.values()))  # type: ignore[index]


def test_the_version_is_that_of_all_data_files_and_the_same_every_time() -> None:
    files = data_files()
    assert {file.name for file in DATA_FOLDER.rglob("*") if file.is_file()} == {file.name for file in files}
    assert len(files) == len({file.name for file in files})
    assert shipped_catalog().version == load_catalog.__wrapped__().version == catalog_version(files)
    assert len(shipped_catalog().version) == VERSION_DIGITS
    assert set(shipped_catalog().version) <= set("0123456789abcdef")


@pytest.fixture
def copies(tmp_path: Path) -> list[Path]:
    found = []
    for file in sorted(DATA_FOLDER.rglob("*.toml")):
        copy = tmp_path / file.name
        copy.write_bytes(file.read_bytes())
        found.append(copy)
    return found


def test_the_version_changes_with_any_byte_of_any_file(copies: list[Path]) -> None:
    versions = {catalog_version(copies)}
    for file in copies:
        sound = file.read_bytes()
        for place in (0, len(sound) // 2, len(sound) - 1):
            file.write_bytes(sound[:place] + bytes([sound[place] ^ 1]) + sound[place + 1 :])
            versions.add(catalog_version(copies))
        file.write_bytes(sound + b"\n")
        versions.add(catalog_version(copies))
        file.write_bytes(sound)
    assert len(versions) == 1 + 4 * len(copies)


def test_the_version_changes_with_a_file_that_is_new_gone_or_renamed(copies: list[Path]) -> None:
    versions = {catalog_version(copies), catalog_version(copies[1:])}
    extra = copies[0].with_name("zzz.toml")
    extra.write_bytes(b"")
    versions.add(catalog_version([*copies, extra]))
    versions.add(catalog_version([*copies[1:], copies[0].rename(copies[0].with_name("renamed.toml"))]))
    assert len(versions) == 4


ROW = '[[link]]\nid = "a"\nname = "A"\ngbit_per_s = 100\nsource = "a standard"\n'


@pytest.mark.parametrize(
    ("id_", "bytes_per_s"),
    [
        ("ethernet-100g", 12.5e9),
        ("ib-hdr", 25e9),
        ("ib-ndr", 50e9),
        ("ib-xdr", 100e9),
        ("pcie-5", 32e9 * 128 / 130 * 16 / 8),
    ],
)
def test_rates_in_one_direction(id_: str, bytes_per_s: float) -> None:
    link = load_links()[id_]
    assert link.bytes_per_s == pytest.approx(bytes_per_s, rel=1e-3)
    assert link.id == id_
    assert link.source


def test_the_catalog_has_all_of_them_in_the_order_of_the_file() -> None:
    assert list(shipped_catalog().links) == ["ethernet-100g", "ib-hdr", "ib-ndr", "ib-xdr", "pcie-5"]
    assert shipped_catalog().links == load_links()


@pytest.mark.parametrize(
    "text",
    [
        "",
        'link = "a"',
        ROW + ROW,
        ROW.replace("100", "0"),
        ROW.replace("100", "-1"),
        ROW.replace("100", "nan"),
        ROW.replace("100", '"fast"'),
        ROW.replace("a standard", " "),
        ROW.replace('id = "a"\n', ""),
        ROW.replace("source", "sauce"),
        ROW + 'colour = "red"\n',
        "[[link]\n",
    ],
)
def test_a_row_that_is_not_to_be_trusted_is_refused(text: str, tmp_path: Path) -> None:
    file = tmp_path / "links.toml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(CatalogError):
        load_links(file)


def test_links_cannot_be_changed() -> None:
    with pytest.raises(TypeError):
        load_links()["a"] = None  # type: ignore[index]


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
