"""Fetches from a thread: a real server on this machine is read where the policy lets it, and nothing is left behind."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import psutil
import pytest

from app.outbound.client import Fetched, Outbound
from app.outbound.policy import (
    LAN,
    LOCAL,
    PUBLIC,
    AnyHost,
    BadAnswerError,
    BlockedError,
    OutboundError,
    Reach,
    TooLargeError,
    TooSlowError,
    UnreachableError,
    WrongTypeError,
)
from app.outbound.target import Target
from app.probes.lane import CALL_TIMEOUT_S
from app.probes.reading import Absence
from app.probes.servers.source import Fetch, FetchedText, FetchFailed, Path
from app.settings import Settings
from app.web.server_fetch import TOTAL_S, blocking_fetch, server_policy
from tests.web.metrics_server import METRICS, MetricsServer, metrics_server


@pytest.fixture(scope="module")
def shared_server() -> Iterator[MetricsServer]:
    with metrics_server() as served:
        yield served


@pytest.fixture
def served(shared_server: MetricsServer) -> MetricsServer:
    shared_server.asked.clear()
    return shared_server


def fetch_of(served: MetricsServer, path: str = "/", reach: Reach = LOCAL, authorization: str | None = None) -> Fetch:
    policy = server_policy(Settings(), AnyHost(), (range(1, 65_536),), reach)
    return blocking_fetch(Outbound(policy), Target("127.0.0.1", path, "http", served.port), authorization)


def absence(fetch: Fetch, path: Path = "/metrics") -> Absence:
    with pytest.raises(FetchFailed) as failed:
        fetch(path)
    return failed.value.absence


def test_a_server_of_this_machine_is_read_in_its_reach_and_in_no_other(served: MetricsServer) -> None:
    expected = FetchedText(200, "text/plain; version=0.0.4; charset=utf-8", METRICS)
    assert fetch_of(served)("/metrics") == fetch_of(served, reach=LAN)("/metrics") == expected
    assert len(served.asked) == 2
    assert absence(fetch_of(served, reach=PUBLIC)) is Absence.BLOCKED
    assert len(served.asked) == 2


def test_each_path_is_asked_for_as_it_is_with_the_query_of_the_server(served: MetricsServer) -> None:
    bare, routed, whole = (fetch_of(served, path) for path in ("/", "/?model=a", "/metrics?model=a"))
    for fetch in (bare, routed, whole):
        assert fetch("").body == fetch("/metrics").body == METRICS
    assert [path for path, _ in served.asked] == ["/metrics"] * 2 + ["/metrics?model=a"] * 4
    assert bare("/slots") == FetchedText(404, "text/plain; version=0.0.4; charset=utf-8", b"")
    whole("/slots")
    fetch_of(served, "/own?model=a")("")
    assert [path for path, _ in served.asked[6:]] == ["/slots", "/slots?model=a", "/own?model=a"]


def test_a_token_goes_along_and_only_where_it_is_given(served: MetricsServer) -> None:
    fetch_of(served, authorization="Bearer t0ken")("/metrics")
    fetch_of(served)("/metrics")
    assert served.asked == [("/metrics", "Bearer t0ken"), ("/metrics", None)]


def test_a_redirect_is_a_refusal(served: MetricsServer) -> None:
    assert absence(fetch_of(served, "/moved"), "") is Absence.BLOCKED
    assert [path for path, _ in served.asked] == ["/moved"]


def test_nobody_there() -> None:
    with metrics_server() as gone:
        fetch = fetch_of(gone)
    assert absence(fetch) is Absence.UNREACHABLE


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (BlockedError, Absence.BLOCKED),
        (UnreachableError, Absence.UNREACHABLE),
        (TooSlowError, Absence.TIMEOUT),
        (TooLargeError, Absence.TOO_LARGE),
        (BadAnswerError, Absence.NOT_METRICS),
        (WrongTypeError, Absence.NOT_METRICS),
        (OutboundError, Absence.UNKNOWN_ERROR),
    ],
)
def test_what_went_wrong_is_one_of_few_reasons(error: Callable[[str], OutboundError], reason: Absence) -> None:
    class Failing:
        async def get(self, url: str, *, authorization: str | None = None) -> Fetched:
            raise error("what a port scanner would like to know")

    fetch = blocking_fetch(Failing(), Target("gpu.lan", "/", "http", 8000))
    with pytest.raises(FetchFailed) as failed:
        fetch("/metrics")
    assert failed.value.absence is reason
    assert str(failed.value) == reason.message


def test_an_answer_of_the_fetch_comes_before_the_probe_is_given_up() -> None:
    policy = server_policy(Settings(), AnyHost(), (range(1, 65_536),), LAN)
    assert 2 * policy.connect_s < policy.total_s == TOTAL_S < CALL_TIMEOUT_S
    assert (policy.most_redirects, policy.most_body_bytes) == (0, Settings().server_max_bytes)
    assert "text/html" not in policy.content_types


def test_nothing_is_left_behind_beside_a_loop_of_another_kind(served: MetricsServer) -> None:
    """As the server runs: uvloop in the main thread, fetches in threads of their own."""
    uvloop = pytest.importorskip("uvloop")
    fetch = fetch_of(served)

    async def fetched(times: int) -> None:
        for _ in range(times):
            assert (await asyncio.to_thread(fetch, "/metrics")).status == 200

    async def comes_back() -> bool:
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
        await fetched(2)
        before = open_files(), threading.active_count()
        await fetched(15)
        async with asyncio.timeout(2):
            while (open_files(), threading.active_count()) > before:  # The server's side closes a little later.
                await asyncio.sleep(0.01)
        return True

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        assert runner.run(comes_back())


def open_files() -> int:
    return int(psutil.Process().num_fds())
