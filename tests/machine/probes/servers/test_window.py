"""The last seconds of a server, against a simulation that keeps every request."""

import math
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.machine.probes.reading import Absence
from app.machine.probes.servers.adapters import adapter_of, wanted_names
from app.machine.probes.servers.exposition import Exposition, read_exposition
from app.machine.probes.servers.measure import measure
from app.machine.probes.servers.readings import ServerReadings
from app.machine.probes.servers.tally import Tally, tally_of
from app.machine.probes.servers.window import GAP_S, MOST_STEPS, Window

ADAPTER = adapter_of("vllm")
TTFT = "vllm:time_to_first_token_seconds"
BOUNDS = (0.1, 0.5, 2.0)
STEP_S = 2.0


@dataclass
class Simulated:
    """Engines that note every first token. A restart forgets all; `known_start` lets the process say when it began."""

    engines: int
    known_start: bool
    starts: int = 0
    waits: dict[int, list[float]] = field(default_factory=dict)

    def restart(self) -> None:
        self.starts += 1
        self.waits = {}

    def text(self) -> bytes:
        lines = [f"process_start_time_seconds {1_764_000_000 + self.starts}"] if self.known_start else []
        for engine in range(self.engines):
            waits, label = self.waits.get(engine, []), f'engine="{engine}"'
            lines += [
                f'{TTFT}_bucket{{{label},le="{bound}"}} {sum(wait <= bound for wait in waits)}' for bound in BOUNDS
            ]
            lines += [
                f'{TTFT}_bucket{{{label},le="+Inf"}} {len(waits)}',
                f"{TTFT}_sum{{{label}}} {math.fsum(waits)}",
                f"{TTFT}_count{{{label}}} {len(waits)}",
                f"vllm:request_success_total{{{label}}} {len(waits)}",
            ]
        return "".join(f"{line}\n" for line in lines).encode()


def look(window: Window, text: bytes, at_s: float) -> ServerReadings:
    exposition = read_exposition(text, wanted_names())
    assert isinstance(exposition, Exposition)
    tally = tally_of(exposition, ADAPTER)
    window.add(tally, at_s)
    return measure(ADAPTER, exposition, tally, window)


_WAITS = st.lists(st.tuples(st.integers(0, 1), st.floats(0.01, 5.0)), max_size=6)
_RUN = st.lists(st.tuples(st.integers(0, 9).map(lambda roll: roll == 0), _WAITS), min_size=2, max_size=14)


@given(_RUN)
@settings(max_examples=60)
def test_rates_and_quantiles_are_those_of_the_requests_since_the_last_restart(
    run: list[tuple[bool, list[tuple[int, float]]]],
) -> None:
    server, window = Simulated(2, known_start=True), Window()
    look(window, server.text(), 0.0)
    counted: list[list[float]] = []  # The requests of each step that is compared.
    for number, (restarts, waits) in enumerate(run, start=1):
        if restarts:
            server.restart()
        for engine, wait in waits:
            server.waits.setdefault(engine, []).append(wait)
        counted = [] if restarts else [*counted, [wait for _, wait in waits]][-7:]
        readings = look(window, server.text(), number * STEP_S)
        if restarts:
            assert readings.requests_per_s.absence is Absence.COUNTER_RESET
            assert readings.window_s is None
            continue
        assert readings.window_s == len(counted) * STEP_S
        requests = sorted(wait for step in counted for wait in step)
        assert readings.requests_per_s.value == pytest.approx(len(requests) / readings.window_s)
        if not requests:
            assert readings.ttft_p99_s.absence is Absence.NOTHING_TO_MEASURE
            continue
        assert readings.ttft_mean_s.value == pytest.approx(math.fsum(requests) / len(requests))
        for reading, share in ((readings.ttft_p50_s, 0.5), (readings.ttft_p99_s, 0.99)):
            stands_for = requests[math.ceil(share * len(requests)) - 1]
            lower = max((bound for bound in (0.0, *BOUNDS) if bound < stands_for), default=0.0)
            upper = min((bound for bound in BOUNDS if bound >= stands_for), default=BOUNDS[-1])
            assert reading.value is not None
            assert lower <= reading.value <= upper
        assert readings.ttft_p50_s.value is not None
        assert readings.ttft_p99_s.value is not None
        assert readings.ttft_p50_s.value <= readings.ttft_p99_s.value


@given(_RUN)
@settings(max_examples=40)
def test_a_restart_that_nobody_tells_of_gives_no_negative_rate(
    run: list[tuple[bool, list[tuple[int, float]]]],
) -> None:
    server, window = Simulated(2, known_start=False), Window()
    look(window, server.text(), 0.0)
    for number, (restarts, waits) in enumerate(run, start=1):
        fell = restarts and any(len(own) for own in server.waits.values())
        before = {engine: len(own) for engine, own in server.waits.items()}
        if restarts:
            server.restart()
        for engine, wait in waits:
            server.waits.setdefault(engine, []).append(wait)
        fell = fell and any(len(server.waits.get(engine, [])) < count for engine, count in before.items())
        readings = look(window, server.text(), number * STEP_S)
        if fell:
            assert readings.requests_per_s.absence is Absence.COUNTER_RESET
        assert (readings.requests_per_s.value or 0.0) >= 0
        assert (readings.ttft_mean_s.value or 0.0) >= 0


def test_the_first_scrape_has_gauges_only() -> None:
    readings = look(Window(), b"vllm:num_requests_running 3\nvllm:generation_tokens_total 5\n", 7.0)
    assert (readings.running.value, readings.window_s) == (3, None)
    assert readings.output_tokens_per_s.absence is Absence.NEEDS_TWO_SAMPLES
    assert readings.output_tokens_per_s.read_from == "vllm:generation_tokens_total"
    assert readings.prompt_tokens_per_s.absence is Absence.NOT_REPORTED


