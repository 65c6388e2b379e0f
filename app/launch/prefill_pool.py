"""The prefill pool of a disaggregated scenario: what the launch of the decode side says of it, and reads of it."""

from collections.abc import Mapping
from typing import Any

from app.catalog.catalog import Catalog
from app.launch.findings import Findings, get
from app.launch.forms import Reason
from app.scenario import Parallelism, Scenario
from app.scenario_techniques import Disaggregation

_SIZES: Mapping[str, str] = {
    "replicas": "instances",
    "parallelism.tensor": "tensor",
    "parallelism.data": "data",
}


def as_pool(scenario: Scenario, pool: Disaggregation) -> Scenario:
    """The scenario as an instance of its pool serves it: the same model and settings, split as the pool is."""
    split = Parallelism(tensor=pool.tensor, pipeline=pool.pipeline, data=pool.data, expert=pool.expert)
    return scenario.model_copy(update={"parallelism": split})


def gpus_of(pool: Disaggregation) -> int:
    """GPUs of one instance."""
    return pool.tensor * pool.pipeline * pool.data


def sizes(pool: Disaggregation, catalog: Catalog) -> str:
    """Such as "2 instances on NVIDIA H100 SXM 80 GB, each with tensor 4 × data 2"."""
    record = catalog.accelerators.get(pool.hardware.id or "")
    own = pool.hardware.custom.name if pool.hardware.custom else pool.hardware.id
    parts = {"tensor": pool.tensor, "pipeline": pool.pipeline, "data": pool.data, "expert": pool.expert}
    split = " × ".join(f"{name} {size}" for name, size in parts.items() if size > 1 or name == "tensor")
    plural = "" if pool.instances == 1 else "s"
    return f"{pool.instances} instance{plural} on {record.name if record else own}, each with {split}"


def note(pool: Disaggregation, catalog: Catalog) -> str:
    """What the launch of the decode side leaves to a second one."""
    return (
        f"This launches the decode side. The prefill pool needs a second launch: {sizes(pool, catalog)}. "
        "The flags by which caches travel between the two, and the router before them, are not said here."
    )


def read(role: Mapping[str, Any], findings: Findings, comment: Mapping[str, Any]) -> None:
    """Set the pool's sizes from the prefill section of llm-d values, where the comment names the pool's card: the
    section names none, and without one there is no pool to speak of."""
    if get(comment, "techniques.disaggregation.hardware") is None:
        findings.leave("--prefill", Reason.VALUE)
        return
    for key, field in _SIZES.items():
        text = get(role, key)
        if isinstance(text, str):
            findings.whole(f"prefill.{key}", f"techniques.disaggregation.{field}", text)
