"""Headers of every kind of answer, and who is turned away at the door."""

import pytest
from fastapi import FastAPI
from starlette.datastructures import Headers
from starlette.testclient import TestClient

from app.main import create_app
from app.settings import Settings
from app.web.assets import Assets
from app.web.middleware import DATA_POLICY, PAGE_POLICY, is_allowed_host, is_cross_site, policy
from app.web.urls import API
from tests.features.asgi import ask

EVERYWHERE = {
    "x-content-type-options": "nosniff",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
}
PAGE = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
    "font-src 'self'; manifest-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; "
    "report-uri /csp-report"
)
DATA = "default-src 'none'; frame-ancestors 'none'"


@pytest.fixture
def asset(settings: Settings) -> str:
    """The address of some built asset."""
    return Assets(settings.assets_dir).url("css/base.css")


def test_policies() -> None:
    assert policy(PAGE_POLICY) == PAGE
    assert policy(DATA_POLICY) == DATA
    assert "unsafe" not in PAGE


@pytest.mark.parametrize(
    ("path", "status", "expected"),
    [
        ("/", 200, PAGE),
        ("/?model=nope", 422, PAGE),
        ("/docs", 200, PAGE),
        ("/live", 200, PAGE),
        ("/learn", 200, PAGE),
        ("/learn?chat=x", 422, PAGE),
        ("/c/nope", 404, PAGE),
        ("/nope", 404, PAGE),
        (f"{API}/models", 200, DATA),
        (f"{API}/models/nope", 404, DATA),
        (f"{API}/evaluate", 422, DATA),
        (f"{API}/sweep", 405, DATA),
        (f"{API}/openapi.json", 200, DATA),
        ("/healthz", 200, DATA),
        ("/assets/nope.js", 404, DATA),
        ("/export/roofline.csv?model=llama-3.1-8b&hw=h100-sxm-80gb", 200, DATA),
    ],
)
def test_headers_of_each_kind_of_answer(reader: TestClient, path: str, status: int, expected: str) -> None:
    answer = reader.get(path)
    assert answer.status_code == status
    assert {name: answer.headers.get(name) for name in EVERYWHERE} == EVERYWHERE
    assert answer.headers.get_list("content-security-policy") == [expected]
    assert answer.headers["referrer-policy"] in ("same-origin", "no-referrer")
    assert "strict-transport-security" not in answer.headers
    assert "server" not in answer.headers
    assert "access-control-allow-origin" not in answer.headers


def test_headers_of_an_asset(reader: TestClient, asset: str) -> None:
    answer = reader.get(asset)
    assert answer.status_code == 200
    assert {name: answer.headers.get(name) for name in EVERYWHERE} == EVERYWHERE
    assert answer.headers["content-security-policy"] == DATA
    assert "immutable" in answer.headers["cache-control"]


@pytest.mark.parametrize("ranges", ["bytes=0-9", "bytes=" + ",".join("0-1" for _ in range(5_000)), "bytes=-1", "x=1"])
def test_a_range_of_an_asset_costs_nothing(reader: TestClient, asset: str, ranges: str) -> None:
    answer = reader.get(asset, headers={"Range": ranges})
    assert answer.status_code == 200
    assert answer.content == reader.get(asset).content


def test_headers_of_a_body_that_is_too_large(reader: TestClient) -> None:
    answer = reader.post(f"{API}/evaluate", content=b" " * 300_000, headers={"content-type": "application/json"})
    assert answer.status_code == 413
    assert {name: answer.headers.get(name) for name in EVERYWHERE} == EVERYWHERE
    assert answer.headers["content-security-policy"] == DATA


@pytest.mark.parametrize("path", ["/", f"{API}/models", "/nope", "/assets/nope"])
def test_hsts_only_where_the_operator_says_so(settings: Settings, path: str) -> None:
    secure = TestClient(create_app(settings.model_copy(update={"hsts": True})))
    assert secure.get(path).headers["strict-transport-security"] == "max-age=31536000; includeSubDomains"


@pytest.mark.parametrize(
    ("host", "allowed"),
    [
        ("localhost", True),
        ("LOCALHOST:8000", True),
        ("localhost.", True),
        ("roof", True),
        ("roof:8000", True),
        ("a.localhost", True),
        ("127.0.0.1", True),
        ("127.0.0.1:8000", True),
        ("10.1.2.3:80", True),
        ("[::1]", True),
        ("[::1]:8000", True),
        ("[fe80::1]:8000", True),
        ("", False),
        (":8000", False),
        (".", False),
        ("evil.example", False),
        ("evil.example:8000", False),
        ("evil.example.", False),
        ("localhost.evil.example", False),
        ("127.0.0.1.evil.example", False),
        ("127.0.0.1@evil.example", False),
        ("notlocalhost.com", False),
        ("[::1].evil.example", True),  # the part behind the bracket is no name that resolves
        ("[evil.example]", False),
        ("1.2.3", False),
        ("roof/evil", False),
        ("roof\\evil", False),
        ("roof evil", False),
        ("roof?evil", False),
        ("roof#evil", False),
    ],
)
def test_hosts(host: str, allowed: bool) -> None:
    assert is_allowed_host(host, ()) is allowed


