"""The built browser assets at run time: their addresses for the templates, and the ASGI app that serves them."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from starlette.datastructures import Headers
from starlette.types import Receive, Scope, Send

from app.web.asset_manifest import Asset, AssetsMissingError, Manifest

__all__ = ["MOUNT_PATH", "AssetFiles", "Assets", "AssetsMissingError", "UnknownAssetError"]

MOUNT_PATH = "/assets"


class UnknownAssetError(LookupError):
    """A template asks for an asset that the build did not make."""

    def __init__(self, path: str, known: Mapping[str, object]) -> None:
        super().__init__(f"No asset {path!r}; the build has: {', '.join(sorted(known)) or 'none'}.")


class Assets:
    """The manifest of one build, read once. Raises AssetsMissingError."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.by_path = Manifest.read(folder).assets

    def url(self, path: str) -> str:
        """Address of an asset, by its path in static/. Raises UnknownAssetError."""
        try:
            return f"{MOUNT_PATH}/{self.by_path[path].file}"
        except KeyError:
            raise UnknownAssetError(path, self.by_path) from None


@dataclass(frozen=True, slots=True)
class _Representation:
    """One file in one content coding, ready to send."""

    body: bytes
    etag: str
    headers: list[tuple[bytes, bytes]]


class AssetFiles:
    """ASGI app that serves the files of one build from memory, each in the best coding the client accepts.

    The names carry a fingerprint, so an answer may be kept for ever; anything but such a name is not found.
    Raises AssetsMissingError when a file of the manifest is not there.
    """

    def __init__(self, assets: Assets) -> None:
        # About 2 MB: a later build may then remove these files under a running server.
        self._files = {asset.file: _representations(assets.folder, asset) for asset in assets.by_path.values()}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; Range is ignored, as RFC 9110 allows."""
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1000})
            return
        status, headers, body = self._answer(scope)
        headers = [*headers, (b"content-length", str(len(body)).encode())] if status != 304 else headers
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else body})

    def _answer(self, scope: Scope) -> tuple[int, list[tuple[bytes, bytes]], bytes]:
        if scope["method"] not in ("GET", "HEAD"):
            return 405, [(b"allow", b"GET, HEAD"), *_PLAIN_TEXT], b"Method not allowed\n"
        # A mounted app sees the whole path; the part that led here is its root_path.
        name = scope["path"].removeprefix(scope.get("root_path", "")).removeprefix("/")
        codings = self._files.get(name)
        if codings is None:
            return 404, _PLAIN_TEXT, b"Not found\n"
        request = Headers(scope=scope)
        chosen = codings[_best_coding(",".join(request.getlist("accept-encoding")), codings)]
        if _names_etag(",".join(request.getlist("if-none-match")), chosen.etag):
            return 304, chosen.headers[:3], b""
        return 200, chosen.headers, chosen.body


_PLAIN_TEXT = [(b"content-type", b"text/plain; charset=utf-8"), (b"cache-control", b"no-store")]


def _representations(folder: Path, asset: Asset) -> dict[str, _Representation]:
    return {coding: _representation(folder / name, coding, asset) for coding, name in asset.stored_files.items()}


def _representation(path: Path, coding: str, asset: Asset) -> _Representation:
    try:
        body = path.read_bytes()
    except FileNotFoundError:
        raise AssetsMissingError(path) from None
    etag = f'"{path.name}"'
    headers = [
        # The first three go with 304 as well.
        (b"cache-control", b"public, max-age=31536000, immutable"),
        (b"vary", b"Accept-Encoding"),
        (b"etag", etag.encode()),
        (b"content-type", asset.content_type.encode()),
    ]
    if coding != "identity":
        headers.append((b"content-encoding", coding.encode()))
    return _Representation(body, etag, headers)


def _best_coding(accept_encoding: str, available: Mapping[str, object]) -> str:
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


def _names_etag(if_none_match: str, etag: str) -> bool:
    return any(part.strip().removeprefix("W/") in ("*", etag) for part in if_none_match.split(","))
