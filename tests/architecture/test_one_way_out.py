"""Only app/outbound speaks to other servers: no other module of the app so much as imports what it takes."""

import ast
from collections.abc import Iterator

import pytest

from app.settings import ROOT

CLIENT = ROOT / "app" / "outbound"
MODULES = sorted([*(ROOT / "app").rglob("*.py"), *(ROOT / "migrations").rglob("*.py")])
# What calls others, and what lets others call: the only door in is the server's own.
FORBIDDEN_MODULES = frozenset(
    {
        *("aiohttp", "httpcore", "httpcore2", "httpx", "httpx2", "huggingface_hub", "pycurl", "requests", "urllib3"),
        *("ftplib", "http.client", "imaplib", "poplib", "smtplib", "socket", "telnetlib", "urllib.request"),
        *("websocket", "websockets", "xmlrpc.client", "starlette.testclient", "fastapi.testclient"),
        *("http.server", "multiprocessing.connection", "multiprocessing.managers", "socketserver", "wsgiref"),
        *("xmlrpc.server", "prometheus_client.aiohttp", "prometheus_client.asgi", "prometheus_client.bridge"),
        *("prometheus_client.exposition", "prometheus_client.twisted"),
    }
)
FORBIDDEN_NAMES = frozenset(
    {
        *("create_connection", "create_datagram_endpoint", "create_unix_connection", "open_connection"),
        *("open_unix_connection", "sock_connect", "urlopen", "urlretrieve"),
        *("create_server", "create_unix_server", "start_server", "start_unix_server"),
        *("DatagramHandler", "HTTPHandler", "SMTPHandler", "SocketHandler"),
        *("delete_from_gateway", "instance_ip_grouping_key", "make_asgi_app", "make_wsgi_app", "push_to_gateway"),
        *("pushadd_to_gateway", "start_http_server", "start_wsgi_server"),
    }
)


def ways_out(source: str) -> Iterator[str]:
    """What in the source could open a connection or a port: imports, also by name in a string, and names of calls."""
    for node in ast.walk(ast.parse(source)):
        modules: list[str] = []
        names: list[str] = []
        if isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names = [alias.name for alias in node.names]
            modules = [node.module, *(f"{node.module}.{name}" for name in names)]
        elif isinstance(node, ast.Call):
            texts = [part.value for part in node.args if isinstance(part, ast.Constant) and isinstance(part.value, str)]
            called = ast.unparse(node.func)
            modules = texts if called.endswith(("import_module", "__import__")) else []
            names = texts if called.endswith("getattr") else []
        elif isinstance(node, ast.Attribute):
            names = [node.attr]
        yield from (module for module in modules if is_forbidden(module))
        yield from (name for name in names if name in FORBIDDEN_NAMES)


def is_forbidden(name: str) -> bool:
    return any(name == module or name.startswith(f"{module}.") for module in FORBIDDEN_MODULES)


def test_no_module_has_a_way_out_of_its_own() -> None:
    found = {
        str(module.relative_to(ROOT)): ways
        for module in MODULES
        if not module.is_relative_to(CLIENT) and (ways := list(ways_out(module.read_text(encoding="utf-8"))))
    }
    assert len(MODULES) > 100
    assert found == {}


def test_the_client_is_where_it_is_looked_for() -> None:
    found = {path.name: set(ways_out(path.read_text(encoding="utf-8"))) for path in CLIENT.glob("*.py")}
    assert "httpcore2" in found["client.py"]
    assert "socket" in found["connection.py"]


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
        "from asyncio import open_connection",
        "import asyncio\ngetattr(asyncio, 'open_connection')('a', 1)",
        "import asyncio\nasyncio.start_server(answer, 'a', 1)",
        "loop.create_server(factory, 'a', 1)",
        "from http import server",
        "from http.server import HTTPServer",
        "import socketserver",
        "from logging.handlers import HTTPHandler",
        "from prometheus_client import start_http_server",
        "from prometheus_client import push_to_gateway as push",
        "from prometheus_client.exposition import generate_latest",
        "import prometheus_client\nprometheus_client.start_http_server(1)",
        "import prometheus_client.exposition",
    ],
)
def test_a_way_out_is_found(source: str) -> None:
    assert list(ways_out(source))


@pytest.mark.parametrize(
    "source",
    [
        "from http import HTTPStatus",
        "from urllib.parse import quote",
        "from starlette.requests import Request",
        "'start_server'",
        "import psutil\npsutil.cpu_percent()",
        "from prometheus_client.parser import text_string_to_metric_families",
        "from prometheus_client.openmetrics import parser",
        "getattr(catalog, 'models')",
    ],
)
def test_what_is_none_is_not(source: str) -> None:
    assert not list(ways_out(source))
