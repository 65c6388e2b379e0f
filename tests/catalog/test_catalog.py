"""The whole catalog, and the version that follows every byte of it."""

from pathlib import Path

import pytest

from app.catalog.catalog import DATA_FOLDER, VERSION_DIGITS, catalog_version, data_files, load_catalog
from tests.factories import shipped_catalog


def test_every_record_is_there_for_the_calculators_too() -> None:
    found = shipped_catalog()
    assert (len(found.models), len(found.accelerators), len(found.engines)) == (152, 107, 7)
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