@pytest.mark.parametrize("host", ["roof.example", "ROOF.example:443", "roof.example."])
def test_the_names_of_the_operator(host: str) -> None:
    assert is_allowed_host(host, ("roof.example",))
    assert not is_allowed_host(f"x{host}", ("roof.example",))
    assert not is_allowed_host(f"x.{host}", ("roof.example",))
    assert is_allowed_host("anything.example", ("*",))


def test_the_case_of_the_operators_names_does_not_matter() -> None:
    assert is_allowed_host("roof.example", ("Roof.Example",))


@pytest.mark.parametrize("path", ["/", f"{API}/models", "/healthz", "/assets/x", "/c/x"])
def test_a_foreign_host_is_misdirected(reader: TestClient, path: str) -> None:
    for host in ("evil.example", "127.0.0.1.evil.example:80"):
        answer = reader.get(path, headers={"Host": host})
        assert answer.status_code == 421
        assert "evil" not in answer.text
        assert answer.headers["x-content-type-options"] == "nosniff"
    assert reader.get(path, headers={"Host": "127.0.0.1:8000"}).status_code != 421


def test_a_request_without_a_host_is_misdirected(shared_app: FastAPI) -> None:
    assert ask(shared_app, "GET", "/healthz", headers=()).status == 421
    assert ask(shared_app, "GET", "/healthz", headers=(("host", "localhost"),)).status == 200


def test_allowed_hosts_are_those_of_the_settings(settings: Settings) -> None:
    client = TestClient(create_app(settings.model_copy(update={"allowed_hosts": ("roof.example",)})))
    assert client.get("/healthz", headers={"Host": "roof.example"}).status_code == 200
    assert client.get("/healthz", headers={"Host": "other.example"}).status_code == 421


@pytest.mark.parametrize(
    ("headers", "cross"),
    [
        ({}, False),
        ({"sec-fetch-site": "same-origin"}, False),
        ({"sec-fetch-site": "none"}, False),
        ({"sec-fetch-site": "same-site"}, True),
        ({"sec-fetch-site": "cross-site"}, True),
        ({"sec-fetch-site": ""}, True),
        ({"sec-fetch-site": "cross-site", "origin": "http://localhost:8000"}, True),
        ({"sec-fetch-site": "same-origin", "origin": "http://evil.example"}, False),
        ({"origin": "http://localhost:8000"}, False),
        ({"origin": "https://LOCALHOST:8000"}, False),
        ({"origin": "http://localhost"}, True),
        ({"origin": "http://localhost:8001"}, True),
        ({"origin": "http://evil.example"}, True),
        ({"origin": "http://evil.example/localhost:8000"}, True),
        ({"origin": "null"}, True),
        ({"origin": ""}, True),
    ],
)
def test_cross_site_writes(reader: TestClient, headers: dict[str, str], cross: bool) -> None:
    host = {"host": "localhost:8000"}
    assert is_cross_site(Headers(headers | host)) is cross
    for path in ("/save", f"{API}/evaluate", f"{API}/configurations", "/csp-report"):
        answer = reader.post(path, headers=headers | host)
        assert (answer.status_code == 403) is cross, path
    for method in ("PUT", "DELETE", "PATCH"):
        answer = reader.request(method, f"{API}/configurations/x", headers=headers | host)
        assert (answer.status_code == 403) is cross
    assert reader.get("/", headers=headers | host).status_code == 200


def test_a_method_is_not_overridden_by_a_header(reader: TestClient) -> None:
    headers = {"X-HTTP-Method-Override": "DELETE", "X-Edit-Token": "0" * 26}
    assert reader.post(f"{API}/configurations/x", headers=headers).status_code == 405


@pytest.mark.parametrize("path", ["//evil.example/", "//evil.example", "/%2f%2fevil.example/", "/\\evil.example/"])
def test_no_redirect_leads_elsewhere(shared_app: FastAPI, path: str) -> None:
    answer = ask(shared_app, "GET", path)
    assert answer.status == 404
    assert "location" not in answer.headers
