"""Numbers as engines print them."""

import pytest

from app.engine_io.logs.patterns import read_memory, read_number


@pytest.mark.parametrize(
    ("text", "value", "kept"),
    [
        ("188,512", 188_512, "188,512"),
        ("1,139,456", 1_139_456, "1,139,456"),
        ("-1.05", -1.05, "-1.05"),
        ("1039,50", 1039.5, "1039,50"),
        ("367404,", 367_404, "367404"),
        ("8.23.", 8.23, "8.23"),
        ("1,234.5", 1234.5, "1,234.5"),
        ("0.8999999761581421", 0.8999999761581421, "0.8999999761581421"),
    ],
)
def test_a_number_is_read(text: str, value: float, kept: str) -> None:
    assert read_number(text) == (value, kept)


@pytest.mark.parametrize("text", ["", "-", "1,2,3", "1.2.3", "12,3456", "9" * 25, "1e5", "nan"])
def test_what_is_none_is_not(text: str) -> None:
    assert read_number(text) is None


def test_gb_means_gib() -> None:
    assert read_memory("8.23 GB") == (8.23 * 2**30, "8.23 GB")
    assert read_memory("8.23GiB") == (8.23 * 2**30, "8.23 GiB")
    assert read_memory("6695 MiB") == (6695 * 2**20, "6695 MiB")
    assert read_memory("47878721024 bytes") == (47878721024.0, "47878721024 bytes")
    assert read_memory("39.5") == (39.5 * 2**30, "39.5 GiB")
    assert read_memory("24124", "MiB") == (24124 * 2**20, "24124 MiB")
