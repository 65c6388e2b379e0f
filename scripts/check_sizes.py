"""Fails on a file that has grown too long, a catch-all module, or code in a package's __init__.py."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parent.parent
LONGEST_FILE_LINES = 400
LONG_TEMPLATE_LINES = 150
CODE_SUFFIXES = frozenset({".py", ".js", ".html", ".css"})
CATCH_ALL_NAMES = frozenset({"utils", "helpers", "common", "manager", "base"})


def main(root: Path = ROOT) -> int:
    """Print the offenders among the files git knows or would add; 1 if any is an error, else 0."""
    files = [path for path in repository_files(root) if path.suffix in CODE_SUFFIXES]
    for warning in warnings(root, files):
        print(f"warning: {warning}")
    found = list(errors(root, files))
    for error in found:
        print(f"error: {error}")
    return 1 if found else 0


def repository_files(root: Path) -> list[PurePosixPath]:
    """Files that are tracked, or neither tracked nor ignored, and are there."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout  # noqa: S603
    return sorted({PurePosixPath(name) for name in listed.split("\0") if name and (root / name).is_file()})


def errors(root: Path, files: list[PurePosixPath]) -> Iterator[str]:
    """One sentence for each breach of the rules."""
    for path in files:
        lines = line_count(root / path)
        if lines > LONGEST_FILE_LINES:
            yield f"{path} has {lines} lines; at most {LONGEST_FILE_LINES} are allowed"
        if path.suffix == ".py" and path.parts[0] == "app":
            if CATCH_ALL_NAMES & {path.stem, *path.parts[:-1]}:
                yield f"{path} is named after no subject"
            if path.name == "__init__.py" and has_code(root / path):
                yield f"{path} holds more than a docstring"


def warnings(root: Path, files: list[PurePosixPath]) -> Iterator[str]:
    """One sentence for each file on its way to a breach."""
    for path in files:
        lines = line_count(root / path)
        if path.parts[0] == "templates" and lines > LONG_TEMPLATE_LINES:
            yield f"{path} has {lines} lines; a template over {LONG_TEMPLATE_LINES} wants to be split"


def line_count(path: Path) -> int:
    """Number of lines of a text file."""
    return len(path.read_text().splitlines())


def has_code(path: Path) -> bool:
    """Whether a module has a statement other than its docstring."""
    body = ast.parse(path.read_text()).body
    if body and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
        body = body[1:]
    return bool(body)


if __name__ == "__main__":
    sys.exit(main())
