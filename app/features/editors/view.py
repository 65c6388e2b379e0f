"""The editor's form as the template walks it: groups, parts and cells, each with its text and what is wrong with it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from app.calc.model.architecture import LayerGroup, MultiTokenPrediction, SidePath
from app.calc.model.layers.parts import FeedForward, Mixer
from app.features.editors.labels import KINDS
from app.features.editors.tree import (
    BLOCKS,
    EDITOR_TREE_GROUPS,
    KIND,
    MOST_BLOCKS,
    MOST_GROUPS,
    MOST_SIDE_PATHS,
    MTP,
    NO_KIND,
    ORDER,
    REGISTRIES,
    SIDE_PATHS,
    THERE,
    Input,
    Spec,
    Tree,
    branch,
    items_in,
    leaf,
    path_of,
    shape_specs,
    specs_of,
)

Choices = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Cell:
    """One field: where it is, what stands in it, and what is wrong with it."""

    path: str
    label: str
    input: str
    text: str
    error: str
    choices: Choices = ()
    placeholder: str = ""


@dataclass(frozen=True, slots=True)
class Part:
    """A mixer, a block, or a part of one. `kind` is the choice that says which, None where there is none."""

    path: str
    label: str
    kind: Cell | None
    cells: tuple[Cell, ...] = ()
    parts: "tuple[Part, ...]" = ()
    optional: Cell | None = None


@dataclass(frozen=True, slots=True)
class GroupView:
    """One group of like layers."""

    path: str
    letter: str
    cells: tuple[Cell, ...]
    mixer: Part
    blocks: tuple[Part, ...]
    more: tuple[Cell, ...]
    side_paths: tuple[tuple[Cell, ...], ...]
    is_only: bool

    @property
    def paths(self) -> Iterator[str]:
        """Every field that can carry a message."""
        yield from (cell.path for cell in (*self.cells, *self.more))
        yield from (cell.path for row in self.side_paths for cell in row)
        for part in (self.mixer, *self.blocks):
            yield from _paths(part)

    @property
    def has_more(self) -> bool:
        """True where what is folded away says something, or is wrong."""
        folded = (*self.more, *(cell for row in self.side_paths for cell in row))
        return any(cell.text or cell.error for cell in folded)


@dataclass(frozen=True, slots=True)
class EditorForm:
    """All of it. `errors` hold messages of paths that the form does not show too."""

    name: Cell
    weights: Cell
    shape: tuple[Cell, ...]
    order: Cell
    groups: tuple[GroupView, ...]
    side_paths: tuple[tuple[Cell, ...], ...]
    mtp: Cell
    mtp_cells: tuple[Cell, ...]
    mtp_groups: tuple[GroupView, ...]
    errors: Mapping[str, str]
    can_add: bool

    @property
    def paths(self) -> tuple[str, ...]:
        """Every field that can carry a message."""
        cells = (self.name, self.weights, *self.shape, self.order, self.mtp, *self.mtp_cells)
        rows = (cell for row in self.side_paths for cell in row)
        groups = (path for group in (*self.groups, *self.mtp_groups) for path in group.paths)
        return (*(cell.path for cell in cells), *(cell.path for cell in rows), *groups)

    @property
    def general(self) -> tuple[str, ...]:
        """Messages that belong to no field that is shown."""
        shown = set(self.paths)
        return tuple(f"{path}: {message}" for path, message in self.errors.items() if path not in shown)

    def error(self, name: str) -> str:
        """What is wrong with a field; empty when nothing is."""
        return self.errors.get(name, "")


def editor_form(tree: Tree, errors: Mapping[str, str], weights: Choices) -> EditorForm:
    """The form that shows what stands in the tree."""
    drawer = _Drawer(errors)
    mtp = branch(tree, MTP)
    groups = drawer.groups(tree, EDITOR_TREE_GROUPS)
    has_mtp = bool(leaf(mtp, THERE))
    return EditorForm(
        name=drawer.plain("model_name", "Name", leaf(tree, "model_name"), Input.TEXT),
        weights=Cell("w", "Weights", Input.CHOICE.value, leaf(tree, "w"), errors.get("w", ""), weights),
        shape=tuple(drawer.cell(spec, tree, "") for spec in shape_specs()),
        order=drawer.plain(ORDER, "Order", leaf(tree, ORDER), Input.TEXT),
        groups=groups,
        side_paths=drawer.side_paths(tree, ""),
        mtp=drawer.plain(path_of(MTP, THERE), "Has multi-token prediction", leaf(mtp, THERE), Input.FLAG),
        mtp_cells=drawer.cells(MultiTokenPrediction, mtp, MTP) if has_mtp else (),
        mtp_groups=drawer.groups(mtp, path_of(MTP, EDITOR_TREE_GROUPS)) if has_mtp else (),
        errors=errors,
        can_add=len(groups) < MOST_GROUPS,
    )


class _Drawer:
    def __init__(self, errors: Mapping[str, str]) -> None:
        self._errors = errors

    def plain(self, path: str, label: str, text: str, typed: Input) -> Cell:
        return Cell(path, label, typed.value, text, self._errors.get(path, ""))

    def cell(self, spec: Spec, tree: Tree, path: str) -> Cell:
        here = path_of(path, spec.name)
        return Cell(
            here,
            spec.label,
            spec.input.value,
            leaf(tree, spec.name),
            self._errors.get(here, ""),
            spec.choices,
            spec.placeholder,
        )

    def cells(self, kind: type, tree: Tree, path: str) -> tuple[Cell, ...]:
        plain = (spec for spec in specs_of(kind) if isinstance(spec, Spec) and spec.input is not Input.SET)
        return tuple(self.cell(spec, tree, path) for spec in plain)

    def groups(self, tree: Tree, path: str) -> tuple[GroupView, ...]:
        groups = items_in(tree, EDITOR_TREE_GROUPS, MOST_GROUPS)
        return tuple(self._group(group, path_of(path, n), n, len(groups) == 1) for n, group in enumerate(groups))

    def _group(self, tree: Tree, path: str, number: int, is_only: bool) -> GroupView:
        used = items_in(tree, BLOCKS, MOST_BLOCKS)
        shown = [*used, {}][:MOST_BLOCKS]
        return GroupView(
            path=path,
            letter=chr(ord("a") + number),
            cells=self.cells(LayerGroup, tree, path),
            mixer=self._open(Mixer, "Mixer", branch(tree, "mixer"), path_of(path, "mixer")),
            blocks=tuple(
                self._open(FeedForward, "Block" if n < len(used) else "Another block", block, path_of(path, BLOCKS, n))
                for n, block in enumerate(shown)
            ),
            more=self._set(tree, path),
            side_paths=self.side_paths(tree, path),
            is_only=is_only,
        )

    def _set(self, tree: Tree, path: str) -> tuple[Cell, ...]:
        """A box for each group of weights that may stay unquantized."""
        spec = next(s for s in specs_of(LayerGroup) if isinstance(s, Spec) and s.input is Input.SET)
        chosen = branch(tree, spec.name)
        here = path_of(path, spec.name)
        return tuple(
            self.plain(path_of(here, value), label, leaf(chosen, value), Input.FLAG) for value, label in spec.choices
        )

    def side_paths(self, tree: Tree, path: str) -> tuple[tuple[Cell, ...], ...]:
        rows = [*items_in(tree, SIDE_PATHS, MOST_SIDE_PATHS), {}][:MOST_SIDE_PATHS]
        return tuple(self.cells(SidePath, row, path_of(path, SIDE_PATHS, n)) for n, row in enumerate(rows))

    def _open(self, of: type, label: str, tree: Tree, path: str) -> Part:
        """A part whose kind is chosen, with the fields of the kind."""
        kind = leaf(tree, KIND) or NO_KIND
        none = (NO_KIND, "No attention" if of is Mixer else "None")
        choices = (*((name, KINDS[name]) for name in REGISTRIES[of]), none)
        here = path_of(path, KIND)
        choice = Cell(here, label, Input.CHOICE.value, kind, self._errors.get(here, ""), choices)
        known = REGISTRIES[of].get(kind)
        if known is None:
            return Part(path, label, choice)
        return Part(path, label, choice, self.cells(known, tree, path), self._nested(known, tree, path))

    def _nested(self, kind: type, tree: Tree, path: str) -> tuple[Part, ...]:
        found = []
        for spec in specs_of(kind):
            if isinstance(spec, Spec):
                continue
            below, here = branch(tree, spec.name), path_of(path, spec.name)
            box = None
            if not spec.is_required:
                box = self.plain(
                    path_of(here, THERE), f"Has its own {spec.label.lower()}", leaf(below, THERE), Input.FLAG
                )
            cells = self.cells(spec.kind, below, here)
            found.append(Part(here, spec.label, None, cells, self._nested(spec.kind, below, here), box))
        return tuple(found)


def _paths(part: Part) -> Iterator[str]:
    for cell in (part.kind, part.optional, *part.cells):
        if cell is not None:
            yield cell.path
    for below in part.parts:
        yield from _paths(below)
