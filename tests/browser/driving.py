"""How the tests drive a page, and what they read from it."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Protocol
from urllib.parse import urlsplit

import httpx2
from playwright.sync_api import Locator, Page, Request, Response

from app.calc.quantity import quantity, significant
from tests.browser.drawing import drawn

SIX = ("memory", "room", "ttft", "tpot", "latency", "throughput")
CHARTS = ("gap", "roofline", "batch", "memory", "frontier", "time", "context")
TRACES = """(id) => document.getElementById(`plot-${id}`).data.map(
  ({name, x, y, yaxis}) => ({name, axis: yaxis ?? "y", x: Array.from(x ?? []), y: Array.from(y ?? [])}))"""
Document = Mapping[str, Any]


class Opener(Protocol):
    """Opens a page of the server in a context of its own."""

    def __call__(self, path: str = "/", *, drawing: bool = True, **options: Any) -> Page:
        """The page at `path`; `options` are those of a context. Without `drawing` no chart costs time."""
        ...


def field(page: Page, name: str) -> Locator:
    """The input of a name."""
    return page.locator(f"#f-{name}")


def is_partial(request: Request) -> bool:
    return request.headers.get("hx-request-type") == "partial"


def _answers_part(response: Response) -> bool:
    return is_partial(response.request)


@contextmanager
def following(page: Page, status: int = 200) -> Iterator[None]:
    """Wait for the answer to what is done inside, and for the page to take it in."""
    with page.expect_response(_answers_part) as caught:
        yield
    assert caught.value.status == status
    rest(page)


def rest(page: Page) -> None:
    """Wait until the workbench awaits no answer and its charts are drawn."""
    page.locator("#results[aria-busy=false]").wait_for(state="attached")
    drawn(page, CHARTS)


def change(page: Page, name: str, value: str, status: int = 200) -> None:
    """Type into a field, and wait for the answer."""
    with following(page, status):
        field(page, name).fill(value)


def numbers(page: Page) -> dict[str, str]:
    """The text of each of the six numbers, their workings apart."""
    texts = {id_: page.locator(f"#metric-{id_}").text_content() or "" for id_ in SIX}
    return {id_: re.sub(r"\s+", " ", text.partition("Working")[0]).strip() for id_, text in texts.items()}


def traces(page: Page, chart: str) -> list[dict[str, Any]]:
    """What a chart draws now, as Plotly has it."""
    found: list[dict[str, Any]] = page.evaluate(TRACES, chart)
    return found


def answer_of(server: str, address: str) -> Document:
    """What the API says to the query of an address."""
    # Without `verify=False` each answer waits for certificates to be read that no plain address needs.
    answer = httpx2.get(f"{server}/api/v1/evaluate?{urlsplit(address).query}", verify=False)
    assert answer.status_code == 200, answer.text
    document: Document = answer.json()
    return document


def assert_shows(page: Page, document: Document, *, binary: bool = False) -> None:
    """The six numbers and the charts are those of an evaluation."""
    memory, served, decode = document["memory"], document["serving"], document["decode"]
    shown = numbers(page)
    assert quantity(memory["needed_bytes"], "B", 3, binary=binary) in shown["memory"]
    assert f"{memory['max_concurrency']:,} sequence" in shown["room"]
    for id_, key in (("ttft", "ttft_s"), ("tpot", "tpot_s"), ("latency", "total_latency_s")):
        assert quantity(served[key]["ceiling"], "s", 3) in shown[id_]
    assert f"{significant(served['output_tokens_per_s']['ceiling'], 3)} tokens/s" in shown["throughput"]
    running = decode["concurrency"]
    points = {trace["name"]: trace for trace in traces(page, "roofline")}
    assert points[f"Decode at {running:,}"]["x"] == [decode["intensity_flops_per_byte"]]
    assert points["Prefill"]["x"] == [document["prefill"]["intensity_flops_per_byte"]]
    here = [trace for trace in traces(page, "batch") if trace["name"] == "This scenario"]
    assert all(trace["x"] == [running] for trace in here)
    scale = 2.0**30 if binary else 1e9
    bars = {trace["name"]: trace["x"] for trace in traces(page, "memory")}
    assert abs(-bars["Weights"][0] * scale / memory["per_gpu"]["weights_bytes"] - 1) < 1e-9
    workload = document["scenario"]["workload"]
    total = workload["prompt_tokens"] + workload["output_tokens"]
    assert [t["x"] for t in traces(page, "context") if t["name"] == "This scenario"] == [[total]]
    assert [t["y"] for t in traces(page, "frontier") if t["name"] == "This scenario"] == [[total]]


def assert_in_step(page: Page, server: str) -> None:
    """Address, numbers and charts say the same."""
    assert_shows(page, answer_of(server, page.url), binary="units=gib" in page.url)
