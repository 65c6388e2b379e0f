"""Only app/outbound speaks to other servers: no other module of the app so much as imports what it takes."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.settings import ROOT

CLIENT = ROOT / "app" / "outbound"
MODULES = sorted([*(ROOT / "app").rglob("*.py"), *(ROOT / "migrations").rglob("*.py")])
FORBIDDEN_MODULES = frozenset(
    {
        *("aiohttp", "httpcore", "httpcore2", "httpx", "httpx2", "huggingface_hub", "pycurl", "requests", "urllib3"),
        *("ftplib", "http.client", "imaplib", "poplib", "smtplib", "socket", "telnetlib", "urllib.request"),
        *("websocket", "websockets", "xmlrpc.client", "starlette.testclient", "fastapi.testclient"),
    }
)
FORBIDDEN_CALLS = frozenset(
    {"create_connection", "create_datagram_endpoint", "open_connection", "sock_connect", "urlopen", "urlretrieve"}
)


def ways_out(source: str) -> Iterator[str]:
    """What in the source could open a connection: imports, also by name in a string, and asyncio's own calls."""
    for node in ast.walk(ast.parse(source)):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith(("import_module", "__import__")):
            names = [part.value for part in node.args if isinstance(part, ast.Constant) and isinstance(part.value, str)]
        yield from (name for name in names if is_forbidden(name))
        if isinstance(node, ast.Attribute) and node.attr in FORBIDDEN_CALLS:
            yield node.attr


def is_forbidden(name: str) -> bool:
    return any(name == module or name.startswith(f"{module}.") for module in FORBIDDEN_MODULES)


@pytest.mark.parametrize("module", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_module_has_no_way_out_of_its_own(module: Path) -> None:
    if not module.is_relative_to(CLIENT):
        assert list(ways_out(module.read_text(encoding="utf-8"))) == []


def test_the_client_is_where_it_is_looked_for() -> None:
    found = {path.name: set(ways_out(path.read_text(encoding="utf-8"))) for path in CLIENT.glob("*.py")}
    assert "httpcore2" in found["client.py"]
    assert "socket" in found["resolver.py"]


def test_the_library_is_a_dependency_of_the_product() -> None:
    for lock in ("runtime", "nvidia", "dev"):
        assert "\nhttpcore2==" in (ROOT / "requirements" / f"{lock}.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "source",
    [
        "import httpx2",
        "import httpx2 as anything",
        "from httpx2 import get",
        "from httpcore2._async import connection",
        "import os, urllib.request",
        "from urllib import request",
        "from urllib.request import urlopen",
        "from http import client",
        "import socket",
        "def late():\n    import requests",
        "import importlib\nimportlib.import_module('httpx')",
        "__import__('urllib.request')",
        "import asyncio\nasyncio.open_connection('a', 1)",
        "loop.create_connection(factory, 'a', 1)",
        "from starlette.testclient import TestClient",
    ],
)
def test_a_way_out_is_found(source: str) -> None:
    assert list(ways_out(source))


@pytest.mark.parametrize(
    "source",
    ["from http import HTTPStatus", "from urllib.parse import quote", "from starlette.requests import Request", "'a'"],
)
def test_what_is_none_is_not(source: str) -> None:
    assert not list(ways_out(source))
