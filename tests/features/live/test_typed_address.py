"""What a person may name, by the operator's mode: the words of each refusal. The outbound matrix has the rest."""

from typing import Any

import pytest

from app.features.live.typed_servers import FIELD, LONGEST_ADDRESS, SERVING_PORTS, typed_policy, typed_target
from app.settings import Settings
from app.web.problem import ProblemError


def told(mode: Any, address: str) -> str:
    with pytest.raises(ProblemError) as refused:
        typed_target(Settings(typed_servers=mode), address)
    assert refused.value.status == 422
    (error,) = refused.value.errors
    assert error.path == FIELD
    return error.message


def test_where_nobody_may_name_a_server_the_remedy_is_told() -> None:
    assert typed_policy(Settings()) is None
    with pytest.raises(ProblemError) as refused:
        typed_target(Settings(), "http://localhost:8000")
    assert refused.value.status == 403
    assert "TOKENROOF_TYPED_SERVERS" in refused.value.detail


@pytest.mark.parametrize(
    ("mode", "address", "said"),
    [
        ("local", "", "Name a server"),
        ("local", " \t", "Name a server"),
        ("local", "a" * (LONGEST_ADDRESS + 1), "At most 300 characters"),
        ("local", "http://gpu.lan:8000", "the host is not one that is allowed"),
        ("local", "http://10.0.0.1:8000", "of its own machine"),
        ("local", "http://localhost:22", "the port is not one that is allowed"),
        ("local", "http://localhost:8000/v1/models", "let it end in /metrics"),
        ("local", "http://localhost:8000/metrics?token=x", "let it end in /metrics"),
        ("lan", "http://8.8.8.8:8000", "the IP address is not one that is allowed"),
        ("lan", "http://10.0.0.1:9100", "at the ports that such servers use"),
        ("public", "http://127.0.0.1:8000", "on the public internet"),
        ("public", "localhost:8000", "that is this server's own machine"),
        ("public", "ftp://gpu.example", "it does not begin with http:// or https://"),
    ],
)
def test_a_refusal_says_why_and_does_not_repeat_the_address(mode: str, address: str, said: str) -> None:
    message = told(mode, address)
    assert said in message
    assert not address.strip() or address.strip() not in message


@pytest.mark.parametrize(
    ("address", "url"),
    [
        ("localhost:8000", "http://localhost:8000/"),
        (" HTTP://LocalHost:80/ ", "http://localhost/"),
        ("127.0.0.1", "http://127.0.0.1/"),
        ("https://[::1]/metrics/", "https://[::1]/metrics"),
        ("localhost:8000/metrics#top", "http://localhost:8000/metrics"),
        ("localhost:8000/?", "http://localhost:8000/"),
        ("localhost:8080?model=org/a:Q4", "http://localhost:8080/?model=org/a:Q4"),
    ],
)
def test_an_address_has_one_form(address: str, url: str) -> None:
    settings = Settings(typed_servers="local")
    target = typed_target(settings, address)
    assert target.url == url
    assert typed_target(settings, target.url) == target


def test_where_a_network_has_other_doors_nobody_knocks() -> None:
    listening = {22, 25, 2_375, 5_060, 5_432, 6_379, 9_100, 9_200, 11_211, 27_017}
    serving = {80, 443, 3_000, 8_000, 8_001, 8_002, 8_080, 8_081, 9_090, 30_000}
    assert {port for port in listening | serving if any(port in ports for ports in SERVING_PORTS)} == serving
