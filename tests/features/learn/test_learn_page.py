"""The lesson as a page: the story's own numbers, what is true of other cases, its form, refusals and fragments."""

import re
from collections.abc import Mapping
from functools import cache
from urllib.parse import urlencode

import pytest
from starlette.testclient import TestClient

from app.features.learn.routes import CONTENTS, SHOWN
from app.scenario.query import BY_NAME
from app.web import urls
from tests.features.asking import items_of, json_of, page, partial, twin_of
from tests.features.dom import Node
from tests.features.learn.cases import SCENARIOS, USUAL

CHARTS = ("timeline", "roofline", "pace", "reads", "context", "gap", "memory", "cards")
STORY = {  # number of the lesson: how the story of the memory wall rounds it
    "prefill.flops": "16.06 TFLOP",
    "prefill.time": "16.2 ms",
    "prefill.intensity": "1,000 FLOP/B",
    "decode.step": "4.79 ms",
    "decode.rate": "208.6 tokens/s",
    "decode.arithmetic": "0.0162 ms",
    "decode.idle": "99.66 %",
    "decode.allowed": "61,600 tokens/s",
    "decode.times": "295",
    "ridge.ridge": "295.2 FLOP/B",
    "ridge.of_decode": "1 FLOP/B",
    "batching.ridge_users": "295",
    "batching.rate": "13,350 tokens/s",
    "batching.past_users": "512",
    "batching.past_step": "8.31 ms",
    "batching.past_rate": "61,600 tokens/s",
    "batching.past_each": "120 tokens/s",
    "cache.token": "131,072 B",
    "cache.token_binary": "128 KiB",
    "cache.chat": "512 MiB",
    "cache.limit": "131,072 tokens",
    "cache.limit_bytes": "16 GiB",
    "cache.room": "487,800 tokens",
    "cache.room_users": "119",
    "cache.all_cache": "34.36 GB",
    "cache.kv_step": "15.05 ms",
    "cache.kv_rate": "4,252 tokens/s",
    "cache.over_weights": "2.1",
    "cache.fraction": "32 %",
    "request.promised": "10.2 s",
    "request.promised_share": "98 %",
    "cards.twin_rate": "299 tokens/s",
    "published.batching.gain": "23",
    "published.paging.used_low": "20.4 %",
    "published.paging.used_high": "38.2 %",
    "published.deepseek.prefill": "73,700 tokens/s",
    "published.deepseek.decode": "14,800 tokens/s",
}


def learn(changes: Mapping[str, str] | None = None) -> str:
    return f"/learn?{urlencode(changes or {})}"


@cache
def told(reader: TestClient, name: str) -> Node:
    """The page of a scenario, asked for once."""
    return page(reader, learn(SCENARIOS[name]))


def shown(tree: Node) -> dict[str, set[str]]:
    """The numbers on a page, by id, with what stands there."""
    found: dict[str, set[str]] = {}
    for node in tree.all("data"):
        found.setdefault(node["data-number"], set()).add(node.text)
    return found


def prose(tree: Node, chapter: str) -> str:
    """A chapter as it is read, without the definitions that open and the table of sources."""
    section = tree.id(chapter)

    def text(node: Node) -> str:
        if "popover" in node.attributes or node.tag in ("details", "figure"):
            return ""
        return " ".join(child if isinstance(child, str) else text(child) for child in node.children)

    return re.sub(r"\s+", " ", text(section)).replace(" .", ".").replace(" ,", ",")


def test_the_numbers_of_the_story_stand_there_as_the_story_rounds_them(reader: TestClient) -> None:
    found = shown(told(reader, "reference"))
    for id_, text in STORY.items():
        assert found[id_] == {text}, id_


