"""Plans to compare, and how the tests read a comparison."""

from collections.abc import Sequence

from app.features.compare.plans import Comparison, Plan, read_comparison
from app.scenario.answer import Answer
from app.store.links import Saved
from app.web.problem import ProblemError
from tests.factories import answer_to, shipped_catalog

BASE = "model=llama-3.1-8b&hw=h100-sxm-80gb"
H200 = "model=llama-3.1-8b&hw=h200-sxm"
FP8 = f"{BASE}&w=fp8"
UNFIT = "model=llama-3.1-70b&hw=rtx-4090"


def nothing_saved(slug: str) -> Saved:
    """A store without any link."""
    raise ProblemError(404, f"There is no {slug}.")


def compared(*texts: str, **view: str) -> Comparison:
    """The comparison of these texts, where nothing is saved."""
    return read_comparison([*(("s", text) for text in texts), *view.items()], shipped_catalog(), nothing_saved)


def plans_of(answers: Sequence[Answer], name: str = "Plan") -> list[Plan]:
    """Plans of these answers, in their order."""
    return [Plan(place, answer, name=f"{name} {place}") for place, answer in enumerate(answers)]


def four_plans() -> list[Plan]:
    """One of each look: a card, a wider one, eight that share, and one on which nothing fits."""
    return plans_of(
        [
            answer_to(),
            answer_to(hardware="h200-sxm", precision={"weights": "fp8"}),
            answer_to("llama-3.1-70b", "h100-sxm-80gb", parallelism={"tensor": 8}),
            answer_to("llama-3.1-70b", "rtx-4090"),
        ]
    )
