"""Finding a server's metrics, keeping to them, and saying calmly why there are none."""

import json
import threading

import pytest

from app.machine.probes.reading import Absence
from app.machine.probes.servers.exposition import MOST_BODY_BYTES
from app.machine.probes.servers.probe import INTERVAL_S
from app.machine.probes.servers.source import PATIENCE_S, FetchedText
from app.machine.probes.snapshot import Probe, ProbeSnapshot
from tests.machine.probes.servers.recorded import NOW, FakeClock, FakeServer, probe_of, seen, two_scrapes

VLLM, VLLM_LATER = two_scrapes("vllm-0.33.prom")
SGLANG, _ = two_scrapes("sglang-0.5.prom")
HTML = FetchedText(200, "text/html", b"<html><body>Welcome</body></html>\n")
SEARCH = ["", "/metrics", "/prometheus/metrics", "/slots"]


def absent(snapshot: ProbeSnapshot) -> Absence:
    assert (snapshot.state, snapshot.server) == ("absent", None)
    assert snapshot.absence is not None
    json.dumps(snapshot.document(), allow_nan=False)
    return snapshot.absence


def test_it_is_a_probe_of_a_server() -> None:
    probe: Probe = probe_of(FakeServer({"": VLLM}), FakeClock())
    snapshot = probe.snapshot()
    assert (probe.name, probe.label, probe.kind) == ("server-1", "The server", "server")
    assert (snapshot.source, snapshot.label, snapshot.kind, snapshot.taken_at) == (
        "server-1",
        "The server",
        "server",
        NOW,
    )
    assert snapshot.driver_version.absence is Absence.NOT_REPORTED
    assert seen(snapshot).kind == "vllm"


def test_within_the_interval_the_server_is_not_asked_again() -> None:
    clock, server = FakeClock(), FakeServer({"": VLLM})
    probe = probe_of(server, clock)
    first = probe.snapshot()
    clock.seconds += INTERVAL_S - 0.1
    assert probe.snapshot() is first
    clock.seconds += 0.1
    assert probe.snapshot() is not first
    assert server.asked == ["", ""]


def test_a_failure_is_cached_like_an_answer() -> None:
    clock, server = FakeClock(), FakeServer({"": Absence.UNREACHABLE})
    probe = probe_of(server, clock)
    assert absent(probe.snapshot()) is Absence.UNREACHABLE
    assert absent(probe.snapshot()) is Absence.UNREACHABLE
    assert server.asked == [""]


@pytest.mark.parametrize(
    "absence",
    [Absence.UNREACHABLE, Absence.BLOCKED, Absence.TIMEOUT, Absence.UNKNOWN_ERROR],
    ids=lambda each: each.value,
)
def test_after_some_failures_no_other_path_is_tried(absence: Absence) -> None:
    server = FakeServer({"": absence, "/metrics": VLLM})
    assert absent(probe_of(server, FakeClock()).snapshot()) is absence
    assert server.asked == [""]


@pytest.mark.parametrize("status", [401, 403])
def test_a_server_that_wants_a_token_refuses(status: int) -> None:
    server = FakeServer({"": FetchedText(status, "text/plain", VLLM), "/metrics": VLLM})
    assert absent(probe_of(server, FakeClock()).snapshot()) is Absence.REFUSED
    assert server.asked == [""]


@pytest.mark.parametrize(
    ("status", "absence"),
    [(status, Absence.NOT_METRICS) for status in (204, 301, 302, 400, 404)]
    + [(status, Absence.FAILING) for status in (500, 501, 503, 999)],
)
def test_any_other_status_shows_no_metrics(status: int, absence: Absence) -> None:
    server = FakeServer(dict.fromkeys(SEARCH, FetchedText(status, "text/plain", VLLM)))
    assert absent(probe_of(server, FakeClock()).snapshot()) is absence
    assert server.asked == SEARCH


