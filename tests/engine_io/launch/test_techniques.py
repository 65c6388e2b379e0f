"""Techniques in a launch text: which flags say them, what the notes tell, and what is read back."""

from typing import Any

import pytest

from app.engine_io.launch.command import read_command
from app.engine_io.launch.findings import Reason, Variant, get
from app.engine_io.launch.variants import launch_variants
from app.scenario.scenario import Scenario
from tests.factories import scenario, shipped_catalog

HEAD = "/models/eagle3-head"
EAGLE = {"speculative": {"method": "eagle", "draft_tokens": 3}}


def written(engine: str, techniques: dict[str, Any], **settings: Any) -> Variant:
    """The first text of a scenario, of which it is known that it gives the scenario back."""
    asked = scenario(precision={"weights": "bf16"}, techniques=techniques, engine={"id": engine, **settings})
    variant = launch_variants(asked, shipped_catalog())[0]
    assert Scenario.model_validate(read_command(variant.text, shipped_catalog()).document) == asked
    return variant


def words(text: str) -> str:
    """The text on one line, without the comment."""
    return " ".join(text.partition("\n")[2].replace("\\\n", " ").split())


@pytest.mark.parametrize(
    ("engine", "flags"),
    [
        ("vllm", f"""'{{"method": "eagle3", "model": "{HEAD}", "num_speculative_tokens": 3}}'"""),
        (
            "sglang",
            f"--speculative-algorithm EAGLE3 --speculative-draft-model-path {HEAD} --speculative-num-steps 3 "
            "--speculative-eagle-topk 1 --speculative-num-draft-tokens 4",
        ),
        ("tensorrt-llm", f'decoding_type: Eagle3 max_draft_len: 3 speculative_model: "{HEAD}"'),
    ],
)
def test_an_eagle_head_is_asked_for_by_name(engine: str, flags: str) -> None:
    variant = written(engine, EAGLE)
    assert flags in words(variant.text)
    assert "method" not in variant.text.partition("\n")[0]
    assert any(HEAD in note for note in variant.notes)


def test_a_head_under_llama_cpp_is_in_the_comment_alone() -> None:
    variant = written("llama.cpp", EAGLE)
    assert "--spec" not in variant.text
    assert "method=eagle" in variant.text.partition("\n")[0]
    assert any("EAGLE head" in note for note in variant.notes)


@pytest.mark.parametrize(
    ("text", "method"),
    [
        ("""vllm serve a/b -sc '{"method": "eagle", "model": "x/y", "num_speculative_tokens": 2}'""", "eagle"),
        ("""vllm serve a/b -sc '{"model": "someone/EAGLE3-Llama", "num_speculative_tokens": 2}'""", "eagle"),
        (
            "sglang serve --model a/b --speculative-algorithm EAGLE --speculative-draft-model-path x/y "
            "--speculative-num-steps 2",
            "eagle",
        ),
        ("sglang serve --model a/b --speculative-algorithm EAGLE3 --speculative-num-steps 2", None),
        (
            "sglang serve --model a/b --speculative-algorithm EAGLE --speculative-draft-model-path x/R1-NextN "
            "--speculative-num-steps 2",
            None,
        ),
        ("llama-server -m a.gguf -md head.gguf --spec-type draft-eagle3 --spec-draft-n-max 2", "eagle"),
        *(
            (
                f"cat > o.yml <<EOF\nspeculative_config:\n  decoding_type: {word}\n  max_draft_len: 2\n"
                "  speculative_model_dir: /x\nEOF\ntrtllm-serve a/b --config o.yml",
                "eagle",
            )
            for word in ("Eagle", "Eagle3")
        ),
    ],
)
def test_a_head_of_any_name_is_read(text: str, method: str | None) -> None:
    document = read_command(text, shipped_catalog()).document
    expected = {"method": method, "draft_tokens": 2, "draft": None} if method else None
    assert get(document, "techniques.speculative") == expected


def test_a_guesser_of_the_flags_undoes_that_of_the_comment() -> None:
    comment = "# Tokenroof: method=ngram&accept_len=4.5\n"
    config = '{"model": "meta-llama/Llama-3.2-1B", "num_speculative_tokens": 2}'
    document = read_command(f"{comment}vllm serve a/b -sc '{config}'", shipped_catalog()).document
    assert document["techniques"]["speculative"] == {
        "method": None,
        "draft_tokens": 2,
        "draft": {"id": "llama-3.2-1b"},
        "acceptance_length": None,
    }


