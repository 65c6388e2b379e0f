"""The scenario that stands there before anything is asked."""

from app.scenario import Scenario

DEFAULT_MODEL, DEFAULT_HARDWARE = "llama-3.1-8b", "h100-sxm-80gb"


def default_scenario() -> Scenario:
    """What the workbench shows before anything is asked."""
    return Scenario.model_validate({"model": {"id": DEFAULT_MODEL}, "hardware": {"id": DEFAULT_HARDWARE}})
