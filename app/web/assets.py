"""The built browser assets at run time: their addresses for the templates, and the app that serves them."""

from collections.abc import Collection, Mapping
from pathlib import Path
from types import MappingProxyType

from starlette.datastructures import Headers
from starlette.responses import FileResponse, PlainTextResponse, Response
from starlette.staticfiles import NotModifiedResponse, StaticFiles
from starlette.types import Receive, Scope, Send

MOUNT_PATH = "/assets"
CURRENT = "current"
"""The file that names the folder of the current build: the digest of all that is in it."""
CONTENT_TYPES = MappingProxyType(
    {
        ".css": "text/css; charset=utf-8",
        ".js": "text/javascript; charset=utf-8",
        ".svg": "image/svg+xml; charset=utf-8",
        ".txt": "text/plain; charset=utf-8",
        ".webmanifest": "application/manifest+json; charset=utf-8",
        ".ico": "image/x-icon",
        ".png": "image/png",
        ".woff2": "font/woff2",
    }
)
"""Every file type that may lie in static/."""
TEXT_TYPES = frozenset(suffix for suffix, content_type in CONTENT_TYPES.items() if "charset" in content_type)
"""File types stored compressed as well; the others are compressed in themselves."""
ENCODINGS = MappingProxyType({"br": ".br", "gzip": ".gz", "identity": ""})
"""Suffix of the stored file for each content coding, best first."""
_FOR_EVER = {
    "Cache-Control": "public, max-age=31536000, immutable",
    "Vary": "Accept-Encoding",
    "Accept-Ranges": "none",
}


class AssetsMissingError(RuntimeError):
    """There is no complete asset build in the folder."""

    def __init__(self, missing: Path) -> None:
        super().__init__(f"The browser assets are not built ({missing} is missing): run make assets.")


class UnknownAssetError(LookupError):
    """A template asks for an asset that the build did not make."""

    def __init__(self, path: str, known: Collection[str]) -> None:
        super().__init__(f"No asset {path!r}; the build has: {', '.join(sorted(known)) or 'none'}.")


def current_build(folder: Path) -> str | None:
    """The digest of the build that is in force, if there is one."""
    try:
        return (folder / CURRENT).read_text().strip() or None
    except FileNotFoundError:
        return None


class Assets:
    """One build, looked at once. Raises AssetsMissingError."""

    def __init__(self, folder: Path) -> None:
        digest = current_build(folder)
        if digest is None or not (folder / digest).is_dir():
            raise AssetsMissingError(folder / (digest or CURRENT))
        self.digest, self.folder = digest, folder / digest
        names = {path.relative_to(self.folder).as_posix() for path in self.folder.rglob("*") if path.is_file()}
        self.paths = frozenset(name for name in names if Path(name).suffix in CONTENT_TYPES)

    def url(self, path: str) -> str:
        """Address of an asset, by its path in static/. Raises UnknownAssetError."""
        if path not in self.paths:
            raise UnknownAssetError(path, self.paths)
        return f"{MOUNT_PATH}/{self.digest}/{path}"


class AssetFiles(StaticFiles):
    """Serves the files of one build, each in the best coding the client accepts.

    The addresses carry the digest of the build, so an answer may be kept for ever; any other digest is not found.
    """

    def __init__(self, assets: Assets) -> None:
        super().__init__(directory=assets.folder)
        self._assets = assets

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1000})
            return
        # A request for many small ranges would cost far more than the file; RFC 9110 lets a server ignore the header.
        headers = [header for header in scope["headers"] if header[0] != b"range"]
        await super().__call__({**scope, "headers": headers}, receive, send)

    async def get_response(self, path: str, scope: Scope) -> Response:
        """The file at the path below the mount, which begins with the digest."""
        if scope["method"] not in ("GET", "HEAD"):
            return _plain(405, "Method not allowed\n", {"Allow": "GET, HEAD"})
        digest, _, name = path.partition("/")
        if digest != self._assets.digest or name not in self._assets.paths:
            return _plain(404, "Not found\n")
        suffix = Path(name).suffix
        request = Headers(scope=scope)
        codings = ENCODINGS if suffix in TEXT_TYPES else {"identity": ""}
        coding = _best_coding(",".join(request.getlist("accept-encoding")), codings)
        file, status = self.lookup_path(name + codings[coding])
        if status is None:
            return _plain(404, "Not found\n")
        headers = _FOR_EVER if coding == "identity" else _FOR_EVER | {"Content-Encoding": coding}
        response = FileResponse(file, headers=headers, media_type=CONTENT_TYPES[suffix], stat_result=status)
        return NotModifiedResponse(response.headers) if self.is_not_modified(response.headers, request) else response


def _plain(status: int, text: str, headers: Mapping[str, str] | None = None) -> Response:
    return PlainTextResponse(text, status, {"Cache-Control": "no-store"} | dict(headers or {}))


def _best_coding(accept_encoding: str, available: Collection[str]) -> str:
    weights = dict(_weight(element) for element in accept_encoding.lower().split(","))
    # Uncompressed is the answer of last resort even to one who refuses it: RFC 9110 prefers that to an error.
    return next((coding for coding in available if weights.get(coding, weights.get("*", 0.0)) > 0), "identity")


def _weight(element: str) -> tuple[str, float]:
    coding, _, parameter = element.partition(";")
    name, _, value = parameter.partition("=")
    try:
        return coding.strip(), float(value) if name.strip() == "q" else 1.0
    except ValueError:
        return coding.strip(), 0.0
