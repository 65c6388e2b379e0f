"""The data files, and what is refused in them."""

from pathlib import Path

import pytest

from app.machine.probes.servers.adapter import CONCEPTS, Candidate, Rule, Selector, parse_candidate, parse_selector
from app.machine.probes.servers.adapters import (
    ORDER,
    AdapterError,
    adapter_of,
    known_adapters,
    load_adapter,
    wanted_names,
)

HEAD = 'kind = "x"\nprefixes = ["x_"]\n'


def concept(**fields: str) -> str:
    own = {"reading": '"running"', "rule": '"sum"', "names": '["x_running"]'} | fields
    return "[[concept]]\n" + "".join(f"{key} = {value}\n" for key, value in own.items())


def load(tmp_path: Path, text: str) -> None:
    file = tmp_path / "x.toml"
    file.write_text(text, encoding="utf-8")
    load_adapter(file)


def test_every_kind_is_there_and_speaks_only_of_known_readings() -> None:
    assert tuple(adapter.kind for adapter in known_adapters()) == ORDER
    for adapter in known_adapters():
        for each in adapter.concepts:
            assert each.rule in CONCEPTS[each.reading]
    assert adapter_of("tgi").kind == "tgi"
    with pytest.raises(KeyError):
        adapter_of("another")


def test_a_minimal_file_is_enough(tmp_path: Path) -> None:
    load(tmp_path, HEAD + concept())


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "kind"),
        ("kind = ", "x.toml"),
        ('kind = "x"\n' + concept(), "nothing tells the server"),
        ('kind = "x"\nprefixes = [""]\n' + concept(), "empty prefix"),
        (HEAD, "concept"),
        (HEAD + 'colour = "red"\n' + concept(), "colour"),
        (HEAD + concept(colour='"red"'), "colour"),
        (HEAD + concept(reading='"temperature"'), "temperature"),
        (HEAD + concept(rule='"histogram"'), "histogram"),
        (HEAD + concept(rule='"guess"'), "guess"),
        (HEAD + concept(names="[]"), "no names"),
        (HEAD + concept(names='"x_running"'), "list of texts"),
        (HEAD + concept(names="[5]"), "a text is wanted"),
        (HEAD + concept(names='["x running"]'), "not a selector"),
        (HEAD + concept(names='["x_a + x_b"]'), "does not fit"),
        (HEAD + concept(names='["x_a × x_b + x_c"]'), "sums or products"),
        (HEAD + concept(names='["x_a ÷ x_b ÷ x_c"]'), "one division"),
        (HEAD + concept(weights='["x_w"]'), "only a mean"),
        (HEAD + concept(scale="0"), "absurd scale"),
        (HEAD + concept(scale="nan"), "absurd scale"),
        (HEAD + concept(reading='"prefix_hit_rate"', rule='"ratio"'), "does not fit"),
        (HEAD + concept(reading='"requests_per_s"', rule='"rate"', names='["x_a ÷ x_b"]'), "does not fit"),
        (HEAD + concept(reading='"requests_per_s"', rule='"rate"', names='["x_a[b]"]'), "does not fit"),
        (HEAD + concept(reading='"ttft"', rule='"histogram"', names='["x_a + x_b"]'), "does not fit"),
        (HEAD + concept() + '[labels]\nx_info = ["model_path"]\n', "model_path"),
        (HEAD + concept() + '[gauges]\nhost = ["x_host"]\n', "host"),
        (HEAD + 'versions = ["x_info"]\n' + concept(), "a version is read from a label"),
    ],
)
def test_a_slip_is_refused_by_name(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(AdapterError, match=words) as refused:
        load(tmp_path, text)
    assert "x.toml" in str(refused.value)


def test_a_missing_or_an_unknown_file_stops_the_start(tmp_path: Path) -> None:
    load(tmp_path, HEAD + concept())
    with pytest.raises(AdapterError, match="data files"):
        known_adapters(tmp_path)


def test_what_is_wanted_has_the_endings_of_each_kind() -> None:
    assert {"vllm:generation_tokens", "vllm:generation_tokens_total", "vllm:num_requests_running"} <= wanted_names()
    assert {f"vllm:time_to_first_token_seconds_{end}" for end in ("bucket", "sum", "count")} <= wanted_names()
    # Of a histogram that only gives its mean the buckets, most of its lines, are not even parsed.
    assert "vllm:request_prompt_tokens_bucket" not in wanted_names()
    assert {"vllm:cache_config_info", "sglang:page_size", "/props"} <= wanted_names()


def test_selectors_and_candidates() -> None:
    assert parse_selector("a:b_c") == Selector("a:b_c")
    assert parse_selector("a{b=c d}") == Selector("a", ("b", "c d"))
    assert parse_selector("a[b]") == Selector("a", None, "b")
    a, b, c = Selector("a"), Selector("b"), Selector("c")
    assert parse_candidate("a") == Candidate((a,))
    assert parse_candidate("a × b ÷ c") == Candidate((a, b), (c,), "×")
    ratio = parse_candidate("a ÷ a + b")
    assert ratio == Candidate((a,), (a, b), "+")
    assert ratio.shown({a: "a_total", b: "b"}) == "a_total ÷ (a_total + b)"
    assert Selector("a", ("b", "c")).shown("a_total") == "a_total{b=c}"
    assert Rule("sum") is Rule.SUM
