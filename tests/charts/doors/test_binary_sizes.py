"""Sizes of a sentence in powers of 1,024: exact where the door knows the bytes, and rates as they are."""

import pytest

from app.charts.doors.binary_sizes import in_binary, sizes_of
from tests.door_scenarios import answers


@pytest.mark.parametrize(
    ("text", "sizes", "turned"),
    [
        ("16.1 GB instead of 9.08 GB.", [16_060_522_496, 9_082_904_576], "15 GiB instead of 8.46 GiB."),
        ("at 3.35 TB/s, 2 GB", [], "at 3.35 TB/s, 1.86 GiB"),
        ("a cache of 512 B, W8A8 KV8", [512], "a cache of 512 B, W8A8 KV8"),
        ("nothing, in 4.8 FLOP/B", [], "nothing, in 4.8 FLOP/B"),
        # Three digits of 1.0737 GB would come to 0.997 GiB.
        ("1.07 GB", [2**30], "1 GiB"),
    ],
)
def test_a_text(text: str, sizes: list[float], turned: str) -> None:
    assert in_binary(text, sizes) == turned


def test_every_size_that_a_sentence_says_is_one_that_its_door_knows_or_near_it() -> None:
    door = answers()["reference"].evaluation.doors[0]
    assert 16_060_522_496 in sizes_of(door)
    assert "8.46 GiB instead of 15 GiB" in in_binary(door.sentence, sizes_of(door))
