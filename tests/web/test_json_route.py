"""Bodies that no honest client sends: a problem of the right kind, and the body is never repeated."""

import json
from collections.abc import Iterator

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from app.web.problem import JsonResponse
from app.web.urls import API
from tests.factories import scenario_document
from tests.features.asgi import HOST, ask
from tests.features.problems import paths, problem

JSON = {"content-type": "application/json"}
POSTS = [f"{API}/evaluate", f"{API}/evaluate/batch", f"{API}/sweep", f"{API}/configurations"]
MARK = b"marker-of-the-sender"
CONFIG = (
    b'{"model_type":"llama","hidden_size":64,"num_attention_heads":4,"intermediate_size":128,"vocab_size":100,'
    b'"num_hidden_layers":2,"note":"@"}'
)
SCENARIO = b'{"model":{"config":' + CONFIG + b'},"hardware":{"id":"h100-sxm-80gb"}}'
HOSTILE = {
    "NaN": b'{"%s": NaN}',
    "Infinity": b'{"%s": Infinity}',
    "-Infinity": b'{"%s": [-Infinity]}',
    "overflow": b'{"%s": 1e400}',
    "twin keys": b'{"%s": 1, "%s": 2}',
    "twin keys deep inside": b'[[{"a": {"%s": 1, "%s": 2}}]]',
    "lone surrogate": b'{"%s": "\\ud800"}',
    "lone surrogate as a key": b'{"%s": {"\\udfff": 1}}',
    "swapped surrogates": b'{"%s": "\\udc00\\ud800"}',
    "depth": b'{"%s": ' + b"[" * 10_000 + b"]" * 10_000 + b"}",
    "depth without an end": b'{"%s": ' + b"[" * 200_000,
    "a large whole number": b'{"%s": ' + b"9" * 5_000 + b"}",
    "no JSON": b"%s",
    "half JSON": b'{"%s": ',
    "two values": b'{"%s": 1} {"%s": 1}',
    "single quotes": b"{'%s': 1}",
    "a comma too many": b'{"%s": 1,}',
    "not UTF-8": b'{"%s": "\xff"}',
    "a control character": b'{"%s": "\x01"}',
}


@pytest.mark.parametrize("path", POSTS)
@pytest.mark.parametrize("kind", HOSTILE)
def test_a_body_that_is_no_json(reader: TestClient, path: str, kind: str) -> None:
    answer = reader.post(path, content=HOSTILE[kind].replace(b"%s", MARK), headers=JSON)
    body = problem(answer, 400)
    assert body["detail"].startswith("The body is")
    assert MARK not in answer.content


@pytest.mark.parametrize("path", POSTS)
@pytest.mark.parametrize("content", [b"", b"[]", b"null", b"1", b'"marker-of-the-sender"', b"true", b"-0", b"{}"])
def test_json_of_the_wrong_shape(reader: TestClient, path: str, content: bytes) -> None:
    answer = reader.post(path, content=content, headers=JSON)
    assert paths(answer)
    assert MARK not in answer.content


@pytest.mark.parametrize("content_type", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""])
def test_the_wrong_content_type(reader: TestClient, content_type: str) -> None:
    answer = reader.post(
        f"{API}/evaluate", content=json.dumps(scenario_document()), headers={"content-type": content_type}
    )
    assert 400 <= answer.status_code < 500
    problem(answer, answer.status_code)


@pytest.mark.parametrize("content_type", ["application/json; charset=utf-8", "APPLICATION/JSON"])
def test_json_by_its_other_names(reader: TestClient, content_type: str) -> None:
    content = json.dumps(scenario_document())
    assert reader.post(f"{API}/evaluate", content=content, headers={"content-type": content_type}).status_code == 200


@pytest.mark.parametrize(
    "half",
    [b"\xed\xa0\x80", b"\xed\xbf\xbf", "\\ud800".encode("utf-16-le")],
    ids=["three bytes of a surrogate", "of the other half", "an escape in UTF-16"],
)
@pytest.mark.parametrize("place", ["scenario", "batch"])
def test_half_a_character_in_another_coat(reader: TestClient, half: bytes, place: str) -> None:
    if half.startswith(b"\\"):
        body = SCENARIO.replace(b"@", b"\\ud800").decode().encode("utf-16-le")
        around = ['{"scenarios":['.encode("utf-16-le"), "]}".encode("utf-16-le")]
    else:
        body, around = SCENARIO.replace(b"@", half), [b'{"scenarios":[', b"]}"]
    if place == "batch":
        answer = reader.post(f"{API}/evaluate/batch", content=body.join(around), headers=JSON)
    else:
        answer = reader.post(f"{API}/evaluate", content=body, headers=JSON)
    problem(answer, 400)