@pytest.mark.parametrize("name", ["reference", "experts, latent cache, eight cards", "no cache", "does not fit"])
def test_page_and_twin_say_the_same(reader: TestClient, name: str) -> None:
    tree = told(reader, name)
    twin = json_of(reader, twin_of(tree))
    numbers = {number["id"]: number for chapter in twin["chapters"] for number in chapter["numbers"]}
    numbers |= {number["id"]: number for number in twin["published"]}
    nodes = tree.all("data")
    assert len(nodes) > 120
    for node in nodes:
        number = numbers[node["data-number"]]
        assert (float(node["value"]), node.text) == (number["value"], number["text"])


@pytest.mark.parametrize("name", SCENARIOS)
def test_ids_are_there_once_and_every_reference_is_met(reader: TestClient, name: str) -> None:
    tree = told(reader, name)
    ids = [node["id"] for node in tree if "id" in node.attributes]
    assert len(ids) == len(set(ids))
    for node in tree:
        for attribute in ("for", "aria-labelledby", "aria-describedby", "aria-controls", "popovertarget"):
            for id_ in node.attributes.get(attribute, "").split():
                assert id_ in ids, f"{attribute}={id_}"
        if node.attributes.get("href", "").startswith("#"):
            assert node["href"][1:] in ids
    for id_, _ in CONTENTS:
        assert not re.search(r"\b(None(?!:| of)|nan|inf|Undefined)\b", prose(tree, id_)), id_


def test_chapters_charts_and_ways_onward(reader: TestClient) -> None:
    tree = told(reader, "usual")
    assert len(tree.all("h1")) == 1
    assert tree.one(aria_current="page").text == "Learn"
    links = [a["href"] for a in tree.one("nav", aria_label="Chapters").all("a")]
    assert links == [f"#{id_}" for id_, _ in CONTENTS]
    for id_, _ in CONTENTS[:-1]:
        section = tree.id(id_)
        onward = [a for a in section.all("a") if a.text.startswith("Open this in the workbench")]
        assert len(onward) == 1, id_
        assert reader.get(onward[0]["href"]).status_code == 200
        assert tree.id(f"sources-{id_}").one("tbody").all("tr")
        headings = [node.text for node in section.all("h3")]
        assert id_ in ("doors", "beliefs") or all(heading.endswith("?") for heading in headings), headings
    assert [
        node["id"].removeprefix("plot-") for node in tree if node.attributes.get("id", "").startswith("plot-")
    ] == list(CHARTS)
    for door in ("quantization", "attention", "paging", "batching", "speculative", "newer_card"):
        (link,) = [a["href"] for a in tree.id(f"door-{door}").all("a") if a.text.startswith("The whole door")]
        assert link.endswith(f"#{door}")
        assert reader.get(link.partition("#")[0]).status_code == 200
    for engine in tree.id("engines").all("a"):
        if engine["href"].startswith("/launch"):
            assert reader.get(engine["href"]).status_code == 200


