import dataclasses

import pytest

from app.catalog.catalog import load_catalog
from app.features.benchmarks.overlay import Figure, Laid, NoLoadError, load_of, overlay
from app.features.benchmarks.points import BarePass, BenchPoint, Spread, Tool
from app.scenario.answer import answer
from app.scenario.refusal import ScenarioError
from tests.features.benchmarks.files import bare, points, served

CATALOG = load_catalog()
RUN = BenchPoint(
    tool=Tool.VLLM,
    concurrency=16,
    requests=128,
    requests_per_s=5.0,
    prompt_tokens=1024.0,
    output_tokens=256.0,
    ttft=Spread(0.1, 0.09, 0.2),
    tpot=Spread(0.012, 0.011, 0.02),
)


def laid(point: BenchPoint, **changes: object) -> Laid:
    (found,) = overlay(served(**changes), [point], CATALOG).laid
    return found


def bare_run(**changes: int) -> BenchPoint:
    values = {"prompt_tokens": 0, "generated_tokens": 0, "depth_tokens": 0} | changes
    return BenchPoint(tool=Tool.LLAMA_BENCH, concurrency=1, bare=BarePass(tokens_per_s=50.0, **values))


@pytest.mark.parametrize(
    ("changes", "concurrency", "how"),
    [
        ({}, 16, "kept running"),
        ({"requests": 5}, 5, "no more were sent"),
        ({"concurrency": None, "mean_concurrency": 7.6}, 8, "on average, as the tool counted"),
        ({"request_rate_per_s": 3.0, "mean_concurrency": 4.2}, 4, "on average, as the tool counted"),
        ({"concurrency": None, "latency": Spread(2.0)}, 10, "by Little’s law: 5 requests/s × 2 s each"),
        # 5 requests/s × (0.1 + 255 × 0.012) s = 15.8
        ({"concurrency": None}, 16, "by Little’s law: 5 requests/s × 3.16 s each"),
        ({"concurrency": None, "latency": Spread(0.01)}, 1, "by Little’s law: 5 requests/s × 0.01 s each"),
    ],
)
def test_the_load_of_a_run_is_what_ran_at_a_time(changes: dict[str, object], concurrency: int, how: str) -> None:
    load = load_of(dataclasses.replace(RUN, **changes))  # type: ignore[arg-type]
    assert (load.concurrency, load.how) == (concurrency, how)
    assert (load.prompt_tokens, load.output_tokens) == (1024, 256)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"unusable": "no request was completed"}, "no request was completed"),
        ({"prompt_tokens": None}, "how long prompts and answers were"),
        ({"concurrency": None, "requests_per_s": None}, "how many requests ran at a time"),
        ({"concurrency": None, "tpot": Spread()}, "how many requests ran at a time"),
        ({"prompt_tokens": 1e11}, "longer than 10"),
    ],
)
def test_a_run_that_tells_too_little_says_what_is_missing(changes: dict[str, object], reason: str) -> None:
    with pytest.raises(NoLoadError, match=reason):
        load_of(dataclasses.replace(RUN, **changes))  # type: ignore[arg-type]


def test_the_prediction_is_that_of_the_workbench() -> None:
    found = laid(RUN)
    served_there = answer(found.scenario, CATALOG).evaluation.measures.serving
    ttft, tpot = found.of(Figure.TTFT), found.of(Figure.TPOT)
    assert ttft is not None
    assert tpot is not None
    assert (ttft.measured, ttft.predicted) == (0.09, served_there.ttft_s)
    assert (tpot.measured, tpot.predicted) == (0.011, served_there.tpot_s)
    assert tpot.ratio == pytest.approx(0.011 / (served_there.tpot_s.mid or 0))
    assert tpot.speed == pytest.approx(1 / (tpot.ratio or 0))


def test_what_was_chosen_stays_and_only_the_load_is_that_of_the_run() -> None:
    base = served(engine={"id": "sglang"}, workload={"prefix_hit_rate": 0.5, "slo_ttft_s": 1.0, "concurrency": 3})
    (found,) = overlay(base, [RUN], CATALOG).laid
    assert found.scenario.engine == base.engine
    assert found.scenario.workload.prefix_hit_rate == 0.5
    assert found.scenario.workload.slo_ttft_s == 1.0
    assert (found.scenario.workload.concurrency, found.scenario.workload.prompt_tokens) == (16, 1024)


def test_an_answer_of_one_token_has_no_time_between_tokens() -> None:
    assert laid(dataclasses.replace(RUN, output_tokens=1.0)).of(Figure.TPOT) is None


