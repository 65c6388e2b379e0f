"""A catalog record as JSON has it."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any


def facts(value: Any) -> Any:
    """A record in plain types; what is unknown is null."""
    if is_dataclass(value):
        return {field.name: facts(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): facts(item) for key, item in value.items()}
    if isinstance(value, frozenset):
        return sorted(facts(item) for item in value)  # a set has no order of its own, and an answer must not vary
    return [facts(item) for item in value] if isinstance(value, tuple) else value