@pytest.mark.parametrize(
    ("name", "chapter", "words", "not_words"),
    [
        ("reference", "start", "Where does the rest go", "arithmetic that sets the pace"),
        ("little arithmetic", "start", "arithmetic that sets the pace", "Where does the rest go"),
        (
            "reference",
            "prefill",
            "bound by arithmetic, and the memory has time to spare",
            "the reader is the slower one",
        ),
        ("one prompt token", "prefill", "the reader is the slower one", "bound by arithmetic, and the memory"),
        ("one prompt token", "prefill", "the same work as writing one", "One reading serves the whole question"),
        ("no cache", "prefill", "Yours does not", "it is 0 %"),
        ("reference", "decode", "how often the reader gets through the book", "clerks get through their sums"),
        ("little arithmetic", "decode", "clerks get through their sums", "how often the reader gets through"),
        ("experts, latent cache, eight cards", "decode", "only those pages are read", "gets through the book."),
        ("experts, latent cache, eight cards", "batching", "sharing only becomes free once", "Nobody waits longer"),
        ("beyond the ridge", "batching", "one more letter does make the others wait", "Nobody waits longer"),
        ("one user", "batching", "You asked for a single user", "You asked for as many as find room"),
        ("saturated", "batching", "You asked for as many as find room", "You asked for a single user"),
        ("reference", "cache", "which is called GQA. With one for every head", "not all layers keep alike"),
        (
            "experts, latent cache, eight cards",
            "cache",
            "one compressed row for all heads",
            "not all layers keep alike",
        ),
        ("experts and windows", "cache", "Some layers look back only so far", "keeps no such folder"),
        ("hybrid", "cache", "others carry a summary of fixed size", "keeps no such folder"),
        ("no cache", "cache", "Your model keeps no such folder", "not all layers keep alike"),
        ("no cache", "beliefs", "what a prompt leaves behind hardly lengthens a step", "It is paid for at the start"),
        ("does not fit", "cache", "the book alone is larger than the shelf", "So the shelf holds the book"),
        ("does not fit", "measuring", "Nobody finds room here", "Let in as many as find room"),
        ("targets", "request", "Your targets allow", "A service might allow"),
        ("usual", "request", "A service might allow", "Your targets allow"),
        ("one output token", "request", "Here reading the question is the longer part", "hardly shows"),
        ("beyond the ridge", "beliefs", "Here the belief is right: 600 users", "Sharing the weights costs nobody"),
        ("little arithmetic", "beliefs", "more of it would help", "The clerks were waiting already"),
        ("one prompt token", "beliefs", "With a prompt as short as yours", "sometimes put on different machines"),
        ("replicas", "start", "You run 2 copies of it", "Where yours differs"),
        ("usual", "doors", "Your scenario stays below it", "Your scenario lies beyond it"),
        ("beyond the ridge", "doors", "Your scenario lies beyond it", "Your scenario stays below it"),
    ],
)
def test_what_is_said_is_true_of_the_readers_own_case(
    reader: TestClient, name: str, chapter: str, words: str, not_words: str
) -> None:
    text = prose(told(reader, name), chapter)
    assert words in text
    assert not_words not in text


@pytest.mark.parametrize(("shared", "is_cut"), [("35618", True), ("500", False)])
def test_a_prefix_that_is_cut_to_the_conversations_is_said(reader: TestClient, shared: str, is_cut: bool) -> None:
    query = {"model": "llama-3.1-8b", "hw": "h100-sxm-80gb", "prompt": "71237", "out": "500", "shared": shared}
    said = {node.text for node in page(reader, learn(query)).all("p")}
    assert any("share more tokens than the prompt" in text for text in said) is is_cut


def test_the_four_questions_of_the_story_are_asked_and_answered(reader: TestClient) -> None:
    tree = told(reader, "reference")
    headings = {heading.text for heading in tree.all("h3")}
    assert headings >= {
        "Why 208.6 tokens/s, and no more?",
        "So what does 295.2 FLOP/B mean?",
        "Why do 64 such conversations get 32 % of the naive rate?",
        "When does guessing stop paying?",
    }
    sums = [
        re.sub(r"[^\d.,÷×=+−()%A-Za-z/ ]", "", node.text)
        for node in tree.all("p")
        if node.attributes.get("class") == "sum"
    ]
    assert any(s.startswith("16.06 GB") and "3.35 TB/s" in s and "4.79 ms" in s for s in sums)
    assert any(s.startswith("989 TFLOP/s") and "3.35 TB/s" in s and "295.2 FLOP/B" in s for s in sums)
    assert any("16.06 GB" in s and "34.36 GB" in s and "15.05 ms" in s for s in sums)
    assert any(s.startswith("295 ") and "users up to whom it pays" in s for s in sums)


def test_nothing_asked_is_the_usual_case_and_half_a_query_fills_the_rest(reader: TestClient) -> None:
    usual = shown(told(reader, "usual"))
    assert shown(page(reader, "/learn")) == usual
    assert shown(page(reader, "/learn?batch=64")) == usual
    other = shown(page(reader, "/learn?hw=h200-sxm"))
    assert other["decode.rate"] == {"298.9 tokens/s"}


