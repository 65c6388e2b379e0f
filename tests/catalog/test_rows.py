"""TOML rows read into any dataclass: the annotations are the schema."""

from collections.abc import Iterator, Mapping
from dataclasses import FrozenInstanceError, dataclass, field
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import Annotated

import pytest
from pydantic import Field

from app.catalog.rows import READ_ONLY, CatalogError, read_catalog


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


@dataclass(frozen=True, slots=True)
class Inner:
    size: int
    share: float = 0.5


@dataclass(frozen=True, slots=True)
class Thing:
    id: str
    sources: tuple[str, ...]
    count: int | None = None
    weight: float | None = None
    flag: bool = False
    colour: Colour = Colour.RED
    inner: Inner = Inner(1)
    rates: Annotated[Mapping[Colour, float], READ_ONLY] = field(default_factory=lambda: MappingProxyType({}))
    free: Annotated[Mapping[str, int], READ_ONLY] = field(default_factory=lambda: MappingProxyType({}))
    either: float | str = 0.0
    parts: Annotated[tuple[Inner, ...], Field(alias="part")] = ()


LEAST = '[[thing]]\nid = "a"\nsources = ["seen"]\n'


def read(folder: Path, text: str | bytes, name: str = "things.toml") -> Mapping[str, Thing]:
    file = folder / name
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_catalog(file, "thing", Thing)


def test_defaults_stand_for_what_is_left_out(tmp_path: Path) -> None:
    assert read(tmp_path, LEAST)["a"] == Thing("a", ("seen",))


def test_every_kind_of_cell_is_read(tmp_path: Path) -> None:
    text = LEAST + (
        'count = 3\nweight = 2\nflag = true\ncolour = "blue"\ninner = { size = 7, share = 0.25 }\n'
        'rates = { red = 1, blue = 2.5 }\nfree = { any_key = 4 }\neither = "text"\n'
        "[[thing.part]]\nsize = 8\n[[thing.part]]\nsize = 9\n"
    )
    found = read(tmp_path, text)["a"]
    assert (found.count, found.weight, found.flag, found.colour) == (3, 2.0, True, Colour.BLUE)
    assert type(found.weight) is float  # a whole number stands for its float
    assert found.inner == Inner(7, 0.25)
    assert found.rates == {Colour.RED: 1.0, Colour.BLUE: 2.5}
    assert found.free == {"any_key": 4}
    assert found.either == "text"
    assert found.parts == (Inner(8), Inner(9))


def test_what_is_read_cannot_be_changed(tmp_path: Path) -> None:
    catalog = read(tmp_path, LEAST + "rates = { red = 1 }\n")
    with pytest.raises(FrozenInstanceError):
        catalog["a"].flag = True  # type: ignore[misc]
    with pytest.raises(TypeError):
        catalog["a"].rates[Colour.RED] = 2.0  # type: ignore[index]
    with pytest.raises(TypeError):
        catalog["b"] = catalog["a"]  # type: ignore[index]


HUGE = "1" + "0" * 400
BAD = [
    ("count = 1.0", "count", "must be a whole number"),
    ("count = true", "count", "must be a whole number"),
    ('count = "1"', "count", "must be a whole number"),
    ("count = 0", "count", "must be finite and above zero"),
    ("count = -1", "count", "must be finite and above zero"),
    (f"count = {HUGE}", "count", "must be"),
    ("weight = nan", "weight", "must be finite and above zero, not nan"),
    ("weight = inf", "weight", "must be finite and above zero, not inf"),
    ("weight = -inf", "weight", "must be finite and above zero"),
    ("weight = 0.0", "weight", "must be finite and above zero"),
    ("weight = 1e999", "weight", "must be finite and above zero"),
    (f"weight = {HUGE}", "weight", "must be"),
    ("weight = false", "weight", "must be a number"),
    ("weight = [1]", "weight", "must be a number"),
    ("weight = 1979-05-27", "weight", "must be a number"),
    ("flag = 1", "flag", "must be true or false"),
    ('flag = "true"', "flag", "must be true or false"),
    ('colour = "green"', "colour", "'green' is none of red, blue"),
    ("colour = 1", "colour", "must be a text"),
    ('colour = ""', "colour", "must be a text"),
    ("inner = 1", "inner", "must be a table"),
    ("inner = {}", "inner.size", "missing key"),
    ("inner = { size = 1, other = 2 }", "inner.other", "unknown key"),
    ("inner = { size = 0 }", "inner.size", "must be finite and above zero"),
    ("rates = { green = 1 }", "rates.green", "unknown key"),
    ("rates = { red = 0 }", "rates.red", "must be finite and above zero"),
    ("rates = 1", "rates", "must be a table"),
    ('free = { x = "1" }', "free.x", "must be a whole number"),
    ("free = [1]", "free", "must be a table"),
    ("either = true", "either", "must be a number"),
    ("part = { size = 1 }", "part", "must be a list"),
    ("part = [{ size = 1 }, { size = 0 }]", "part[2].size", "must be finite and above zero"),
    ("part = [1]", "part[1]", "must be a table"),
    ("parts = []", "parts", "unknown key"),
    ("colour_ = 1", "colour_", "unknown key"),
]