def test_counters_without_their_usual_ending_are_read() -> None:
    window = Window()
    look(window, b"vllm:generation_tokens 5\n", 0.0)
    reading = look(window, b"vllm:generation_tokens 25\n", 2.0).output_tokens_per_s
    assert (reading.value, reading.read_from) == (10, "vllm:generation_tokens")


def test_a_counter_that_comes_later_waits_for_a_second_sample() -> None:
    window = Window()
    look(window, b"vllm:prompt_tokens_total 5\n", 0.0)
    late = look(window, b"vllm:prompt_tokens_total 7\nvllm:generation_tokens_total 500\n", 2.0)
    assert (late.prompt_tokens_per_s.value, late.output_tokens_per_s.absence) == (1, Absence.NEEDS_TWO_SAMPLES)
    after = look(window, b"vllm:prompt_tokens_total 7\nvllm:generation_tokens_total 520\n", 4.0)
    assert after.output_tokens_per_s.value == 10


def test_only_the_last_seconds_count() -> None:
    window, tokens = Window(), 0
    for second in range(0, 40, 2):
        tokens += 1000 if second < 20 else 10
        readings = look(window, b"vllm:generation_tokens_total %d\n" % tokens, float(second))
    assert (readings.window_s, readings.output_tokens_per_s.value) == (14, 5)


@pytest.mark.parametrize("gap_s", [GAP_S + 1, 0.0, -5.0], ids=["long", "none", "backwards"])
def test_scrapes_too_far_apart_or_at_once_are_not_compared(gap_s: float) -> None:
    window = Window()
    look(window, b"vllm:generation_tokens_total 1\n", 100.0)
    look(window, b"vllm:generation_tokens_total 5\n", 102.0)
    readings = look(window, b"vllm:generation_tokens_total 9\n", 102.0 + gap_s)
    assert readings.output_tokens_per_s.absence is Absence.NEEDS_TWO_SAMPLES


def test_the_number_of_steps_is_bounded() -> None:
    window = Window()
    for tick in range(5 * MOST_STEPS):
        readings = look(window, b"vllm:generation_tokens_total %d\n" % tick, tick / 100)
    assert readings.window_s == pytest.approx(MOST_STEPS / 100)


def test_a_restart_in_the_window_is_survived() -> None:
    window = Window()
    for at_s, tokens in ((0, 1000), (2, 1200), (4, 30)):
        readings = look(window, b"vllm:generation_tokens_total %d\n" % tokens, float(at_s))
    assert readings.output_tokens_per_s.absence is Absence.COUNTER_RESET
    readings = look(window, b"vllm:generation_tokens_total 90\n", 6.0)
    assert (readings.output_tokens_per_s.value, readings.window_s) == (30, 2)


def test_negative_and_decreasing_histograms_give_no_nonsense() -> None:
    def scrape(low: float, high: float, count: float, total: float) -> bytes:
        return (
            f'{TTFT}_bucket{{le="0.1"}} {low}\n{TTFT}_bucket{{le="1"}} {high}\n{TTFT}_bucket{{le="+Inf"}} {count}\n'
            f"{TTFT}_sum {total}\n{TTFT}_count {count}\n"
        ).encode()

    window = Window()
    negative = look(window, scrape(-5, 3, 3, 1), 0.0)
    assert negative.ttft_p50_s.absence is Absence.IMPLAUSIBLE
    look(window, scrape(2, 0, 2, 1), 2.0)
    # A wider bucket with fewer observations is levelled up; a sum that falls is a mean below zero.
    decreasing = look(window, scrape(6, 3, 6, -50), 4.0)
    assert decreasing.ttft_p50_s.value == pytest.approx(0.05)
    assert decreasing.ttft_mean_s.absence is Absence.IMPLAUSIBLE


def test_the_count_stands_in_for_a_last_bucket_that_was_lost() -> None:
    def scrape(count: int) -> bytes:
        return f'{TTFT}_bucket{{le="0.1"}} {count // 2}\n{TTFT}_sum {count}\n{TTFT}_count {count}\n'.encode()

    window = Window()
    look(window, scrape(0), 0.0)
    readings = look(window, scrape(10), 2.0)
    assert (readings.ttft_p50_s.value, readings.ttft_p99_s.value) == (0.1, 0.1)
    assert readings.ttft_p99_s.read_from == f"{TTFT} (beyond its last bucket)"


def test_huge_counts_do_not_overflow() -> None:
    window = Window()
    text = "".join(f'vllm:generation_tokens_total{{engine="{number}"}} {{}}\n' for number in range(50))
    look(window, text.replace("{}", "1").encode(), 0.0)
    readings = look(window, text.replace("{}", "9e29").encode(), 1e-9)
    assert readings.output_tokens_per_s.absence is Absence.IMPLAUSIBLE


def test_an_unusable_counter_is_told_from_one_that_is_not_there() -> None:
    readings = look(Window(), b"vllm:generation_tokens_total NaN\nvllm:prompt_tokens_total -4\n", 0.0)
    assert readings.output_tokens_per_s.absence is Absence.IMPLAUSIBLE
    assert readings.prompt_tokens_per_s.absence is Absence.IMPLAUSIBLE
    assert readings.requests_per_s.absence is Absence.NOT_REPORTED


def test_what_is_kept_between_scrapes_is_one_tally() -> None:
    window = Window()
    tally = Tally({}, {}, {}, frozenset())
    for second in range(100):
        window.add(tally, float(second))
    assert window.seconds == 15
    assert window.growths(next(iter(ADAPTER.counters()))) == []
