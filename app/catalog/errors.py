"""What goes wrong while a catalog is read, and where."""

from dataclasses import dataclass
from pathlib import Path


class CatalogError(ValueError):
    """A catalog file holds something the loader refuses; says in which file, row and field."""

    def __init__(self, file: Path, row: str, field: str, message: str) -> None:
        self.file, self.row, self.field, self.message = file, row, field, message
        super().__init__(f"{file}, row {row}, {field}: {message}")


@dataclass(frozen=True, slots=True)
class Place:
    """Where in a catalog a value stands: the file, the row's id and the dotted path of the field."""

    file: Path
    row: str
    path: str = ""

    def inside(self, key: str) -> "Place":
        """The place of a table's key."""
        return Place(self.file, self.row, f"{self.path}.{key}" if self.path else key)

    def item(self, number: int) -> "Place":
        """The place of a list's item, counted from 1."""
        return Place(self.file, self.row, f"{self.path}[{number}]")

    def refusal(self, message: str) -> CatalogError:
        """The error to raise for what stands here."""
        return CatalogError(self.file, self.row, self.path or "-", message)
