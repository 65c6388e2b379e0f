"""Text that is no metrics, or too much of them: read or refused, within bounds that are counted and not timed."""

from collections.abc import Iterable
from unittest import mock

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from app.machine.probes.reading import Absence
from app.machine.probes.servers.adapters import wanted_names
from app.machine.probes.servers.exposition import (
    FAMILIES_SHOWN,
    MOST_BODY_BYTES,
    MOST_SAMPLES,
    Exposition,
    read_exposition,
)

NAME = "vllm:num_requests_running"


def read(body: bytes) -> Exposition:
    found = read_exposition(body, wanted_names())
    assert isinstance(found, Exposition)
    return found


def values(body: bytes, name: str = NAME) -> list[float]:
    return [each.value for each in read(body).series.get(name, ())]


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The lines that are given to the parser, which is what takes time."""
    lines: list[str] = []

    def counting(line: str) -> Iterable[Metric]:
        lines.append(line)
        return text_string_to_metric_families(line)

    monkeypatch.setattr("app.machine.probes.servers.exposition.text_string_to_metric_families", counting)
    return lines


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\n\n\n",
        b"<!doctype html>\n<html><body><p>It works 200</p></body></html>\n",
        b"error 404 page not found\n",
        b"Unauthorized\n",
        b'{"status": "ok", "running": 5}\n',
        b'{\n  "running": 5\n}\n',
        b"[]\n",
        b"# only a comment\n# HELP x y\n",
        bytes(range(256)) * 4000,
        b"\x00" * 100_000,
        b"\x1f\x8b\x08\x00" + b"\xff" * 1000,
        b" " * 1_000_000,
        b"vllm:num_requests_running 3",
        b"vllm:num_requests_running{" + b"} " * 100_000,
        NAME.encode() + b"{}" * 8_000 + b"\n",
    ],
    ids=range(16),
)
def test_what_has_no_line_of_metrics_is_refused(body: bytes) -> None:
    assert read_exposition(body, wanted_names()) is Absence.NOT_METRICS


def test_ten_megabytes_are_not_even_decoded() -> None:
    line = b"vllm:num_requests_running 1\n"
    body = mock.MagicMock(spec=bytes, wraps=line, __len__=lambda _: 10_000_000)
    assert read_exposition(body, wanted_names()) is Absence.TOO_LARGE
    body.decode.assert_not_called()
    assert read_exposition(line * (MOST_BODY_BYTES // len(line) + 1), wanted_names()) is Absence.TOO_LARGE


def test_fifty_thousand_series_of_others_are_passed_over(parsed: list[str]) -> None:
    others = b"".join(b'other_%d{a="b"} %d\n' % (number, number) for number in range(50_000))
    found = read(others + b"vllm:num_requests_running 7\n")
    assert [each.value for each in found.series[NAME]] == [7]
    assert len(parsed) == 1
    assert len(found.names) < 5_000
    assert found.families == tuple(f"other_{number}" for number in range(FAMILIES_SHOWN))


def test_fifty_thousand_series_that_are_wanted_are_too_many(parsed: list[str]) -> None:
    body = b"".join(b'tgi_queue_size{a="%d"} 1\n' % number for number in range(50_000))
    assert len(body) < MOST_BODY_BYTES
    assert read_exposition(body, wanted_names()) is Absence.TOO_LARGE
    assert len(parsed) <= MOST_SAMPLES + 1


def test_a_megabyte_of_wanted_text_is_too_much(parsed: list[str]) -> None:
    body = b"".join(b'tgi_queue_size{a="%d%s"} 1\n' % (number, b"x" * 10_000) for number in range(200))
    assert len(body) < MOST_BODY_BYTES
    assert read_exposition(body, wanted_names()) is Absence.TOO_LARGE
    assert len(parsed) < 110


def test_a_line_of_a_hundred_kilobytes_is_passed_over(parsed: list[str]) -> None:
    long = b'vllm:num_requests_running{model_name="%s"} 5\n' % (b"x" * 100_000)
    many = b"vllm:num_requests_running{%s} 6\n" % b",".join(b'l%d="x"' % number for number in range(200))
    assert values(long + many + b"vllm:num_requests_running 7\n") == [7]
    assert len(parsed) == 1


@pytest.mark.parametrize("number", ["NaN", "+Inf", "-Inf", "nan", "1e400", "-1e400", "9" * 400, "1e31"])
def test_what_is_no_finite_number_is_dropped_and_remembered(number: str) -> None:
    found = read(f'vllm:num_requests_running{{engine="0"}} {number}\nvllm:num_requests_waiting 2\n'.encode())
    assert NAME not in found.series
    assert found.unusable == {NAME}


def test_the_last_bucket_keeps_its_infinite_bound() -> None:
    (bucket,) = read(b'tgi_request_duration_bucket{le="+Inf"} 5\n').series["tgi_request_duration_bucket"]
    assert (bucket.labels, bucket.value) == ({"le": "+Inf"}, 5)


def test_a_truncated_last_line_is_not_read() -> None:
    assert values(b"vllm:num_requests_running 12\nvllm:num_requests_waiting 123", "vllm:num_requests_waiting") == []
    assert values(b"vllm:num_requests_running 12\nvllm:num_requests_wai") == [12]


def test_a_line_that_makes_no_sense_spoils_no_other() -> None:
    bad = [
        b'vllm:num_requests_running{engine="0} 5',
        b'vllm:num_requests_running{engine="0",engine="1"} 5',
        b"vllm:num_requests_running{engine=0} 5",
        b'vllm:num_requests_running{ ="x"} 5',
        b"vllm:num_requests_running five",
        b"vllm:num_requests_running 0x10",
        b"vllm:num_requests_running 1_000",
        b"vllm:num_requests_running",
    ]
    assert values(b"\n".join([*bad, b"vllm:num_requests_running 9", b""])) == [9]


def test_of_twins_the_first_counts() -> None:
    assert values(b'vllm:num_requests_running{engine="0"} 3\nvllm:num_requests_running{engine="0"} 4\n') == [3]


def test_time_stamps_exemplars_blanks_and_carriage_returns_are_no_hindrance() -> None:
    body = (
        b' \tvllm:num_requests_running{engine="0"}  3  1764000000000\r\n'
        b'vllm:num_requests_running{engine="1"} 4 # {trace_id="abc"} 0.5 1764000000.1\n'
        b'vllm:num_requests_running{engine="a # b } 7 \\" \\n",} 5\n# EOF\n'
    )
    assert values(body) == [3, 4, 5]


def test_invalid_utf_8_in_a_label_is_replaced() -> None:
    (series,) = read(b'vllm:num_requests_running{model_name="a\xff"} 3\n').series[NAME]
    assert series.labels == {"model_name": "a\ufffd"}


def test_families_are_named_without_the_endings_of_their_kind() -> None:
    body = (
        b'# TYPE a histogram\na_bucket{le="1"} 1\na_sum 1\na_count 1\n'
        b"# TYPE b_total counter\nb_total 1\nb_created 1\n# TYPE c counter\nc_total 1\nd_count 3\n"
        + b"e" * 200
        + b" 1\n"
    )
    assert read(body).families == ("a", "b_total", "b_created", "c", "d_count", "e" * 100)


_WORD = st.sampled_from(
    [
        NAME,
        "vllm:num_requests_waiting",
        "x",
        "{",
        "}",
        '"',
        "\\",
        "=",
        ",",
        " ",
        "\t",
        "\n",
        "#",
        "TYPE",
        "le",
        "1",
        "NaN",
    ]
)


@given(st.lists(_WORD, max_size=60).map("".join))
@example('vllm:num_requests_running{="1"} 1\n')
@settings(max_examples=300)
def test_no_text_raises(text: str) -> None:
    found = read_exposition(text.encode(), wanted_names())
    assert isinstance(found, Exposition | Absence)
    if isinstance(found, Exposition):
        assert found.series.keys() <= wanted_names()
