"""What is named to somebody who asks for what is not there."""

import pytest

from app.web.near_names import MOST_NAMES, near_ids
from tests.factories import shipped_catalog

NAMES = {id_: record.name for id_, record in shipped_catalog().accelerators.items()}


@pytest.mark.parametrize(
    ("given", "first"),
    [
        ("h100", "h100-pcie-80gb"),
        ("H100-SXM-80GB", "h100-sxm-80gb"),
        ("h100 sxm", "h100-sxm-80gb"),
        ("h100_sxm", "h100-sxm-80gb"),
        ("h100-sxn-80gb", "h100-sxm-80gb"),
        ("geforce rtx 4090", "rtx-4090"),
        ("rtx4090", "rtx-4090"),
        ("Ironwod", "tpu-v7"),
    ],
)
def test_the_nearest_comes_first(given: str, first: str) -> None:
    assert near_ids(given, NAMES)[0] == first


@pytest.mark.parametrize("given", ["", " ", "---", "\0", "日本語", "<script>", "%2e%2e"])
def test_nonsense_is_near_nothing(given: str) -> None:
    assert near_ids(given, NAMES) == []


def test_few_are_named_whatever_is_asked() -> None:
    for given in ("a", "e" * 100_000, "nvidia", "rtx"):
        found = near_ids(given, NAMES)
        assert len(found) <= MOST_NAMES
        assert set(found) <= set(NAMES)
        assert len(set(found)) == len(found)
