"""A family of models: whose configurations are read in one and the same way."""

from dataclasses import dataclass

from app.catalog.importing.recipe import Reader


@dataclass(frozen=True, slots=True)
class Family:
    """`model_types` are the values of the key by which its configurations are known, the first its usual one."""

    title: str
    model_types: tuple[str, ...]
    read: Reader

    @property
    def id(self) -> str:
        """The family's name in this package."""
        return self.model_types[0]
