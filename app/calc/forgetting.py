"""What was measured under the old conditions, and is forgotten where a change ends them."""

from dataclasses import replace
from types import MappingProxyType
from typing import Any

from app.calc.deployment import Deployment

MEASURED_PARTS = MappingProxyType(
    {
        "total_memory": "total_memory_bytes",
        "weights": "weights_bytes",
        "activation": "activation_bytes",
        "non_framework": "non_framework_bytes",
        "graphs": "graph_bytes",
    }
)
"""Fields of `Given` that follow from the setting they were measured in, and their names in a scenario's engine."""
POOL = "kv_pool"
"""The field of the measured pool: what is left of all the others."""
OF_CARD = ("total_memory", "non_framework")
"""What was measured of a card, and says nothing of another."""
_KEYS = MappingProxyType({**MEASURED_PARTS, POOL: "kv_pool_bytes"})


def forgetting(deployment: Deployment, *names: str) -> tuple[Deployment, dict[str, None]]:
    """The deployment without measurements that a change would make untrue, and the patch of its engine that drops them.

    Args:
        deployment: what the measurements were given with.
        names: fields of `Given`; what was not given needs no dropping.
    """
    given = deployment.engine.given
    known = [name for name in names if getattr(given, name) is not None]
    if not known:
        return deployment, {}
    nothing: dict[str, Any] = dict.fromkeys(known)
    engine = replace(deployment.engine, given=replace(given, **nothing))
    return replace(deployment, engine=engine), {_KEYS[name]: None for name in known}


def patch_of(forgotten: dict[str, None], **sections: Any) -> dict[str, Any]:
    """A merge patch (RFC 7396) of a scenario's sections, and of its engine where something is dropped there."""
    return sections | ({"engine": dict(forgotten)} if forgotten else {})
