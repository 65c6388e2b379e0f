import csv

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.csv_text import csv_text


def read(text: str) -> list[list[str]]:
    return list(csv.reader(text.split("\n")[:-1]))


def test_rows_are_lines_and_numbers_stay_numbers() -> None:
    assert csv_text([["a", "b"], [1, -2.5], [None, 'say "x", y']]) == 'a,b\n1,-2.5\n,"say ""x"", y"\n'
    assert csv_text([]) == ""


@pytest.mark.parametrize("sign", ["=", "+", "-", "@", "\t"], ids=["equals", "plus", "minus", "at", "tab"])
def test_text_that_looks_like_a_formula_gets_an_apostrophe(sign: str) -> None:
    assert read(csv_text([[f"{sign}1", f"1{sign}"]])) == [[f"'{sign}1", f"1{sign}"]]


def test_cell_stays_in_its_line() -> None:
    assert read(csv_text([["\r=1", "a\rb"]])) == [[" =1", "a b"]]
    assert list(csv.reader([csv_text([["a\nb"]])])) == [["a\nb"]]


@given(st.lists(st.lists(st.text("=+-@\t\r\"', ax1", max_size=4), min_size=2, max_size=4), max_size=4))
def test_no_cell_begins_as_a_formula_and_none_is_lost(rows: list[list[str]]) -> None:
    found = read(csv_text(rows))
    assert not any(cell.startswith(("=", "+", "-", "@", "\t", "\r")) for row in found for cell in row)
    assert [[cell.removeprefix("'") for cell in row] for row in found] == [
        [cell.replace("\r", " ").removeprefix("'") for cell in row] for row in rows
    ]
