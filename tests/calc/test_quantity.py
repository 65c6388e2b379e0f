"""How quantities are written, and that what is written reads back as the value, to the digits shown."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.calc.quantity import quantity, significant
from tests.calc.formulas import reread
from tests.calc.strategies import repeatable

UNITS = ["B", "B/s", "FLOP", "FLOP/s", "W", "s", "FLOP/B", "tokens", "tokens/s", "J", "$", ""]


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [
        (0.0, 3, "0"),
        (-0.0, 3, "0"),
        (1.0, 3, "1"),
        (9.999, 3, "10"),
        (0.0001234567, 3, "0.000123"),
        (-0.25, 3, "-0.25"),
        (131.349, 3, "131"),
        (1234567.0, 3, "1,230,000"),
        (1234567.0, 7, "1,234,567"),
        (1e-12, 3, "0.000000000001"),
        (100.0, 6, "100"),
        (999.9996, 6, "1,000"),
        (-1234.5, 2, "-1,200"),
    ],
)
def test_significant_digits_without_trailing_zeros(value: float, digits: int, text: str) -> None:
    assert significant(value, digits) == text


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0, "B", "0 B"),
        (0, "s", "0 s"),
        (0, "$", "$0"),
        (0, "", "0"),
        (131_072, "B", "131,072 B"),
        (999_999, "B", "999,999 B"),
        (16_060_522_496, "B", "16.0605 GB"),
        (536_870_912, "B", "536.871 MB"),
        (10_000_000, "B", "10 MB"),
        (1_048_576.5, "B", "1.04858 MB"),
        (0.5, "B", "0.5 B"),
        (1e18, "B", "1,000 PB"),
        (3.35e12, "B/s", "3.35 TB/s"),
        (989.4e12, "FLOP/s", "989.4 TFLOP/s"),
        (16.06e12, "FLOP", "16.06 TFLOP"),
        (1.00261e12, "FLOP", "1.00261 TFLOP"),
        (700, "W", "700 W"),
        (1500.5, "W", "1.5005 kW"),
        (0.004794, "s", "4.794 ms"),
        (2.41333, "s", "2.41333 s"),
        (1.06226e-6, "s", "1.06226 µs"),
        (1.5e-9, "s", "1.5 ns"),
        (1e-13, "s", "0.0001 ns"),
        (3600.0, "s", "3,600 s"),
        (-0.25, "s", "-250 ms"),
        (487_819, "tokens", "487,819 tokens"),
        (487_819.0, "tokens", "487,819 tokens"),
        (464_692_123, "tokens", "464,692,123 tokens"),
        (8374.03537, "tokens/s", "8,374.04 tokens/s"),
        (295.34328, "FLOP/B", "295.343 FLOP/B"),
        (0.0835917, "J", "0.0835917 J"),
        (2.95, "$", "$2.95"),
        (0.0978553837, "$", "$0.0978554"),
        (64, "", "64"),
        (8_030_261_248, "", "8,030,261,248"),
        (0.78330301, "", "0.783303"),
        (1.2345e-5, "", "1.23450e-05"),
        (1e16, "tokens", "1.00000e+16 tokens"),
    ],
)
def test_written_in_six_digits(value: float, unit: str, text: str) -> None:
    assert quantity(value, unit) == text


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (85_520_809_984, "B", "85.5 GB"),
        (131_072, "B", "131 kB"),
        (512, "B", "512 B"),
        (487_819, "tokens", "487,819 tokens"),  # a count stays exact
        (0.0046409, "s", "4.64 ms"),
        (0.1, "s", "100 ms"),
    ],
)
def test_written_in_three_digits(value: float, unit: str, text: str) -> None:
    assert quantity(value, unit, 3) == text


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (536_870_912, "B", "512 MiB"),
        (17_179_869_184, "B", "16 GiB"),
        (85_520_809_984, "B", "79.6475 GiB"),
        (2**40, "B", "1 TiB"),
        (2**50, "B", "1,024 TiB"),
        (1_048_576.5, "B", "1 MiB"),
        (131_072, "B", "131,072 B"),  # exact stays exact
        (100.5, "B", "100.5 B"),
        (3.35e12, "B/s", "3.35 TB/s"),  # rates stay decimal, as vendors state them
        (989e12, "FLOP/s", "989 TFLOP/s"),
        (0.5, "s", "500 ms"),
    ],
)
def test_written_in_powers_of_1024(value: float, unit: str, text: str) -> None:
    assert quantity(value, unit, binary=True) == text


def test_a_negative_number_is_written_as_its_positive_twin_with_a_sign() -> None:
    for value in (5, 131_072, 999_999, 16_060_522_496, 0.25):
        assert quantity(-value, "B") == f"-{quantity(value, 'B')}"


values = st.floats(1e-12, 1e24) | st.integers(1, 10**15).map(float) | st.floats(1e-3, 1e7)


@repeatable
@given(values, st.sampled_from(UNITS), st.sampled_from([3, 6]), st.booleans(), st.booleans())
def test_what_is_written_reads_back_to_the_digits_shown(
    size: float, unit: str, digits: int, binary: bool, negative: bool
) -> None:
    value = -size if negative and unit != "$" else size
    found, plain = reread(quantity(value, unit, digits, binary=binary))
    assert plain == unit
    assert math.copysign(1, found) == math.copysign(1, value)
    assert found == pytest.approx(value, rel=0.5000001 * 10 ** (1 - digits))


@repeatable
@given(st.integers(-(10**15) + 1, 10**15 - 1), st.sampled_from(["tokens", "", "$"]))
def test_a_count_is_written_exactly(value: int, unit: str) -> None:
    text = quantity(float(value), unit).replace("$", "").split()[0]
    assert int(text.replace(",", "")) == value


@repeatable
@given(st.floats(1e-12, 1e15), st.integers(1, 12))
def test_significant_digits_read_back(value: float, digits: int) -> None:
    text = significant(value, digits)
    assert float(text.replace(",", "")) == pytest.approx(value, rel=0.5000001 * 10 ** (1 - digits))
    assert not (text.endswith("0") and "." in text)