def test_a_whole_character_by_two_escapes_is_kept(reader: TestClient) -> None:
    answer = reader.post(f"{API}/evaluate", content=SCENARIO.replace(b"@", b"\\ud83d\\ude00"), headers=JSON)
    assert answer.json()["scenario"]["model"]["config"]["note"] == "😀"


def test_a_large_number_that_is_read_is_answered_in_words(reader: TestClient) -> None:
    posted = scenario_document(workload={"prompt_tokens": 10**4_000})
    answer = reader.post(f"{API}/evaluate", content=json.dumps(posted), headers=JSON)
    assert paths(answer) == ["workload.prompt_tokens"]
    assert len(answer.content) < 500


def test_many_errors_are_cut_and_long_names_too(reader: TestClient) -> None:
    posted = scenario_document() | {f"{'x' * 500}{n}": n for n in range(400)}
    answer = reader.post(f"{API}/evaluate", json=posted)
    found = paths(answer)
    assert len(found) == 50
    assert max(map(len, found)) <= 61
    assert problem(answer, 422)["detail"].startswith("400 fields")


@pytest.mark.parametrize("path", [*POSTS[:1], *POSTS[2:]])
def test_a_body_over_the_limit_by_its_length(reader: TestClient, path: str) -> None:
    answer = reader.post(path, content=b" " * 262_145, headers=JSON)
    problem(answer, 413)


@pytest.mark.parametrize("path", [*POSTS[:1], *POSTS[2:]])
def test_a_body_over_the_limit_in_pieces(reader: TestClient, path: str) -> None:
    def pieces() -> Iterator[bytes]:
        for _ in range(300):
            yield b" " * 1_000

    answer = reader.post(path, content=pieces(), headers=JSON)
    assert "content-length" not in answer.request.headers
    problem(answer, 413)


def test_a_length_that_lies_is_not_believed(shared_app: FastAPI) -> None:
    headers = (HOST, ("content-type", "application/json"), ("content-length", "2"))
    answer = ask(shared_app, "POST", f"{API}/evaluate", headers=headers, pieces=[b" " * 100_000] * 3)
    assert answer.status == 413


@pytest.mark.parametrize("path", ["/save", "/csp-report", "/c/x/edit"])
def test_the_pages_have_the_same_limit(shared_app: FastAPI, path: str) -> None:
    for length in ((), (("content-length", "300000"),)):
        headers = (HOST, ("content-type", "application/x-www-form-urlencoded"), *length)
        answer = ask(shared_app, "POST", path, headers=headers, pieces=[b"a" * 100_000] * 3)
        assert answer.status in (404, 413), path
        if path != "/c/x/edit":
            assert answer.status == 413


def test_a_body_at_the_limit_is_read(reader: TestClient) -> None:
    content = json.dumps(scenario_document()).encode()
    padded = content + b" " * (262_144 - len(content))
    assert reader.post(f"{API}/evaluate", content=padded, headers=JSON).status_code == 200


def test_a_body_over_the_limit_is_no_error_of_the_server(reader: TestClient, caplog: pytest.LogCaptureFixture) -> None:
    reader.post(f"{API}/evaluate", content=b" " * 300_000, headers=JSON)
    assert "unforeseen" not in caplog.text


def test_an_answer_never_carries_a_nan() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        JsonResponse({"value": float("nan")})
    assert JsonResponse({"é": 1.0}).body == '{"é":1.0}'.encode()


@pytest.mark.parametrize(
    "content", [b"", b"no JSON", b"[]", b'{"csp-report": 1}', b'{"csp-report": {"blocked-uri": {"a": [1]}}}', b"\xff"]
)
def test_a_report_of_the_policy_is_always_taken(reader: TestClient, content: bytes) -> None:
    assert reader.post("/csp-report", content=content).status_code == 204