@pytest.mark.parametrize(("line", "where", "message"), BAD, ids=[row[0][:40] for row in BAD])
def test_a_bad_cell_is_refused_at_its_place(tmp_path: Path, line: str, where: str, message: str) -> None:
    with pytest.raises(CatalogError) as caught:
        read(tmp_path, LEAST + line + "\n")
    (fault,) = caught.value.faults
    assert (fault.file.name, fault.row, fault.key) == ("things.toml", "a", where)
    assert message in fault.message
    assert str(caught.value) == f"{fault.file}, row a, {where}: {fault.message}"


def test_every_fault_of_every_row_is_told_at_once(tmp_path: Path) -> None:
    second = LEAST.replace('"a"', '"b"') + 'colour = "green"\n'
    with pytest.raises(CatalogError) as caught:
        read(tmp_path, LEAST + "count = 0\nflag = 1\nother = 2\ninner = {}\n" + second + LEAST.replace('"a"', '"c"'))
    told = {(fault.row, fault.key) for fault in caught.value.faults}
    assert told == {("a", "count"), ("a", "flag"), ("a", "other"), ("a", "inner.size"), ("b", "colour")}
    assert len(str(caught.value).splitlines()) == 5


@pytest.mark.parametrize(
    ("text", "row", "where", "message"),
    [
        ("", "-", "thing", "a file holds [[thing]] rows only"),
        ("thing = []\n", "-", "thing", "no rows found"),
        ("[thing]\nid = 1\n", "-", "thing", "a file holds [[thing]] rows only"),
        ("thing = 5\n", "-", "thing", "a file holds [[thing]] rows only"),
        ("thing = [5]\n", "#1", "-", "must be a table"),
        (f'title = "x"\n{LEAST}', "-", "title", "a file holds [[thing]] rows only"),
        ("[[thing]\n", "-", "-", ""),
        ("x = 1\nx = 2\n", "-", "-", ""),
        (b"\xff\xfe", "-", "-", "utf-8"),
        ('[[thing]]\nsources = ["seen"]\n', "#1", "id", "missing key"),
        ('[[thing]]\nid = 7\nsources = ["seen"]\n', "#1", "id", "must be a text"),
        ('[[thing]]\nid = ""\nsources = ["seen"]\n', "#1", "id", "must be a text"),
        ('[[thing]]\nid = "a"\n', "a", "sources", "missing key"),
        ('[[thing]]\nid = "a"\nsources = []\n', "a", "sources", "no number without a source"),
        ('[[thing]]\nid = "a"\nsources = [" "]\n', "a", "sources[1]", "must be a text"),
        (LEAST + LEAST, "a", "id", "an earlier row has this id"),
    ],
)
def test_a_bad_file_is_refused(tmp_path: Path, text: str | bytes, row: str, where: str, message: str) -> None:
    with pytest.raises(CatalogError) as caught:
        read(tmp_path, text)
    (fault,) = caught.value.faults
    assert (fault.row, fault.key) == (row, where)
    assert message in fault.message


def test_a_folder_is_read_in_the_order_of_file_names(tmp_path: Path) -> None:
    for name in ("b", "a", "c"):
        read(tmp_path, LEAST.replace('"a"', f'"{name}"'), f"{name}.toml")
    (tmp_path / "notes.txt").write_text("not read")
    assert list(read_catalog(tmp_path, "thing", Thing)) == ["a", "b", "c"]


def test_an_empty_folder_is_no_catalog(tmp_path: Path) -> None:
    with pytest.raises(CatalogError, match="no rows found"):
        read_catalog(tmp_path, "thing", Thing)


def test_what_no_cell_can_tell_alone_is_checked_at_the_end(tmp_path: Path) -> None:
    def check(row: Thing) -> Iterator[tuple[str, str]]:
        if row.count == 13:
            yield "count", "is unlucky"

    file = tmp_path / "things.toml"
    file.write_text(LEAST + "count = 13\n")
    with pytest.raises(CatalogError, match="row a, count: is unlucky"):
        read_catalog(file, "thing", Thing, check)
    file.write_text(LEAST + "count = 12\n")
    assert read_catalog(file, "thing", Thing, check)["a"].count == 12
