"""The servers of the settings: read as written, refused by name at the start, and a token never told to anybody."""

import pytest
from pydantic import SecretStr

from app.outbound.client import Fetched
from app.outbound.policy import Policy
from app.outbound.target import Target
from app.settings import Settings
from app.web.server_targets import LONGEST_NAME, MOST_SERVERS, ServerTargetError, server_probes, server_targets
from tests.web.metrics_server import METRICS

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
