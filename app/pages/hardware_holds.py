"""Which of the catalog's models one accelerator holds, the largest first."""

from app.calc.accelerator import Accelerator
from app.calc.weight_plan import NATIVE
from app.model_facts import ModelFacts, ModelShelf
from app.pages.hardware_view import Held
from app.web import urls


def held_models(accelerator: Accelerator, shelf: ModelShelf) -> list[Held]:
    """A row for each model that one card holds in some format, in the widest that it holds."""
    rows = [row for facts in shelf.facts.values() if (row := _held(facts, accelerator))]
    return sorted(rows, key=lambda row: -row.weight_bytes)


def _held(facts: ModelFacts, accelerator: Accelerator) -> Held | None:
    for load in facts.loads:
        if holding := load.on_one(accelerator):
            named = "mixed" if load.weights == NATIVE else load.weights
            return Held(
                name=facts.record.name,
                href=urls.model(facts.record.id),
                format=f"{named}, as shipped" if load is facts.loads[0] else named,
                weight_bytes=load.weight_bytes,
                users=holding.users,
                tokens=load.tokens,
            )
    return None
