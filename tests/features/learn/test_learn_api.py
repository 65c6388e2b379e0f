"""The lesson by HTTP: its documented form, the usual case for who brings none, and refusals as everywhere."""

from typing import Any
from urllib.parse import urlencode

import pytest
from starlette.testclient import TestClient

from app.checkpoint.text import loads
from app.features.learn.schemas import LessonAnswer
from app.web.urls import API
from tests.features.learn.cases import REFERENCE, USUAL
from tests.features.problems import paths

LEARN = f"{API}/learn"
CHAPTERS = (
    ["request", "prefill", "decode", "ridge", "batching", "cache", "measuring", "doors", "engines", "cards", "beliefs"]
)  # fmt: skip


def told(client: TestClient, **query: str) -> dict[str, Any]:
    answer = client.get(f"{LEARN}?{urlencode(query)}")
    assert answer.status_code == 200, answer.text[:500]
    body: dict[str, Any] = loads(answer.content)
    return body


def number(body: dict[str, Any], id_: str) -> dict[str, Any]:
    (found,) = [one for chapter in body["chapters"] for one in chapter["numbers"] if one["id"] == id_]
    assert isinstance(found, dict)
    return found


def test_the_answer_has_the_documented_form_and_the_storys_numbers(calculator: TestClient) -> None:
    body = told(calculator, **REFERENCE)
    assert LessonAnswer.model_validate(body, strict=True).model_dump() == body
    assert [chapter["id"] for chapter in body["chapters"]] == CHAPTERS
    rate = number(body, "decode.rate")
    assert rate["unit"] == "tokens/s"
    assert rate["value"] == pytest.approx(3.35e12 / 16_060_522_496)
    assert (rate["source"], rate["case"]) == ("rule_of_thumb.decode_tokens_per_s", "one")
    idle = number(body, "decode.idle")
    assert (idle["unit"], idle["text"]) == ("1", "99.66 %")
    assert number(body, "decode.allowed")["source"] == "decode.peak ÷ (decode.two × decode.params)"


def test_a_number_is_at_its_source_in_the_evaluation_of_its_case(calculator: TestClient) -> None:
    body = told(calculator)
    for id_ in ("batching.past_step", "cache.kv_step", "cards.after", "engines.sglang_pool"):
        one = number(body, id_)
        evaluation = calculator.get(body["cases"][one["case"]]["evaluate"]).json()
        for key in one["source"].split("."):
            evaluation = evaluation[key]
        assert evaluation == one["value"], id_


def test_a_prefix_longer_than_the_conversations_of_the_lesson_is_cut_to_them(calculator: TestClient) -> None:
    query = {"model": "llama-3.1-8b", "hw": "h100-sxm-80gb", "prompt": "71237", "out": "500", "shared": "35618"}
    body = told(calculator, **query)
    asked, chats = (
        calculator.get(body["cases"][key]["evaluate"]).json()["scenario"]["workload"] for key in ("asked", "chats")
    )
    assert asked["shared_prefix_tokens"] == 35_618
    assert chats["shared_prefix_tokens"] == chats["prompt_tokens"] < 35_618


def test_the_query_is_the_workbenchs_with_one_name_more(calculator: TestClient) -> None:
    assert told(calculator)["chapters"] == told(calculator, **USUAL, units="gib")["chapters"]
    body = told(calculator, chat="131072", batch="8")
    assert body["chat_tokens"] == 131_072
    assert number(body, "cache.all_cache")["value"] == 8 * 131_072 * 131_072


@pytest.mark.parametrize(
    ("query", "path"),
    [
        ({"chat": "1"}, "chat"),
        ({"chat": "x"}, "chat"),
        ({"prompt": "NaN"}, "workload.prompt_tokens"),
        ({"model": "nothing"}, "model.id"),
        ({"hw": "custom"}, "hardware.custom"),
        ({"colour": "red"}, "colour"),
    ],
)
def test_what_is_not_right_is_a_problem(calculator: TestClient, query: dict[str, str], path: str) -> None:
    found = paths(calculator.get(f"{LEARN}?{urlencode(query)}"))
    assert any(one.startswith(path) for one in found)
