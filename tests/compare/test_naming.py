"""Names that tell plans apart, and no more than that."""

import pytest

from tests.compared_plans import BASE, FP8, H200, compared

LLAMA_70B = "model=llama-3.1-70b&hw=h200-sxm&tp=4"


@pytest.mark.parametrize(
    ("texts", "names"),
    [
        ((BASE,), ["Llama-3.1-8B on H100 SXM5 80GB"]),
        ((BASE, H200), ["H100 SXM5 80GB", "H200 SXM 141GB"]),
        ((BASE, FP8), ["weights bf16", "weights fp8"]),
        ((BASE, f"{BASE}&batch=1", f"{BASE}&batch="), ["64 users", "1 user", "as many users as fit"]),
        ((BASE, f"{BASE}&tp=2"), ["TP 1", "TP 2"]),
        ((BASE, f"{BASE}&count=2"), ["1 GPU", "2 GPUs"]),
        ((BASE, f"{BASE}&max_seqs=8"), ["Sequences at a time: default", "Sequences at a time: 8"]),
        ((BASE, BASE), ["Plan A", "Plan B"]),
        ((BASE, H200, BASE), ["H100 SXM5 80GB (A)", "H200 SXM 141GB", "H100 SXM5 80GB (C)"]),
        (
            (BASE, FP8, H200),
            ["H100 SXM5 80GB, weights bf16", "H100 SXM5 80GB, weights fp8", "H200 SXM 141GB, weights bf16"],
        ),
        ((BASE, LLAMA_70B), ["Llama-3.1-8B", "Llama-3.1-70B"]),
    ],
)
def test_a_name_is_the_shortest_phrase_that_tells_the_plans_apart(texts: tuple[str, ...], names: list[str]) -> None:
    assert [plan.name for plan in compared(*texts).plans] == names


def test_four_plans_have_four_labels_whatever_they_are() -> None:
    for texts in ((BASE,) * 4, (BASE, FP8, H200, f"{H200}&w=fp8"), (BASE, "", BASE, H200)):
        labels = [plan.label for plan in compared(*texts).plans]
        assert len(set(labels)) == len(labels)
