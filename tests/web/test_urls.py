"""Addresses: made in one place, safe for whatever a person typed."""

from urllib.parse import parse_qsl, urlsplit

import pytest
from starlette.requests import Request

from app.settings import Settings
from app.web import urls
from tests.factories import custom_card, scenario


def request(host: str | None = "roof:8000", scheme: str = "http") -> Request:
    headers = [] if host is None else [(b"host", host.encode())]
    return Request(
        {"type": "http", "method": "GET", "scheme": scheme, "path": "/", "query_string": b"", "headers": headers}
    )


def test_a_query_gives_its_items_back() -> None:
    items = [("a", "x y&z=1"), ("b", ""), ("a", 'é"<>+%'), ("c", '{"k":[1,2]}')]
    text = urls.query_string(items)
    assert parse_qsl(text, keep_blank_values=True) == items
    assert text.isascii()
    assert not set(text) & set(' "<>#\\')
    assert text.endswith("c={%22k%22:[1,2]}")  # the marks of JSON stay readable


def test_the_workbench_and_its_twin() -> None:
    assert urls.workbench() == "/"
    items = urls.scenario_items(scenario(), "gib")
    assert items[-1] == ("units", "gib")
    assert urls.scenario_items(scenario()) == items[:-1]
    page, twin = urlsplit(urls.workbench(items)), urlsplit(urls.evaluate_api(items))
    assert (page.path, twin.path) == ("/", "/api/v1/evaluate")
    assert parse_qsl(page.query, keep_blank_values=True) == items
    assert parse_qsl(twin.query, keep_blank_values=True) == items[:-1]
    assert urls.chart_data("roofline", "csv", items) == f"/export/roofline.csv?{page.query}"


def test_a_name_in_an_address_is_quoted() -> None:
    items = urls.scenario_items(scenario(hardware={"custom": custom_card(name='"><script>&x=1#é')}))
    address = urls.workbench(items)
    assert address.isascii()
    assert not set(address) & set('"<> #')
    assert dict(parse_qsl(urlsplit(address).query, keep_blank_values=True))["hw_name"] == '"><script>&x=1#é'


def test_saved_links() -> None:
    assert urls.saved("x") == "/c/x"
    assert urls.saved_api("x") == "/api/v1/configurations/x"


@pytest.mark.parametrize(
    ("public_url", "host", "scheme", "address"),
    [
        (None, "roof:8000", "http", "http://roof:8000/c/x"),
        (None, "roof", "https", "https://roof/c/x"),
        ("https://roof.example", "other", "http", "https://roof.example/c/x"),
        ("https://roof.example/", "other", "http", "https://roof.example/c/x"),
        ("https://roof.example/base/", "other", "http", "https://roof.example/base/c/x"),
    ],
)
def test_a_whole_address(public_url: str | None, host: str | None, scheme: str, address: str) -> None:
    settings = Settings(public_url=public_url)
    assert urls.absolute(request(host, scheme), settings, "/c/x") == address