def test_every_field_of_a_scenario_is_sent_once(reader: TestClient) -> None:
    form = page(reader, learn({**USUAL, "util": "0.8", "kv": "fp8", "ttft": "1"})).id("scenario")
    sent = [node["name"] for node in form if "name" in node.attributes]
    assert len(sent) == len(set(sent))
    assert set(SHOWN) <= set(sent) <= {*BY_NAME, "chat"}
    carried = {node["name"]: node["value"] for node in form.all("input", type="hidden")}
    assert (carried["util"], carried["kv"], carried["ttft"]) == ("0.8", "fp8", "1")
    assert (form["method"], form["action"]) == ("get", "/learn")


def test_what_follows_from_the_model_is_not_carried_to_another(reader: TestClient) -> None:
    form = page(reader, learn(USUAL)).id("scenario")
    sent = {node["name"]: node.attributes.get("value", "") for node in form if "name" in node.attributes}
    sent |= {"model": "gpt-oss-20b", "hw": "h100-sxm-80gb"}
    tree = page(reader, f"/learn?{urlencode(sent)}")
    assert items_of(twin_of(tree))["w"] == "mxfp4"


@pytest.mark.parametrize(
    ("field", "text"),
    [
        ("prompt", "many"),
        ("prompt", "0"),
        ("prompt", "-5"),
        ("out", "1e999"),
        ("batch", "9" * 40),
        ("tp", "3"),
        ("model", "<script>alert(1)</script>"),
        ("hw", "nothing"),
        ("chat", "1"),
        ("chat", "NaN"),
        ("chat", "٤"),
        ("chat", "9" * 30),
        ("chat", "-4096"),
    ],
)
def test_a_refused_input_is_told_at_its_field_and_no_lesson_is_shown(reader: TestClient, field: str, text: str) -> None:
    query = {**USUAL, field: text}
    tree = page(reader, learn(query), 422)
    message = tree.id("results").text if field == "chat" else tree.id(f"msg-{field}").text
    assert ("Must be" if field == "chat" else ".") in message
    assert not tree.all("data")
    assert tree.id("refused-title").text == "Nothing computed yet"
    if field in ("prompt", "out", "batch", "tp"):
        assert tree.id(f"f-{field}")["value"] == text
    fragment = partial(reader, learn(query))
    assert fragment.status_code == 422
    assert f'id="msg-{field}" hx-swap-oob="true">' in fragment.text
    assert "data-number" not in fragment.text
    assert "<script>alert" not in fragment.text


def test_what_is_wrong_with_a_field_that_is_not_shown_is_told_all_the_same(reader: TestClient) -> None:
    tree = page(reader, learn({**USUAL, "util": "7"}), 422)
    assert tree.id("msg-general").text.startswith("util:")


def test_a_fragment_follows_the_form_and_keeps_the_chapter(reader: TestClient) -> None:
    asked = learn({**USUAL, "batch": "8", "chat": "1000"})
    answer = partial(reader, asked, HX_Current_URL="http://testserver/learn?batch=64#cache")
    assert answer.status_code == 200
    address = answer.headers["hx-replace-url"]
    assert address.startswith("/learn?")
    assert address.endswith("&chat=1000#cache")
    assert items_of(address.partition("#")[0])["batch"] == "8"
    assert page(reader, address.partition("#")[0]).id("results").text
    elsewhere = partial(reader, asked, HX_Current_URL="http://testserver/learn#evil%22>")
    assert "#" not in elsewhere.headers["hx-replace-url"]
    assert "<html" not in answer.text
    assert 'id="twin-head"' in answer.text


def test_the_workbench_leads_here_and_back(reader: TestClient) -> None:
    assert any(a["href"] == "/learn" for a in page(reader, "/").all("a"))
    assert urls.learn() == "/learn"
    assert "Not read from the address: colour" in page(reader, "/learn?colour=red").id("results").text
