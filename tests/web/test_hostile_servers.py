"""Servers that answer with anything but metrics, over real sockets: each refused by category or read within limits."""

import gzip
import resource
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from starlette.testclient import TestClient

from app.main import create_app
from app.settings import Settings
from app.web.urls import API

GOOD = b"# TYPE vllm:num_requests_running gauge\nvllm:num_requests_running 3\n"
NAN = GOOD + b"# TYPE vllm:num_requests_waiting gauge\nvllm:num_requests_waiting NaN\n"
SERIES = b"# TYPE vllm:num_requests_running gauge\n" + b"".join(
    b'vllm:num_requests_running{engine="%d"} 1\n' % at for at in range(50_000)
)
BODIES: dict[str, tuple[str, bytes]] = {
    "html": ("text/html", b"<html><body>Welcome</body></html>"),
    "page": ("text/plain", b"<!doctype html><title>Welcome</title>" * 50),
    "huge": ("text/plain", b"# padding\n" * 1_050_000),
    "nan": ("text/plain; version=0.0.4", NAN),
    "series": ("text/plain; version=0.0.4", SERIES[:2_000_000]),
    "cut": ("text/plain; version=0.0.4", GOOD + b"vllm:num_requests_wai"),
    "json": ("application/json", b"[" * 100_000),
    "binary": ("text/plain", bytes(range(256)) * 100),
    "foreign": ("text/plain", b"# TYPE acme_requests gauge\nacme_requests 3\n"),
}
EXPECTED = {
    "html": "not_metrics",
    "page": "not_metrics",
    "huge": "too_large",
    "nan": None,
    "cut": None,
    "json": "not_metrics",
    "binary": "not_metrics",
    "foreign": "unrecognised",
    "bomb": "too_large",
    "drip": "timeout",
    "away": "blocked",
    "locked": "refused",
    "broken": "failing",
}


class Hostile(BaseHTTPRequestHandler):
    """Answers by the first part of the path."""

    def do_GET(self) -> None:
        name = self.path.split("/")[1]
        if name in BODIES:
            self._answer(*BODIES[name])
        elif name == "bomb":
            self._answer("text/plain", gzip.compress(b"# padding\n" * 5_000_000, 9), encoding="gzip")
        elif name == "drip":
            self._head("text/plain", 1_000)
            for _ in range(40):
                self.wfile.write(b"#")
                self.wfile.flush()
                time.sleep(0.1)
        elif name == "away":
            self.send_response(302)
            self.send_header("Location", "http://169.254.169.254/latest/meta-data/")
            self.end_headers()
        else:
            self.send_response(401 if name == "locked" else 500)
            self.end_headers()

    def _head(self, kind: str, length: int, encoding: str = "") -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(length))
        if encoding:
            self.send_header("Content-Encoding", encoding)
        self.end_headers()

    def _answer(self, kind: str, body: bytes, encoding: str = "") -> None:
        self._head(kind, len(body), encoding)
        self.wfile.write(body)

    def handle(self) -> None:
        try:
            super().handle()
        except OSError:  # the other side has hung up
            self.close_connection = True

    def log_message(self, *args: object) -> None:
        """Nothing."""


class Crowded(ThreadingHTTPServer):
    """Lets all of them in at once."""

    daemon_threads = True
    request_queue_size = 64


@pytest.fixture(scope="module")
def reader_of_all(tmp_path_factory: pytest.TempPathFactory, assets_dir: Path) -> Iterator[TestClient]:
    """A client of a server that was told to read all of them."""
    with Crowded(("127.0.0.1", 0), Hostile) as hostile:
        Thread(target=hostile.serve_forever, daemon=True).start()
        port = hostile.server_address[1]
        targets = tuple(f"{name}=http://127.0.0.1:{port}/{name}/metrics" for name in [*EXPECTED, "series"])
        settings = Settings(data_dir=tmp_path_factory.mktemp("hostile"), assets_dir=assets_dir, servers=targets)
        with TestClient(create_app(settings), raise_server_exceptions=False) as client:
            yield client
        hostile.shutdown()


def test_each_is_refused_by_its_category_or_read_and_the_page_stays_up(reader_of_all: TestClient) -> None:
    before_kib, started = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.monotonic()
    answer = reader_of_all.get(f"{API}/probes")
    took_s = time.monotonic() - started
    grown_mib = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kib) / 1024
    assert answer.status_code == 200
    found = {probe["label"]: probe for probe in answer.json()["probes"] if probe["kind"] == "server"}
    categories = {name: (found[name]["absence"] or {"code": None})["code"] for name in EXPECTED}
    assert categories == EXPECTED
    assert took_s < 10
    assert grown_mib < 200
    page = reader_of_all.get("/live")
    assert page.status_code == 200
    for leaked in ("Welcome", "169.254", "padding", "/drip/", "/html/metrics"):
        assert leaked not in page.text, leaked


def test_what_can_be_read_is(reader_of_all: TestClient) -> None:
    """NaN is no value, a cut line none either; of fifty thousand series so many are read, or it is too large."""
    probes = {probe["label"]: probe for probe in reader_of_all.get(f"{API}/probes").json()["probes"]}
    assert probes["nan"]["server"]["running"]["value"] == 3
    assert probes["nan"]["server"]["waiting"]["value"] is None
    assert probes["cut"]["server"]["running"]["value"] == 3
    series = probes["series"]
    assert series["state"] == "ok" or series["absence"]["code"] == "too_large"


def test_nobody_has_to_wait_for_a_server_that_drips(reader_of_all: TestClient) -> None:
    """Other pages answer while it is read."""
    started = time.monotonic()
    assert reader_of_all.get("/readyz").status_code == 200
    assert time.monotonic() - started < 2
