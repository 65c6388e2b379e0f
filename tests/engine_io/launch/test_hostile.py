"""Whatever is pasted is read, or refused with one kind of error; never slowly, and never with its own words in it."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.engine_io.launch.command import read_command
from app.engine_io.launch.findings import MOST_BYTES, CommandError
from app.engine_io.launch.variants import launch_variants
from tests.engine_io.launch.strategies import ENGINES
from tests.factories import scenario, shipped_catalog

SLOW_S = 2.0
PIECES = st.sampled_from(
    [
        *("vllm serve", "python -m", "sglang.launch_server", "trtllm-serve", "llama-server", "docker run", "\\\n"),
        *("vllm/vllm-openai:v1.2.3", "a/b", "--tensor-parallel-size", "-tp", "--tp", "=", "2", "-1", "1e9", "nan", "∞"),
        *(
            "--speculative-config",
            '{"method":',
            "'",
            '"',
            "$X",
            "${",
            "$(",
            "`",
            "<x>",
            "<<EOF",
            "EOF",
            "\n",
            "\t",
            "|",
        ),
        *(
            "apiVersion: v1",
            "kind: Pod",
            "args:",
            "- ",
            "  ",
            "[",
            "]",
            "{",
            "}",
            ": ",
            "&a",
            "*a",
            "!t",
            "|-",
            ">",
            "#",
        ),
        *("# Tokenroof: ", "hw=custom&", "tp=1&", "%", "%00", "modelArtifacts:", "decode:", "containers:", "---", "٣"),
    ]
)
TEXTS = st.text(max_size=200) | st.lists(PIECES | st.text(max_size=6), max_size=40).map(" ".join)


def tried(text: str) -> None:
    """Reads `text`, or refuses it in time and in own words."""
    started, message = time.process_time(), "read without a word"
    try:
        read_command(text, shipped_catalog())
    except CommandError as error:
        message = str(error)
    assert 10 < len(message) < 400
    assert message.isprintable()
    assert time.process_time() - started < SLOW_S


@settings(max_examples=400)
@given(TEXTS)
def test_any_text_is_read_or_refused(text: str) -> None:
    tried(text)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_text_cut_off_anywhere_is_read_or_refused(engine: str) -> None:
    asked = scenario(
        "deepseek-v3",
        precision={"weights": "fp8", "kv_cache": "fp8"},
        parallelism={"data": 8, "expert": 8},
        engine={"id": engine, "max_model_len": 8192, "max_num_seqs": 64, "prefix_caching": False},
        techniques={
            "speculative": {"draft_tokens": 2, "draft": {"id": "llama-3.2-1b"}},
            "disaggregation": {"hardware": {"id": "h200-sxm"}, "tensor": 8},
            "chunked_prefill": False,
        },
    )
    for variant in launch_variants(asked, shipped_catalog()):
        for length in range(len(variant.text)):
            tried(variant.text[:length])


@pytest.mark.parametrize("engine", ENGINES)
@given(data=st.data())
def test_a_text_with_anything_put_into_it_is_read_or_refused(engine: str, data: st.DataObject) -> None:
    for variant in launch_variants(scenario(engine={"id": engine, "max_num_seqs": 8}), shipped_catalog()):
        place = data.draw(st.integers(0, len(variant.text)))
        tried(variant.text[:place] + data.draw(PIECES | st.text(max_size=5)) + variant.text[place:])


LONG = {
    "flags": "vllm serve a/b " + "--tensor-parallel-size 2 " * 2600,
    "unknown flags": "vllm serve a/b " + " ".join(f"--x{number}" for number in range(7000)),
    "one word": "vllm serve " + "x" * 65_000,
    "dashes": "vllm serve a " + "-" * 65_000,
    "backslashes": "vllm serve a " + "\\" * 65_000,
    "open quotes": "vllm serve a " + "'" * 65_001,
    "open brackets": "kind: " + "[" * 65_000,
    "open braces over lines": "kind: {\n" + " {\n" * 3900,
    "brackets over lines": "kind: [\n" + " [1],\n" * 3900,
    "indentation": "kind:\n" + "".join(" " * depth + "a:\n" for depth in range(350)),
    "dashes of lists": "args:\n" + "- " * 32_000,
    "colons": "kind: a\n" + ":" * 65_000,
    "long keys": "kind: a\n" + "a" * 65_000 + ": b",
    "spaces": "kind: a\nb" + " " * 65_000 + "c",
    "lines": "kind: a\n" + "\n" * 65_000,
    "literal": "args: |\n" + "  vllm serve a/b\n" * 3700,
    "here-documents": "vllm serve a <<EOF " * 3000 + "\nEOF",
    "comments": "# Tokenroof: " + "tp=1&" * 12_000 + "\nvllm serve a/b",
    "many comments": "# Tokenroof: tp=1\n" * 3600 + "vllm serve a/b",
    "JSON": "vllm serve a --speculative-config '" + "[" * 60_000 + "'",
    "JSON numbers": """vllm serve a --speculative-config '{"num_speculative_tokens": """ + "9" * 60_000 + "}'",
    "shares": "llama-server -ts " + "1," * 30_000 + "1",
    "paths": "vllm serve " + "models--a/" * 6000,
    "dots": "vllm serve a --speculative-config" + ".a" * 30_000 + " 1",
    "placeholders": "vllm serve " + "<" * 65_000,
    "dollars": "vllm serve a --max-num-seqs " + "$" * 65_000,
}


@pytest.mark.parametrize("name", LONG)
def test_a_long_text_takes_no_long_time(name: str) -> None:
    assert len(LONG[name]) <= MOST_BYTES
    tried(LONG[name])


def test_a_refusal_never_repeats_the_text() -> None:
    for text in (
        "vllm serve a/b --max-num-seqs sesame",
        "vllm serve a/b --speculative-config sesame",
        "kind: 'sesame",
        "kind: Pod\nsesame",
        "# Tokenroof: tp=sesame\nvllm serve a/b",
        "vllm serve sesame --enforce-eager=sesame",
    ):
        with pytest.raises(CommandError) as caught:
            read_command(text, shipped_catalog())
        assert "sesame" not in str(caught.value)
