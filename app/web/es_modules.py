"""Finds and replaces the relative imports of ECMAScript modules, so that they may name fingerprinted files."""

import posixpath
import re
from collections.abc import Callable, Iterator, Mapping
from graphlib import CycleError, TopologicalSorter

# Comments and strings come along so that an import inside one is not taken for real. Statements start their line.
_TOKEN = re.compile(
    r"""
      (?P<comment> //[^\n]* | /\*.*?\*/ )
    | ^[ \t]*(?:import|export)\b[^'"`;()]*?\bfrom\s*(?P<from>"[^"\n]*"|'[^'\n]*')
    | ^[ \t]*import\s*(?P<bare>"[^"\n]*"|'[^'\n]*')
    | \bimport\(\s*(?P<dynamic>"[^"\n]*"|'[^'\n]*')\s*\)
    | (?P<string> "(?:[^"\\\n]|\\.)*" | '(?:[^'\\\n]|\\.)*' | `(?:[^`\\]|\\.)*` )
    """,
    re.VERBOSE | re.MULTILINE | re.DOTALL,
)
_IMPORTS = ("from", "bare", "dynamic")


class ModuleImportError(ValueError):
    """A module imports what is not there, in a way a browser cannot follow, or in a circle."""


def imported_paths(path: str, source: str) -> Iterator[str]:
    """Path of each module that the one at `path` imports. Raises ModuleImportError for a name without ./ or ../."""
    for _, specifier in _specifiers(source):
        yield _resolve(path, specifier)


def rewrite_imports(path: str, source: str, rename: Callable[[str], str]) -> str:
    """The source with `rename(imported path)` in the place of each import's specifier."""
    parts, end = [], 0
    for start, specifier in _specifiers(source):
        parts += [source[end:start], rename(_resolve(path, specifier))]
        end = start + len(specifier)
    return "".join([*parts, source[end:]])


def dependency_order(sources: Mapping[str, str]) -> tuple[str, ...]:
    """Paths of the modules, each after all that it imports. Raises ModuleImportError."""
    graph: dict[str, set[str]] = {}
    for path, source in sources.items():
        graph[path] = set(imported_paths(path, source))
        for missing in sorted(graph[path] - sources.keys()):
            raise ModuleImportError(f"{path} imports {missing}, which does not exist.")
    try:
        return tuple(TopologicalSorter(graph).static_order())
    except CycleError as error:
        circle = " → ".join(reversed(error.args[1]))
        raise ModuleImportError(f"Modules import each other in a circle: {circle}.") from None


def _specifiers(source: str) -> Iterator[tuple[int, str]]:
    for token in _TOKEN.finditer(source):
        for group in _IMPORTS:
            if token[group]:
                yield token.start(group) + 1, token[group][1:-1]


def _resolve(path: str, specifier: str) -> str:
    if not specifier.startswith(("./", "../")):
        raise ModuleImportError(f"{path} imports {specifier!r}: only relative paths, ./ or ../, work in a browser.")
    return posixpath.normpath(posixpath.join(posixpath.dirname(path), specifier))
