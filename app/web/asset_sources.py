"""Collects what a build of the browser assets starts from: our own static files and the libraries' bundles."""

import re
from pathlib import Path

from app.web.asset_manifest import CONTENT_TYPES
from app.web.plotly_css import stylesheet

LIBRARY_FILES = {
    "vendor/htmx.min.js": "htmx.org/dist/htmx.min.js",
    "vendor/hx-sse.min.js": "htmx.org/dist/ext/hx-sse.min.js",
    "vendor/inter.woff2": "@fontsource-variable/inter/files/inter-latin-wght-normal.woff2",
    "vendor/plotly-basic.min.js": "plotly.js-basic-dist-min/plotly-basic.min.js",
}
"""Path of each library file among the assets, and in node_modules."""
PLOTLY_BUNDLE = "vendor/plotly-basic.min.js"
PLOTLY_STYLESHEET = "vendor/plotly.css"

_CSS_IMPORT = re.compile(rb"@import\b", re.IGNORECASE)


class AssetSourceError(ValueError):
    """A source file is missing or of a kind that the build does not know."""


def collect_sources(static: Path, node_modules: Path) -> dict[str, bytes]:
    """Content of every asset by its path. Raises AssetSourceError or PlotlyRulesNotFoundError."""
    sources = _own_files(static) | _library_files(node_modules)
    sources[PLOTLY_STYLESHEET] = stylesheet(sources[PLOTLY_BUNDLE].decode()).encode()
    return sources


def _own_files(static: Path) -> dict[str, bytes]:
    files = {path.relative_to(static).as_posix(): path for path in sorted(static.rglob("*")) if path.is_file()}
    kept = {name: path for name, path in files.items() if not any(part.startswith(".") for part in name.split("/"))}
    for name, path in kept.items():
        if path.suffix not in CONTENT_TYPES:
            raise AssetSourceError(f"static/{name}: unknown file type; known are {', '.join(CONTENT_TYPES)}.")
    contents = {name: path.read_bytes() for name, path in kept.items()}
    for name, content in contents.items():
        # Built files have other names in one flat folder; imports of style sheets are not rewritten to them.
        if name.endswith(".css") and _CSS_IMPORT.search(content):
            raise AssetSourceError(f"static/{name}: @import does not survive the build; link the sheet from the page.")
    return contents


def _library_files(node_modules: Path) -> dict[str, bytes]:
    try:
        return {name: (node_modules / path).read_bytes() for name, path in LIBRARY_FILES.items()}
    except FileNotFoundError as error:
        raise AssetSourceError(f"The package of a browser library lacks {error.filename}.") from None