def test_an_error_at_another_path_says_nothing_of_the_configured_one() -> None:
    failing = FetchedText(500, "text/plain", b"")
    absent_there = FetchedText(404, "text/plain", b"")
    server = FakeServer({path: failing if path else absent_there for path in SEARCH})
    assert absent(probe_of(server, FakeClock()).snapshot()) is Absence.NOT_METRICS


@pytest.mark.parametrize(
    ("body", "absence"),
    [
        (b"", Absence.NOT_METRICS),
        (HTML.body, Absence.NOT_METRICS),
        (b"[" * 100_000, Absence.NOT_METRICS),
        (b'{"a":' * 50_000 + b"1" + b"}" * 50_000, Absence.NOT_METRICS),
        (b"[1, 2, 3]", Absence.NOT_METRICS),
        (b"[%s]" % (b"9" * 5000), Absence.NOT_METRICS),
        (b"[\xff]", Absence.NOT_METRICS),
        (b"\x00\x01\x02", Absence.NOT_METRICS),
        (b"x" * (MOST_BODY_BYTES + 1), Absence.TOO_LARGE),
        (b"[" + b" " * MOST_BODY_BYTES, Absence.TOO_LARGE),
        (b"".join(b'tgi_queue_size{a="%d"} 1\n' % number for number in range(20_001)), Absence.TOO_LARGE),
        (b"other_metric 5\n", Absence.UNRECOGNISED),
    ],
    ids=[
        "empty", "html", "deep list", "deep object", "numbers", "long number", "not utf-8", "binary", "large text",
        "large list", "many series", "unknown",
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_refused_by_name(body: bytes, absence: Absence) -> None:
    server = FakeServer({"": body})
    assert absent(probe_of(server, FakeClock()).snapshot()) is absence
    assert len(server.asked) <= len(SEARCH)


def test_an_unknown_server_is_told_by_its_families() -> None:
    body = b'# TYPE go_goroutines gauge\ngo_goroutines 7\nmy:requests_total{path="/secret"} 5\n'
    snapshot = probe_of(FakeServer({"": body}), FakeClock()).snapshot()
    assert absent(snapshot) is Absence.UNRECOGNISED
    assert snapshot.families == ("go_goroutines", "my:requests_total")


def test_the_metrics_are_found_beside_a_page() -> None:
    clock, server = FakeClock(), FakeServer({"": HTML, "/metrics": VLLM})
    probe = probe_of(server, clock)
    seen(probe.snapshot())
    clock.seconds += INTERVAL_S
    seen(probe.snapshot())
    assert server.asked == ["", "/metrics", "/metrics"]


def test_a_token_wanted_on_the_second_path_is_told() -> None:
    server = FakeServer({"": HTML, "/metrics": FetchedText(401, "", b"")})
    assert absent(probe_of(server, FakeClock()).snapshot()) is Absence.REFUSED


def test_what_was_said_first_is_told_when_later_paths_fail() -> None:
    server = FakeServer({"": b"other_metric 5\n", "/metrics": Absence.TIMEOUT})
    snapshot = probe_of(server, FakeClock()).snapshot()
    assert (absent(snapshot), snapshot.families) == (Absence.UNRECOGNISED, ("other_metric",))


def test_a_slow_server_is_not_asked_for_more_than_one_path() -> None:
    clock, server = FakeClock(), FakeServer({"": HTML, "/metrics": VLLM})
    fetch = server.fetch

    def slow(path: str) -> FetchedText:
        clock.seconds += PATIENCE_S + 0.1
        return fetch(path)  # type: ignore[arg-type]

    server.fetch = slow  # type: ignore[method-assign]
    assert absent(probe_of(server, clock).snapshot()) is Absence.NOT_METRICS
    assert server.asked == [""]


def test_rates_come_with_the_second_answer() -> None:
    clock, server = FakeClock(), FakeServer({"": VLLM})
    probe = probe_of(server, clock)
    assert seen(probe.snapshot()).output_tokens_per_s.absence is Absence.NEEDS_TWO_SAMPLES
    server.answers[""] = VLLM_LATER
    clock.seconds += INTERVAL_S
    assert seen(probe.snapshot()).output_tokens_per_s.value == 4000
    server.answers[""] = VLLM
    clock.seconds += INTERVAL_S
    assert seen(probe.snapshot()).output_tokens_per_s.absence is Absence.COUNTER_RESET


def test_a_missed_answer_leaves_the_history() -> None:
    clock, server = FakeClock(), FakeServer({"": VLLM})
    probe = probe_of(server, clock)
    probe.snapshot()
    clock.seconds += INTERVAL_S
    server.answers[""] = Absence.TIMEOUT
    assert absent(probe.snapshot()) is Absence.TIMEOUT
    clock.seconds += INTERVAL_S
    server.answers[""] = VLLM_LATER
    readings = seen(probe.snapshot())
    assert (readings.window_s, readings.output_tokens_per_s.value) == (4, 2000)


def test_another_server_in_its_place_is_recognised_and_starts_afresh() -> None:
    clock, server = FakeClock(), FakeServer({"": VLLM})
    probe = probe_of(server, clock)
    assert seen(probe.snapshot()).kind == "vllm"
    server.answers[""] = SGLANG
    clock.seconds += INTERVAL_S
    readings = seen(probe.snapshot())
    assert (readings.kind, readings.output_tokens_per_s.absence) == ("sglang", Absence.NEEDS_TWO_SAMPLES)
    server.answers = {"": b"[]", "/prometheus/metrics": two_scrapes("tensorrt-llm-1.3.prom")[0]}
    clock.seconds += INTERVAL_S
    readings = seen(probe.snapshot())
    assert (readings.kind, readings.running.value) == ("tensorrt-llm", 24)


def test_metrics_that_move_to_another_path_are_found_again() -> None:
    clock, server = FakeClock(), FakeServer({"": VLLM})
    probe = probe_of(server, clock)
    probe.snapshot()
    server.answers = {"/metrics": VLLM_LATER}
    clock.seconds += INTERVAL_S
    assert seen(probe.snapshot()).output_tokens_per_s.value == 4000


def test_closing_forgets_and_may_be_done_twice() -> None:
    clock, server = FakeClock(), FakeServer({"": HTML, "/metrics": VLLM})
    probe = probe_of(server, clock)
    probe.snapshot()
    probe.close()
    probe.close()
    server.answers["/metrics"] = VLLM_LATER
    clock.seconds += INTERVAL_S
    assert seen(probe.snapshot()).output_tokens_per_s.absence is Absence.NEEDS_TWO_SAMPLES
    assert server.asked == ["", "/metrics", "", "/metrics"]


def test_a_fetch_that_breaks_its_promise_takes_nothing_down() -> None:
    def broken(path: str) -> FetchedText:
        raise RuntimeError("secret address")

    server = FakeServer()
    server.fetch = broken  # type: ignore[method-assign]
    snapshot = probe_of(server, FakeClock()).snapshot()
    assert absent(snapshot) is Absence.UNKNOWN_ERROR
    assert "secret" not in json.dumps(snapshot.document())


def test_several_threads_get_one_answer() -> None:
    server = FakeServer({"": VLLM})
    probe = probe_of(server, FakeClock())
    answers: list[ProbeSnapshot] = []
    threads = [threading.Thread(target=lambda: answers.append(probe.snapshot())) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({id(answer) for answer in answers}) == 1
    assert server.asked == [""]


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("a\\u202eb\\u0007c", "a b c"),
        ("x" * 10_000, "x" * 80),
        ("\\u200b", None),
        ("/home/someone/secret-project/llama", "secret-project/llama"),
    ],
    ids=["bidi and bell", "long", "invisible", "path"],
)
def test_hostile_names_of_models_are_made_fit_to_show(name: str, shown: str | None) -> None:
    name = name.encode().decode("unicode_escape")
    body = f'vllm:num_requests_running{{model_name="{name}"}} 3\n'.encode()
    readings = seen(probe_of(FakeServer({"": body}), FakeClock()).snapshot())
    assert (readings.running.value, readings.model_name.value) == (3, shown)
