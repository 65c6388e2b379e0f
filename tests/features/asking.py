"""How the tests ask: addresses made of a base and changes, as a browser asks and as htmx does."""

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from httpx2 import Response
from starlette.testclient import TestClient

from tests.features.dom import Node, parse

PARTIAL = {"HX-Request": "true", "HX-Request-Type": "partial", "HX-Source": "form#scenario", "HX-Target": "div#results"}
FULL = {**PARTIAL, "HX-Request-Type": "full"}
BASE: Mapping[str, str] = {"model": "llama-3.1-8b", "hw": "h100-sxm-80gb"}
OWN_CARD: Mapping[str, str] = {
    "hw": "custom",
    "hw_name": "My card",
    "hw_mem": "80",
    "hw_bw": "3350",
    "hw_bf16": "989",
    "hw_tdp": "700",
    "hw_usd": "3",
}
SCENARIOS: Mapping[str, Mapping[str, str]] = {
    "the default": {},
    "saturated": {"batch": "", "prompt": "2000", "kv": "fp8"},
    "does not fit": {"model": "llama-3.1-70b", "hw": "rtx-4090", "w": "fp16"},
    "one user, quantized": {"model": "qwen3-14b", "hw": "rtx-4090", "w": "int4", "batch": "1"},
    "windows": {"model": "gemma-3-27b", "hw": "h200-sxm", "prompt": "60000", "batch": "8"},
    "own card": OWN_CARD,
}
_PREFIXES = {"n": 1e-9, "µ": 1e-6, "m": 1e-3, "": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
_BINARY = {"Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40}
_QUANTITY = re.compile(r"([−-]?[\d,.]+(?:e[+-]?\d+)?)(?: (Ki|Mi|Gi|Ti|[nµmkMGTP]?)(B/s|B|FLOP/s|FLOP/B|FLOP|s|W)?)?\b")


def address(changes: Mapping[str, str] | None = None, /, **more: str) -> str:
    """The workbench with some inputs changed."""
    return f"/?{urlencode({**BASE, **(changes or {}), **more})}"


def page(client: TestClient, path: str, status: int = 200) -> Node:
    """A page as a tree."""
    answer = client.get(path)
    assert answer.status_code == status, answer.text[:500]
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    return parse(answer.text)


def partial(client: TestClient, path: str, **headers: str) -> Response:
    """The fragment that htmx asks for."""
    return client.get(path, headers={**PARTIAL, **{k.replace("_", "-"): v for k, v in headers.items()}})


def items_of(path: str) -> dict[str, str]:
    """The items of an address."""
    return dict(parse_qsl(urlsplit(path).query, keep_blank_values=True))


def twin_of(tree: Node) -> str:
    """Where a page says that its JSON twin is."""
    return tree.one("link", rel="alternate")["href"]


def json_of(client: TestClient, path: str) -> Any:
    """A JSON answer."""
    answer = client.get(path)
    assert answer.status_code == 200, answer.text[:500]
    return answer.json()


def results_of(text: str) -> str:
    """The results of a fragment, without the messages that are swapped elsewhere."""
    return text[: re.search(r"<[^>]*hx-swap-oob", text).start()]  # type: ignore[union-attr]


def read_quantity(text: str) -> float:
    """The number that a written quantity stands for, in its base unit."""
    found = _QUANTITY.match(text.strip().removeprefix("$"))
    assert found, text
    number, prefix, _ = found.groups(default="")
    return float(number.replace(",", "")) * {**_PREFIXES, **_BINARY}[prefix]
