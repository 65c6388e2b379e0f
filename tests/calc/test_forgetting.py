"""What was measured is dropped by name, from the deployment and from the scenario alike."""

from dataclasses import replace

import pytest

from app.calc.memory.engines.parts import Given
from app.calc.sweep import MEASURED_PARTS, POOL, forgetting, patch_of
from app.scenario.scenario import Engine
from tests.factories import deployment, engine


def test_only_what_was_given_and_named_is_dropped() -> None:
    asked = deployment(engine=engine(given=Given(total_memory=8e10, weights=1.6e10, kv_pool=5e10)))
    left, dropped = forgetting(asked, "weights", "graphs", POOL)
    assert left.engine.given == Given(total_memory=8e10)
    assert dropped == {"weights_bytes": None, "kv_pool_bytes": None}
    assert replace(left, engine=asked.engine) == asked


def test_nothing_given_is_nothing_dropped() -> None:
    asked = deployment()
    left, dropped = forgetting(asked, *MEASURED_PARTS, POOL)
    assert left is asked
    assert patch_of(dropped, hardware={"id": "x"}) == {"hardware": {"id": "x"}}


@pytest.mark.parametrize("name", [*MEASURED_PARTS, POOL])
def test_a_scenario_knows_every_name(name: str) -> None:
    asked = deployment(engine=engine(given=Given(**{name: 1e9})))
    _, dropped = forgetting(asked, name)
    (key,) = patch_of(dropped)["engine"]
    assert key in Engine.model_fields
