"""Fetches from a thread: a real server on this machine is read where the policy lets it, and nothing is left behind.

The servers of the settings: read as written, refused by name at the start, and a token never told to anybody.
"""

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import psutil
import pytest
from pydantic import SecretStr

from app.features.live.servers import (
    LONGEST_NAME,
    MOST_SERVERS,
    TOTAL_S,
    ServerTargetError,
    blocking_fetch,
    server_policy,
    server_probes,
    server_targets,
)
from app.machine.probes.lane import CALL_TIMEOUT_S
from app.machine.probes.reading import Absence
from app.machine.probes.servers.source import Fetch, FetchedText, FetchFailed, Path
from app.outbound.client import Fetched, Outbound
from app.outbound.policy import (
    LAN,
    LOCAL,
    PUBLIC,
    AnyHost,
    BadAnswerError,
    BlockedError,
    OutboundError,
    Policy,
    Reach,
    TooLargeError,
    TooSlowError,
    UnreachableError,
    WrongTypeError,
)
from app.outbound.target import Target
from app.settings import Settings
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


SECRET = "s3cr3t=="


def refusal(servers: tuple[str, ...] = (), tokens: tuple[str, ...] = ()) -> str:
    with pytest.raises(ServerTargetError) as refused:
        server_targets(Settings(servers=servers, server_tokens=tuple(SecretStr(token) for token in tokens)))
    assert "s3cr3t" not in str(refused.value)
    assert refused.value.__suppress_context__ or refused.value.__cause__ is None
    return str(refused.value)


def test_none_are_configured_at_first() -> None:
    assert server_targets(Settings()) == ()
    assert server_probes(Settings()) == []


def test_servers_come_in_their_order_with_their_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(
        "TOKENROOF_SERVERS",
        "Big one = http://10.0.0.5:8000, pool=https://gpu.example/a/metrics?model=x,lo=http://[::1]:30000",
    )
    monkeypatch.setenv("TOKENROOF_SERVER_TOKENS", f"pool={SECRET}")
    big, pool, lo = server_targets(Settings())
    assert (big.name, big.target, big.authorization) == ("Big one", Target("10.0.0.5", "/", "http", 8000), None)
    assert (pool.name, pool.target) == ("pool", Target("gpu.example", "/a/metrics?model=x", "https", 443))
    assert pool.authorization == f"Bearer {SECRET}"
    assert (lo.name, lo.target) == ("lo", Target("::1", "/", "http", 30_000))
    assert SECRET not in repr((big, pool, lo))


def test_each_may_be_fetched_from_at_its_own_host_and_port_only() -> None:
    (server,) = server_targets(Settings(servers=("a=http://gpu.lan:22",)))
    policy = server.policy(Settings())
    assert [host for host in ("gpu.lan", "gpu", "localhost", "10.0.0.5") if host in policy.hosts] == ["gpu.lan"]
    assert policy.schemes == {"http"}
    assert [port for port in (21, 22, 23, 80, 443, 8000) if policy.allows_port(port)] == [22]


@pytest.mark.parametrize(
    ("servers", "told"),
    [
        (("http://gpu.lan:8000",), "entry 1"),
        (("a=http://gpu.lan", "http://gpu.lan/?x=1"), "entry 2"),
        (("=http://gpu.lan:8000",), "entry 1"),
        (("a=",), "entry 1"),
        (("\u202e=http://gpu.lan",), "entry 1"),
        (("a" * (LONGEST_NAME + 1) + "=http://gpu.lan",), "longer than 40"),
        (("a=http://gpu.lan", "a=http://gpu.lan:8000"), "'a' is there twice"),
        (("b=gpu.lan:8000",), "'b': it does not begin with http:// or https://"),
        (("b=ftp://gpu.lan",), "'b': it does not begin with http:// or https://"),
        (("b=http://169.254.169.254",), "'b': the IP address is not one that is allowed"),
        (("b=http://0.0.0.0:8000",), "'b': the IP address is not one that is allowed"),
        (("b=http://127.1:8000",), "'b': the IP address is not written plainly"),
        (("b=http://gpu.lan:99999",), "'b': the port is not one that is allowed"),
        ((f"b=http://user:{SECRET}@gpu.lan:8000",), "'b': the host and its port are not written plainly"),
        ((f"b=http://[{SECRET}]/",), "'b': the"),
        (tuple(f"s{number}=http://gpu.lan" for number in range(MOST_SERVERS + 1)), "33 entries; at most 32"),
    ],
    ids=lambda value: None if isinstance(value, tuple) else value,
)
def test_a_wrong_entry_is_told_by_name(servers: tuple[str, ...], told: str) -> None:
    message = refusal(servers)
    assert message.startswith("TOKENROOF_SERVERS")
    assert told in message


@pytest.mark.parametrize(
    ("tokens", "told"),
    [
        (("s3cr3t",), "entry 1"),
        ((f"={SECRET}",), "entry 1"),
        (("a=",), "entry 1"),
        ((f"a={SECRET} x",), "entry 1"),
        ((f"a={SECRET}\r\nHost: x",), "entry 1"),
        ((f"a={SECRET}é",), "entry 1"),
        ((f"a={SECRET}", "a=other"), "entry 2"),
        ((SECRET,), "an entry is for a server"),
        ((f"b={SECRET}",), "an entry is for a server"),
    ],
    ids=range(9),
)
def test_a_wrong_token_is_told_without_it(tokens: tuple[str, ...], told: str) -> None:
    message = refusal(("a=http://gpu.lan:8000",), tokens)
    assert message.startswith("TOKENROOF_SERVER_TOKENS")
    assert told in message


def test_a_probe_for_each_asks_its_own_server_with_its_own_token() -> None:
    asked: list[tuple[str, str | None]] = []

    class Recording:
        def __init__(self, policy: Policy) -> None:
            self.policy = policy

        async def get(self, url: str, *, authorization: str | None = None) -> Fetched:
            asked.append((url, authorization))
            return Fetched(200, {"content-type": "text/plain"}, METRICS)

    settings = Settings(
        servers=("one=http://10.0.0.5:8000", "two=http://10.0.0.6:8000"), server_tokens=(SecretStr(f"two={SECRET}"),)
    )
    probes = server_probes(settings, Recording)
    snapshots = [probe.snapshot() for probe in probes]
    assert [(each.source, each.label, each.kind) for each in snapshots] == [
        ("server-1", "one", "server"),
        ("server-2", "two", "server"),
    ]
    assert set(asked) == {
        ("http://10.0.0.5:8000/metrics", None),
        ("http://10.0.0.6:8000/metrics", f"Bearer {SECRET}"),
    }
    assert not any(hidden in str(each.document()) for each in snapshots for hidden in ("10.0.0", SECRET))
