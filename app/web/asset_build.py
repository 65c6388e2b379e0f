"""Builds the browser assets: fetches the libraries, fingerprints and compresses every file, writes the manifest."""

import base64
import gzip
import hashlib
import re
import tempfile
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

import brotli

from app.settings import ROOT
from app.web import npm
from app.web.asset_manifest import FILE_NAME, Asset, AssetsMissingError, Manifest
from app.web.asset_sources import collect_sources
from app.web.css_urls import rewrite_urls
from app.web.es_modules import dependency_order, rewrite_imports

FINGERPRINT_DIGITS = 12
_BUILT_NAME = re.compile(rf"\.[0-9a-f]{{{FINGERPRINT_DIGITS}}}\.[a-z0-9]+(\.br|\.gz)?$")
OWN_MODULES, OWN_SHEETS = "js/", "css/"
"""The folders of our own ES modules and style sheets; the libraries' files are left as they are."""


def build_assets(out: Path, *, root: Path = ROOT, dev: bool = False) -> bool:
    """Bring the assets in `out` up to date, with the libraries used by tests if `dev`; whether anything was to do.

    Raises NpmMissingError, NpmFailedError, AssetSourceError, ModuleImportError, CssUrlError or
    PlotlyRulesNotFoundError.
    """
    return write_assets(out, collect_sources(root / "static", npm.install(root, dev=dev)))


def write_assets(out: Path, sources: Mapping[str, bytes]) -> bool:
    """Write sources as a build in `out` unless it is there already; whether it was not.

    Raises ModuleImportError or CssUrlError.

    Each file is renamed into place whole, the manifest last, and the files of the build before stay: a server that
    starts meanwhile finds all that its manifest names.
    """
    inputs = _digest(sources)
    previous = _previous_build(out)
    if previous and previous.inputs == inputs and all((out / name).is_file() for name in previous.stored_files()):
        return False
    out.mkdir(parents=True, exist_ok=True)
    contents = _link(sources)
    with tempfile.TemporaryDirectory(dir=out.parent, prefix=f".{out.name}-") as folder:
        assets = {logical: _store(logical, content, out, Path(folder)) for logical, content in contents.items()}
        manifest = Manifest(inputs, assets)
        _replace(out / FILE_NAME, manifest.as_json(), Path(folder))
    kept = manifest.stored_files() | (previous.stored_files() if previous else frozenset())
    for path in out.iterdir():
        # Only what a build wrote: the folder is the operator's to name.
        if path.name not in kept and _BUILT_NAME.search(path.name):
            path.unlink()
    return True


def fingerprinted_name(logical: str, content: bytes) -> str:
    """The file's name with the first digits of its SHA-256 before the last suffix."""
    path = PurePosixPath(logical)
    return f"{path.stem}.{hashlib.sha256(content).hexdigest()[:FINGERPRINT_DIGITS]}{path.suffix}"


def _link(sources: Mapping[str, bytes]) -> dict[str, bytes]:
    """The sources, with every import of our modules and url() of our sheets naming the fingerprinted file."""
    contents = dict(sources)
    modules = {logical: content.decode() for logical, content in sources.items() if logical.startswith(OWN_MODULES)}

    def built_name(logical: str) -> str:
        return f"./{fingerprinted_name(logical, contents[logical])}"

    for logical in dependency_order(modules):
        contents[logical] = rewrite_imports(logical, modules[logical], built_name).encode()
    for logical in sources:
        if logical.startswith(OWN_SHEETS):
            contents[logical] = rewrite_urls(logical, sources[logical].decode(), sources, built_name).encode()
    return contents


def _store(logical: str, content: bytes, out: Path, scratch: Path) -> Asset:
    integrity = f"sha384-{base64.b64encode(hashlib.sha384(content).digest()).decode()}"
    asset = Asset(fingerprinted_name(logical, content), integrity, len(content))
    sizes = {}
    for coding, name in asset.stored_files.items():
        path = out / name
        # The name tells the content, so what an earlier build compressed is still right.
        if not path.is_file():
            _replace(path, _encode(content, coding), scratch)
        sizes[coding] = path.stat().st_size
    return Asset(asset.file, integrity, len(content), sizes.get("br"), sizes.get("gzip"))


def _encode(content: bytes, coding: str) -> bytes:
    if coding == "br":
        return bytes(brotli.compress(content, quality=11))
    return gzip.compress(content, compresslevel=9, mtime=0) if coding == "gzip" else content


def _replace(path: Path, content: bytes, scratch: Path) -> None:
    whole = scratch / path.name
    whole.write_bytes(content)
    whole.replace(path)


def _previous_build(out: Path) -> Manifest | None:
    try:
        return Manifest.read(out)
    except AssetsMissingError:
        return None


def _digest(sources: Mapping[str, bytes]) -> str:
    """One digest of all sources and of this program's own text, which decides what becomes of them."""
    digest = hashlib.sha256()
    program = {
        name: (Path(__file__).parent / name).read_bytes() for name in ("asset_build.py", "es_modules.py", "css_urls.py")
    }
    for name, content in sorted({**sources, **program}.items()):
        digest.update(f"{name}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()