@pytest.mark.parametrize(
    ("engine", "whole", "in_chunks"),
    [
        ("vllm", "--no-enable-chunked-prefill", ""),
        ("sglang", "--chunked-prefill-size -1", "--chunked-prefill-size 2048"),
        ("tensorrt-llm", "", "--enable_chunked_prefill"),
    ],
)
def test_whole_prompts_are_asked_for_as_the_engine_has_it(engine: str, whole: str, in_chunks: str) -> None:
    settings = {"max_batched_tokens": 2048, "max_model_len": 8192}
    off = words(written(engine, {"chunked_prefill": False}, **settings).text)
    on = words(written(engine, {"chunked_prefill": True}, **settings).text)
    assert whole in off
    assert in_chunks in on
    assert "chunked" not in (off if not whole else on if not in_chunks else "")


def test_what_whole_prompts_need_or_cannot_be_told_is_noted() -> None:
    off = {"chunked_prefill": False}
    assert any("at least" in note for note in written("vllm", off, max_batched_tokens=2048).notes)
    assert any("size of a step" in note for note in written("sglang", off, max_batched_tokens=2048).notes)
    assert any("whole prompts" in note for note in written("llama.cpp", off).notes)


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        ("vllm serve a/b", None),
        ("vllm serve a/b --enable-chunked-prefill", True),
        ("vllm serve a/b --no-enable-chunked-prefill", False),
        ("sglang serve --model a/b --chunked-prefill-size 0", False),
        ("sglang serve --model a/b --chunked-prefill-size 4096", None),
        ("trtllm-serve a/b", False),
        ("trtllm-serve a/b --enable_chunked_prefill", True),
        ("cat > o.yml <<EOF\nenable_chunked_prefill: true\nEOF\ntrtllm-serve a/b --config o.yml", True),
    ],
)
def test_chunks_are_read(flags: str, said: bool | None) -> None:
    assert get(read_command(flags, shipped_catalog()).document, "techniques.chunked_prefill") is said


POOL = {"disaggregation": {"hardware": {"id": "h200-sxm"}, "tensor": 2, "data": 2, "instances": 3}}


@pytest.mark.parametrize("engine", ["vllm", "sglang", "tensorrt-llm", "llama.cpp"])
def test_a_prefill_pool_is_a_second_launch(engine: str) -> None:
    card = shipped_catalog().accelerators["h200-sxm"].name
    notes = [note for note in written(engine, POOL).notes if "second launch" in note]
    assert len(notes) == 1
    assert f"3 instances on {card}, each with tensor 2 × data 2" in notes[0]


def test_the_values_of_llm_d_have_both_roles() -> None:
    text = written("llm-d", POOL, underneath="vllm").text
    prefill = text.partition("prefill:\n")[2]
    assert "create: true\n  replicas: 3\n  parallelism:\n    tensor: 2\n    data: 2" in prefill
    assert text.count("NixlConnector") == 2
    assert "enabled: true" in text
    changed = text.replace("replicas: 3", "replicas: 5")
    reading = read_command(changed, shipped_catalog())
    assert reading.document["techniques"]["disaggregation"]["instances"] == 5
    assert "--prefill" not in {unread.flag for unread in reading.unread}
    without = read_command(text.partition("\n")[2], shipped_catalog())
    assert get(without.document, "techniques.disaggregation") is None
    assert {unread.flag: unread.reason for unread in without.unread}["--prefill"] is Reason.VALUE


def test_what_the_prefill_role_cannot_say_is_noted_for_it() -> None:
    pool = {"hardware": {"id": "h200-sxm"}, "tensor": 8, "data": 2, "expert": 4}
    notes = written("llm-d", {"disaggregation": pool}, underneath="vllm").notes
    assert any(note.startswith("Of the prefill role: vLLM spreads experts") for note in notes)
    assert any(note.startswith("A prefill instance of more than 8 GPUs") for note in notes)


def test_values_over_sglang_have_the_decode_role_and_the_note() -> None:
    variant = written("llm-d", POOL, underneath="sglang")
    assert "prefill:\n  create: false" in variant.text
    assert any("second launch" in note for note in variant.notes)


def test_what_no_server_runs_is_a_what_if() -> None:
    variant = written("vllm", {"static_batching": True, "reserved_tokens": 4096, "attention": "mla"})
    assert sum("what-if" in note for note in variant.notes) == 3
    assert "static=1&reserved=4096&attention=mla" in variant.text.partition("\n")[0]