def test_inside_the_interval_or_not_or_faster_than_can_be() -> None:
    usual = laid(RUN).of(Figure.TPOT)
    assert usual is not None
    assert usual.predicted.high is not None
    slow = laid(dataclasses.replace(RUN, tpot=Spread(2 * usual.predicted.high))).of(Figure.TPOT)
    fast = laid(dataclasses.replace(RUN, tpot=Spread(usual.predicted.ceiling / 2))).of(Figure.TPOT)
    assert slow is not None
    assert fast is not None
    assert (usual.is_inside, slow.is_inside, fast.is_inside) == (True, False, False)
    assert (usual.beats_ceiling, slow.beats_ceiling, fast.beats_ceiling) == (False, False, True)


def test_a_rate_beats_its_ceiling_upwards() -> None:
    ceiling = answer(laid(RUN).scenario, CATALOG).evaluation.measures.serving.output_tokens_per_s.ceiling
    over = dataclasses.replace(RUN, output_tokens_per_s=1.01 * ceiling)
    at = dataclasses.replace(RUN, output_tokens_per_s=ceiling)
    found = overlay(served(), [over, at], CATALOG)
    assert found.suspicious == 1


@pytest.mark.parametrize(
    ("point", "reason"),
    [
        (dataclasses.replace(RUN, prompt_tokens=200_000.0), "200,256 tokens long"),
        (dataclasses.replace(RUN, ttft=Spread(), tpot=Spread(), requests_per_s=None), "no time and no rate"),
        (dataclasses.replace(RUN, unusable="no request was completed"), "no request was completed"),
    ],
)
def test_a_run_that_cannot_be_asked_is_left_out_by_name(point: BenchPoint, reason: str) -> None:
    found = overlay(served(), [RUN, point], CATALOG)
    assert [(out.number, reason in out.reason) for out in found.left_out] == [(2, True)]
    assert [one.number for one in found.laid] == [1]


def test_requests_that_find_no_room_are_left_out() -> None:
    found = overlay(served(model={"id": "llama-3.1-405b"}), [RUN], CATALOG)
    assert "finds room" in found.left_out[0].reason


def test_a_scenario_that_names_nothing_known_is_refused_whole() -> None:
    with pytest.raises(ScenarioError):
        overlay(served(model={"id": "no-such-model"}), [RUN], CATALOG)


def test_bare_passes_are_predicted_as_prefill_and_steps() -> None:
    runs = [
        bare_run(prompt_tokens=512),
        bare_run(generated_tokens=128),
        bare_run(prompt_tokens=512, generated_tokens=128),
    ]
    prompt, steps, both = (one.figures[0] for one in overlay(bare(), runs, CATALOG).laid)
    assert [one.figure for one in (prompt, steps, both)] == [Figure.PROMPT, Figure.GENERATED, Figure.BOTH]
    assert prompt.predicted.mid is not None
    assert steps.predicted.mid is not None
    assert both.predicted.mid is not None
    seconds = 512 / prompt.predicted.mid + 128 / steps.predicted.mid
    assert both.predicted.mid == pytest.approx(640 / seconds, rel=0.02)  # its steps stand behind the prompt
    for one in (prompt, steps, both):
        assert (one.predicted.low or 0) <= one.predicted.mid <= (one.predicted.high or 0) <= one.predicted.ceiling  # type: ignore[operator]


def test_depth_is_context_that_is_not_computed_again() -> None:
    shallow, deep = overlay(
        bare(), [bare_run(prompt_tokens=512), bare_run(prompt_tokens=512, depth_tokens=8192)], CATALOG
    ).laid
    assert deep.scenario.workload.prompt_tokens == 8704
    assert deep.scenario.workload.prefix_hit_rate == pytest.approx(8192 / 8704)
    first, second = shallow.figures[0].predicted.mid, deep.figures[0].predicted.mid
    assert first is not None
    assert second is not None
    assert first / 4 < second < first


@pytest.mark.parametrize("name", ["vllm_serve_appended.jsonl", "sglang.jsonl", "guidellm_0.5.csv", "aiperf.csv"])
def test_files_of_servers_are_laid_over_whole(name: str) -> None:
    found = overlay(served(), points(name), CATALOG)
    assert not found.left_out
    assert not found.suspicious
    assert all(one.of(Figure.TTFT) and one.of(Figure.TPOT) and one.of(Figure.OUTPUT) for one in found.laid)


def test_a_run_that_comes_twice_counts_once() -> None:
    found = overlay(served(), [RUN, dataclasses.replace(RUN, concurrency=8), RUN], CATALOG)
    assert [one.number for one in found.laid] == [1, 2]
    assert [(out.number, out.reason) for out in found.left_out] == [(3, "it is run 1 again, to the last digit.")]


@pytest.mark.parametrize(("layers", "usable"), [(None, True), (99, True), (32, True), (31, False), (1, False)])
def test_layers_that_were_kept_on_the_host_are_counted(layers: int | None, usable: bool) -> None:
    point = points("llama_bench.json")[0]
    assert point.bare is not None
    partly = dataclasses.replace(point, bare=dataclasses.replace(point.bare, gpu_layers=layers))
    assert bool(overlay(bare(), [partly], CATALOG).laid) is usable
