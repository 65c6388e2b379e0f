"""Serving a build: addresses, negotiation, caching, and nothing but what was built."""

import gzip
from pathlib import Path

import brotli
import pytest
from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.testclient import TestClient, WebSocketDenialResponse
from starlette.websockets import WebSocketDisconnect

from app.web.asset_build import write_assets
from app.web.assets import MOUNT_PATH, AssetFiles, Assets, AssetsMissingError, UnknownAssetError

CSS = b"body { margin: 0 } " * 50


@pytest.fixture
def assets(tmp_path: Path) -> Assets:
    write_assets(tmp_path / "built", {"css/app.css": CSS, "js/app.js": b"1;\n", "icon.png": b"\x89PNG"})
    (tmp_path / "built/secret.txt").write_text("beside the build")
    return Assets(tmp_path / "built")


@pytest.fixture
def client(assets: Assets) -> TestClient:
    app = Starlette(routes=[Mount(MOUNT_PATH, AssetFiles(assets))])
    # The client's own Accept-Encoding would decide otherwise.
    return TestClient(app, headers={"accept-encoding": ""})


def stored(client: TestClient, url: str, accept_encoding: str) -> tuple[str | None, bytes]:
    with client.stream("GET", url, headers={"accept-encoding": accept_encoding}) as response:
        assert response.status_code == 200
        body = b"".join(response.iter_raw())
        assert int(response.headers["content-length"]) == len(body)
        assert response.headers["vary"] == "Accept-Encoding"
        return response.headers.get("content-encoding"), body


def test_addresses_carry_the_digest(assets: Assets) -> None:
    assert assets.url("css/app.css") == f"/assets/{assets.digest}/css/app.css"
    with pytest.raises(UnknownAssetError, match=r"No asset 'css/ap\.css'; the build has: css/app\.css, icon\.png"):
        assets.url("css/ap.css")


def test_no_build_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(AssetsMissingError, match="run make assets"):
        Assets(tmp_path)


def test_a_build_lost_after_it_was_named_says_what_to_do(assets: Assets) -> None:
    assets.folder.rename(assets.folder.with_name("elsewhere"))
    with pytest.raises(AssetsMissingError, match="run make assets"):
        Assets(assets.folder.parent)


@pytest.mark.parametrize(
    ("accept_encoding", "coding"),
    [
        ("", None),
        ("identity", None),
        ("gzip", "gzip"),
        ("gzip, deflate, br, zstd", "br"),
        ("GZIP;q=1.0, BR;q=0.1", "br"),
        ("br;q=0, gzip", "gzip"),
        ("br;q=0.000, gzip;q=0", None),
        ("*", "br"),
        ("*;q=0.5, br;q=0", "gzip"),
        ("*;q=0", None),
        ("br;q=often, gzip ; q=0.2", "gzip"),
        ("deflate", None),
    ],
)
def test_the_best_coding_accepted_is_sent(
    client: TestClient, assets: Assets, accept_encoding: str, coding: str | None
) -> None:
    sent_coding, body = stored(client, assets.url("css/app.css"), accept_encoding)
    assert sent_coding == coding
    decode = {"br": brotli.decompress, "gzip": gzip.decompress, None: bytes}[coding]
    assert decode(body) == CSS


def test_pictures_are_sent_as_they_are(client: TestClient, assets: Assets) -> None:
    assert stored(client, assets.url("icon.png"), "br, gzip") == (None, b"\x89PNG")


@pytest.mark.parametrize(
    ("path", "content_type"),
    [
        ("css/app.css", "text/css; charset=utf-8"),
        ("js/app.js", "text/javascript; charset=utf-8"),
        ("icon.png", "image/png"),
    ],
)
def test_types_and_caching(client: TestClient, assets: Assets, path: str, content_type: str) -> None:
    headers = client.get(assets.url(path)).headers
    assert headers["content-type"] == content_type
    assert headers["cache-control"] == "public, max-age=31536000, immutable"


def test_each_coding_has_its_own_etag_and_a_known_one_gets_304(client: TestClient, assets: Assets) -> None:
    url = assets.url("css/app.css")
    etags = {coding: client.head(url, headers={"accept-encoding": coding}).headers["etag"] for coding in ("br", "gzip")}
    assert len(set(etags.values())) == 2
    for known in (etags["br"], f'"other", W/{etags["br"]}', "*"):
        response = client.get(url, headers={"accept-encoding": "br", "if-none-match": known})
        assert (response.status_code, response.content) == (304, b"")
        assert response.headers["etag"] == etags["br"]
        assert response.headers["vary"] == "Accept-Encoding"
        assert "content-type" not in response.headers
    assert client.get(url, headers={"accept-encoding": "br", "if-none-match": etags["gzip"]}).status_code == 200


def test_head_tells_the_size_and_sends_nothing(client: TestClient, assets: Assets) -> None:
    response = client.head(assets.url("css/app.css"))
    assert (response.status_code, response.content, response.headers["content-length"]) == (200, b"", str(len(CSS)))


def test_range_is_ignored(client: TestClient, assets: Assets) -> None:
    response = client.get(assets.url("css/app.css"), headers={"range": "bytes=0-3"})
    assert (response.status_code, response.content) == (200, CSS)


@pytest.mark.parametrize(
    "name",
    [
        "",
        "current",
        "secret.txt",
        "css/app.css",
        "{digest}",
        "{digest}/css",
        "{digest}/css/app.css.br",
        "000000000000/css/app.css",
        "x/{digest}/css/app.css",
        "{digest}/../secret.txt",
        "{digest}/..%2fsecret.txt",
        "{digest}/css/app.css%00",
    ],
)
def test_nothing_else_is_there(client: TestClient, assets: Assets, name: str) -> None:
    response = client.get(f"{MOUNT_PATH}/{name.format(digest=assets.digest)}")
    assert (response.status_code, response.headers["cache-control"]) == (404, "no-store")


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS"])
def test_only_reading_is_allowed(client: TestClient, assets: Assets, method: str) -> None:
    response = client.request(method, assets.url("css/app.css"))
    assert (response.status_code, response.headers["allow"]) == (405, "GET, HEAD")


def test_websockets_are_turned_away(client: TestClient, assets: Assets) -> None:
    with (
        pytest.raises((WebSocketDisconnect, WebSocketDenialResponse)),
        client.websocket_connect(assets.url("js/app.js")),
    ):
        pass
