"""What differs between scenarios: every such field, no other one, each called as the workbench calls it.

Names that tell plans apart, and no more than that.
"""

import re
from typing import Any

import pytest
from starlette.testclient import TestClient

from app.features.compare.differences import MOST_KEYS, differences, label_of, phrase_of, value_words
from app.scenario.query import BY_NAME, FIELDS
from tests.compared_plans import BASE, FP8, H200, compared
from tests.factories import answer_to, custom_card
from tests.features.asking import page
from tests.features.workbench.charts.cases import TINY_CONFIG, answer_to_config

CARD = {"id": "h100-sxm-80gb"}


def told(*changes: dict[str, Any]) -> dict[str, tuple[object, ...]]:
    answers = [answer_to(**change) for change in changes]
    return {one.path: one.values for one in differences(answers)}


def test_alike_scenarios_differ_in_nothing() -> None:
    assert told({}, {}) == {}
    assert told({}, {"precision": {"weights": "bf16"}}) == {}  # the same once it is written out


def test_only_what_differs_is_told_with_what_follows_from_it() -> None:
    assert told({}, {"precision": {"weights": "fp8"}}) == {
        "precision.weights": ("bf16", "fp8"),
        "precision.compute": ("bf16", "fp8"),
    }
    assert told({}, {"workload": {"concurrency": None}}, {}) == {"workload.concurrency": (64, None, 64)}


def test_a_part_that_one_plan_lacks_is_told_field_by_field() -> None:
    found = told({}, {"techniques": {"speculative": {"draft_tokens": 4}}})
    assert found["techniques.speculative.draft_tokens"] == (None, 4)


def test_own_cards_are_told_by_their_figures_and_not_by_their_names_again() -> None:
    cards = [{"custom": {**custom_card(), "name": name, "memory_gb": size}} for name, size in (("X", 80), ("Y", 96))]
    found = told(*({"hardware": card} for card in cards))
    assert found == {"hardware.custom.memory_gb": (80, 96)}
    beside = told({}, {"hardware": cards[0]})
    assert beside["hardware.id"] == ("h100-sxm-80gb", None)
    assert beside["hardware.custom.memory_gb"] == (None, 80)


def test_own_models_are_told_key_by_key_until_there_are_many() -> None:
    answers = [answer_to_config({**TINY_CONFIG, "hidden_size": size}, CARD) for size in (64, 128)]
    (one,) = differences(answers)
    assert (one.path, one.label, one.values) == ("model.config.hidden_size", "Its config.json: hidden_size", (64, 128))
    noise = {f"unread_{n}": n for n in range(MOST_KEYS + 1)}
    (whole,) = differences([answers[0], answer_to_config({**TINY_CONFIG, "hidden_size": 64, **noise}, CARD)])
    assert whole.path == "model.config"
    words = whole.words(answers, binary=False)
    assert words == ("version 1, 6 entries", f"version 2, {6 + len(noise)} entries")


def test_an_own_model_beside_one_of_the_catalog_is_one_difference_not_a_hundred() -> None:
    answers = [answer_to(), answer_to_config(TINY_CONFIG, CARD)]
    found = {one.path: one.words(answers, binary=False) for one in differences(answers)}
    assert found["model.id"] == ("Llama-3.1-8B", "Own")
    assert found["model.config"] == ("not set", "version 1, 6 entries")


def test_one_is_not_true() -> None:
    answers = [answer_to_config({**TINY_CONFIG, "unread": value}, CARD) for value in (1, True)]
    assert [one.values for one in differences(answers)] == [(1, True)]


@pytest.mark.parametrize("field", FIELDS, ids=lambda field: field.name)
def test_every_query_field_has_a_label_in_words(field: object) -> None:
    label = label_of(field.path)  # type: ignore[attr-defined]
    assert label[0].isupper()
    assert "_" not in label.replace("hf_quant_config.json", "")
    assert len(label) < 70


