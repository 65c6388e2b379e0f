"""The reader of formulas itself, so that a test that leans on it cannot pass by its mistake."""

import pytest

from tests.calc.formulas import NotAFormulaError, computed, reread, substituted_value, symbols

VALUES = {"a": 7.0, "b": 2.0, "t_x": 3.0, "N": 10.0}


@pytest.mark.parametrize(
    ("formula", "value"),
    [
        ("a", 7),
        ("a − b − t_x", 2),
        ("a ÷ b ÷ b", 1.75),
        ("a + b × t_x", 13),
        ("(a + b) × t_x", 27),
        ("⌊a ÷ b⌋", 3),
        ("max(0, ⌊(b − a) ÷ t_x⌋)", 0),
        ("min(⌊a ÷ b⌋, N)", 3),
        ("1 − 2 × b ÷ N ÷ b", 0.8),
        ("N ÷ (a × 3600) × 1000000", 10 / 25_200 * 1e6),
        ("max(a, b) + 1", 8),
    ],
)
def test_computes(formula: str, value: float) -> None:
    assert computed(formula, VALUES) == pytest.approx(value)


@pytest.mark.parametrize("formula", ["", "a +", "a b", "(a", "⌊a)", "max a", "c", "a * b", "a - b", "a / b", "max()"])
def test_refuses_what_is_no_formula(formula: str) -> None:
    with pytest.raises(NotAFormulaError):
        computed(formula, VALUES)


def test_symbols_are_those_of_the_terms() -> None:
    assert symbols("max(0, M × u − W_1) ÷ t_x") == {"M", "u", "W_1", "t_x"}


@pytest.mark.parametrize(
    ("text", "value", "unit"),
    [
        ("16.0605 GB", 16.0605e9, "B"),
        ("512 MiB", 512 * 2**20, "B"),
        ("4.79 ms", 4.79e-3, "s"),
        ("487,819 tokens", 487_819, "tokens"),
        ("$0.0978554", 0.0978554, "$"),
        ("1.23e-05", 1.23e-5, ""),
        ("295.343 FLOP/B", 295.343, "FLOP/B"),
        ("3.35 TB/s", 3.35e12, "B/s"),
        ("-250 ms", -0.25, "s"),
        ("700 W", 700, "W"),
    ],
)
def test_reads_written_numbers_back(text: str, value: float, unit: str) -> None:
    found, plain = reread(text)
    assert found == pytest.approx(value)
    assert plain == unit


@pytest.mark.parametrize("text", ["", "GB", "12,34", "5 XB", "5  GB", "W", "5 GBx", "nan", "inf"])
def test_refuses_what_is_no_written_number(text: str) -> None:
    with pytest.raises(NotAFormulaError):
        reread(text)


def test_a_bare_symbol_among_numbers_is_found() -> None:
    assert substituted_value("max(16 GB ÷ 4 GB/s, 2 × 3 s)") == 6
    for text in ("16 GB ÷ BW", "B × 5", "5 × B", "500 tokens ÷ T", "t_kv"):
        with pytest.raises(NotAFormulaError):
            substituted_value(text)