def test_a_field_that_nobody_named_is_called_by_its_path() -> None:
    assert label_of("techniques.chunked_prefill.chunk_tokens") == "Chunk tokens, chunked prefill"
    assert label_of("workload.arrival_rate_per_s") == "Arrival rate per s"
    assert label_of("techniques.pool.hardware.id") == "Hardware, pool"
    assert value_words("workload.arrival_rate_per_s", 2.5, answer_to()) == "2.5"
    assert phrase_of("workload.arrival_rate_per_s", 2.5, answer_to()) == "Arrival rate per s: 2.5"


def test_labels_are_those_of_the_workbench(reader: TestClient) -> None:
    form = page(reader, "/").id("scenario")
    shown = {label["for"].removeprefix("f-"): label.text for label in form.all("label")}
    assert shown.keys() <= BY_NAME.keys()
    assert len(shown) > 70
    assert {name: text for name, text in shown.items() if not text.startswith(label_of(BY_NAME[name].path))} == {}


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        ("workload.prompt_tokens", 4000, "4,000 tokens"),
        ("workload.concurrency", None, "as many as fit"),
        ("workload.slo_tpot_s", 0.05, "0.05 s"),
        ("engine.kv_pool_bytes", 2.0**30, "1.074 GB"),
        ("engine.prefix_caching", True, "on"),
        ("engine.enforce_eager", True, "yes"),
        ("memory_basis", "marketed", "as on the box"),
        ("techniques.speculative.draft_tokens", None, "none"),
        ("techniques.disaggregation.overlap", None, "not set"),
        ("engine.max_model_len", None, "model’s limit"),
        ("precision.weights", "native", "as shipped (native)"),
        ("hardware.custom.usd_per_hour", 2.5, "$2.5"),
        ("engine.id", "vllm", "vLLM"),
        ("model.name", "x" * 200, "x" * 79 + "…"),
    ],
)
def test_values_are_written_as_people_read_them(path: str, value: object, words: str) -> None:
    assert value_words(path, value, answer_to()) == words


def test_sizes_follow_the_units() -> None:
    assert re.fullmatch(r"1 GiB", value_words("engine.kv_pool_bytes", 2.0**30, answer_to(), binary=True))


LLAMA_70B = "model=llama-3.1-70b&hw=h200-sxm&tp=4"


@pytest.mark.parametrize(
    ("texts", "names"),
    [
        ((BASE,), ["Llama-3.1-8B on H100 SXM5 80GB"]),
        ((BASE, H200), ["H100 SXM5 80GB", "H200 SXM 141GB"]),
        ((BASE, FP8), ["weights bf16", "weights fp8"]),
        ((BASE, f"{BASE}&batch=1", f"{BASE}&batch="), ["64 users", "1 user", "as many users as fit"]),
        ((BASE, f"{BASE}&tp=2"), ["TP 1", "TP 2"]),
        ((BASE, f"{BASE}&count=2"), ["1 GPU", "2 GPUs"]),
        ((BASE, f"{BASE}&max_seqs=8"), ["Sequences at a time: default", "Sequences at a time: 8"]),
        ((BASE, BASE), ["Plan A", "Plan B"]),
        ((BASE, H200, BASE), ["H100 SXM5 80GB (A)", "H200 SXM 141GB", "H100 SXM5 80GB (C)"]),
        (
            (BASE, FP8, H200),
            ["H100 SXM5 80GB, weights bf16", "H100 SXM5 80GB, weights fp8", "H200 SXM 141GB, weights bf16"],
        ),
        ((BASE, LLAMA_70B), ["Llama-3.1-8B", "Llama-3.1-70B"]),
    ],
)
def test_a_name_is_the_shortest_phrase_that_tells_the_plans_apart(texts: tuple[str, ...], names: list[str]) -> None:
    assert [plan.name for plan in compared(*texts).plans] == names


def test_four_plans_have_four_labels_whatever_they_are() -> None:
    for texts in ((BASE,) * 4, (BASE, FP8, H200, f"{H200}&w=fp8"), (BASE, "", BASE, H200)):
        labels = [plan.label for plan in compared(*texts).plans]
        assert len(set(labels)) == len(labels)
