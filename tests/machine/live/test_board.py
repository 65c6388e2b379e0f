"""One round as a whole: panels, trails, what is shared; and nothing that names a host or a card in the world."""

import json
from typing import Any

import pytest

from app.calc.dtypes import Dtype
from app.machine.live.board import board_of, shareable
from app.machine.live.dots import GPM, trails
from app.machine.live.predicted import COUNTED, DRAM
from app.machine.probes.reading import Absence
from app.machine.probes.snapshot import ProbeSnapshot
from app.scenario.scenario import Scenario
from tests.factories import shipped_catalog
from tests.machine.live.seen import LLAMA, TAKEN_AT, card, cards, host, served, server

CATALOG = shipped_catalog()
H100 = CATALOG.devices["h100-sxm-80gb"]
BUSY: dict[str, Any] = {"dram_activity_percent": 60.0, "tensor_activity_percent": 20.0}
ASKED = Scenario.model_validate({"model": {"id": "qwen3-14b"}, "hardware": {"id": "h200-sxm"}})


def test_the_machine_itself_is_predicted_where_nothing_is_asked() -> None:
    round_ = (cards(card()), host(), served(server(**LLAMA)))
    board = board_of(round_, [round_], None, CATALOG)
    assert board.is_probed
    assert board.scenario is not None
    assert board.scenario.model.id == "llama-3.1-8b"
    panel = board.panels[0]
    assert panel.loaded is not None
    assert panel.loaded.scenario.workload.concurrency == 12
    assert panel.answered is not None
    assert board.accelerator is panel.answered.evaluation.deployment.accelerator
    assert board.hold is not None


def test_what_is_asked_wins() -> None:
    round_ = (cards(card()), served(server(**LLAMA)))
    board = board_of(round_, [round_], ASKED, CATALOG)
    assert not board.is_probed
    assert board.panels[0].loaded is not None
    assert board.panels[0].loaded.scenario.model.id == "qwen3-14b"


def test_without_a_model_the_server_stands_alone_and_it_is_said() -> None:
    round_ = (served(server(**LLAMA)),)
    board = board_of(round_, [], None, CATALOG)
    assert board.panels[0].obstacle is not None
    assert "which card it runs on" in board.panels[0].obstacle
    assert all(figure.predicted is None for figure in board.panels[0].figures)
    assert board.accelerator is None


def test_an_idle_server_is_not_put_beside_a_prediction() -> None:
    round_ = (cards(card()), served(server(**LLAMA | {"running": 0.0})))
    board = board_of(round_, [round_], None, CATALOG)
    assert all(figure.predicted is None for figure in board.panels[0].figures)
    assert board.hold is not None
    assert board.hold.code == "idle"


def test_nothing_at_all_is_an_empty_board() -> None:
    absent = ProbeSnapshot.absent("nvidia", "NVIDIA cards", "cards", Absence.NO_DRIVER, lambda: TAKEN_AT)
    board = board_of((absent,), [], None, CATALOG)
    assert (board.scenario, board.hold, board.panels, board.trails) == (None, None, (), ())
    assert board.machine.missing == ("model", "hardware")


def uncounted(_: ProbeSnapshot) -> None:
    """Nothing is known of any server."""


def test_a_card_stands_where_its_counters_say() -> None:
    """60 % of 3.35 TB/s and 20 % of 989 TFLOP/s: 98.4 FLOP a byte."""
    (trail,) = trails([(cards(card(**BUSY)),)], H100, Dtype.BF16, uncounted)
    (dot,) = trail.dots
    assert trail.read_from == GPM
    assert dot.bytes_per_s == pytest.approx(0.6 * 3.35e12)
    assert dot.flops_per_s == pytest.approx(0.2 * H100.peak(Dtype.BF16))
    assert dot.intensity_flops_per_byte == pytest.approx(98.4, rel=0.01)


def test_the_tail_is_a_minute_long_oldest_first_and_each_moment_once() -> None:
    rounds = [(cards(card(**BUSY), age_s=age),) for age in (75, 60, 30, 30, 1, 0)]
    (trail,) = trails(rounds, H100, Dtype.BF16, uncounted)
    assert [dot.age_s for dot in trail.dots] == [60, 30, 1, 0]


def test_of_very_many_rounds_evenly_fewer_are_drawn_and_the_newest_always() -> None:
    rounds = [(cards(card(**BUSY), age_s=age / 10),) for age in range(400, -1, -1)]
    (trail,) = trails(rounds, H100, Dtype.BF16, uncounted)
    assert len(trail.dots) == 81
    assert (trail.dots[0].age_s, trail.dots[-1].age_s) == (40.0, 0.0)


def test_a_missed_poll_adds_no_dot() -> None:
    good = cards(card(**BUSY), age_s=2)
    (trail,) = trails([(good,), (good.missed(Absence.TIMEOUT, 1),)], H100, Dtype.BF16, uncounted)
    assert len(trail.dots) == 1


@pytest.mark.parametrize("missing", ["dram_activity_percent", "tensor_activity_percent"])
def test_half_a_position_is_none(missing: str) -> None:
    assert not trails([(cards(card(**BUSY | {missing: Absence.NOT_SUPPORTED})),)], H100, Dtype.BF16, uncounted)
    assert not trails([(cards(card(**BUSY | {missing: 0.0})),)], H100, Dtype.BF16, uncounted)


def test_what_is_shared_names_no_host_and_no_card_in_the_world() -> None:
    round_ = (cards(card(), card(1)), host(), served(server(**LLAMA)), served(server(**LLAMA), 2, "10.0.0.7"))
    shared = shareable(round_)
    board = board_of(shared, [], None, CATALOG)
    text = json.dumps([board.document(), [snapshot.document() for snapshot in shared]]) + repr(shared)
    for canary in ("gpu-host-7", "10.0.0.7", "GPU-canary", "This machine"):
        assert canary not in text
    assert [panel.snapshot.label for panel in board.panels] == ["Server 1", "Server 2"]
    assert "NVIDIA H100 80GB HBM3" in text


def test_each_of_several_servers_stands_beside_a_prediction_of_its_own() -> None:
    other = server("sglang", **LLAMA | {"model_name": "Qwen/Qwen3-14B", "running": 48.0})
    round_ = (cards(card()), served(server(**LLAMA)), served(other, 2))
    board = board_of(round_, [], None, CATALOG)
    models = [None if panel.loaded is None else panel.loaded.scenario.model.id for panel in board.panels]
    engines = [None if panel.loaded is None else panel.loaded.scenario.engine.id for panel in board.panels]
    assert (models, engines) == (["llama-3.1-8b", "qwen3-14b"], ["vllm", "sglang"])
    for panel in board.panels:  # and its dot is where its tile says
        trail = next(each for each in board.trails if each.source == panel.snapshot.source)
        mbu = next(figure for figure in panel.figures if figure.id == "mbu").measured.value
        assert trail.dots[-1].bytes_per_s == pytest.approx((mbu or 0) * H100.bandwidth_bytes_per_s)


def test_a_dot_of_the_tail_is_counted_at_the_load_of_then() -> None:
    """One request at 100 tokens/s moves all weights 100 times a second, whatever runs a minute later."""
    before = served(server(**LLAMA | {"running": 1.0, "output_tokens_per_s": 100.0}), age_s=30)
    now = served(server(**LLAMA | {"running": 64.0, "output_tokens_per_s": 4000.0}))
    (trail,) = board_of((cards(card()), now), [(before,)], None, CATALOG).trails
    (alone,) = board_of((cards(card()), before), [], None, CATALOG).trails
    assert trail.dots[0].bytes_per_s == pytest.approx(alone.dots[0].bytes_per_s, rel=0.05)
    assert trail.dots[0].bytes_per_s > 1.5e12


def test_a_trail_that_does_not_reach_the_present_is_over() -> None:
    good, other = served(server(**LLAMA), age_s=8), cards(card())
    for newest, is_over in (
        (good, False),
        (good.missed(Absence.UNREACHABLE, 1), False),
        (good.missed(Absence.UNREACHABLE, 2), True),
        (served(server(**LLAMA | {"running": 0.0, "output_tokens_per_s": 0.0})), True),
    ):
        (trail,) = board_of((other, newest), [(other, good)], ASKED, CATALOG).trails
        assert trail.is_over is is_over


def test_stale_readings_do_not_tell_what_is_in_the_way_now() -> None:
    stale = served(server(**LLAMA), age_s=20).missed(Absence.UNREACHABLE, 9)
    board = board_of((stale,), [], ASKED, CATALOG)
    assert (board.panels[0].hold, board.hold) == (None, None)
    assert board.panels[0].figures


def test_another_model_than_the_one_asked_for_is_told() -> None:
    (panel,) = board_of((served(server(**LLAMA)),), [], ASKED, CATALOG).panels
    assert panel.doubt == "It serves Llama-3.1-8B, and the prediction is of Qwen3-14B: they are not alike."
    for name in ("qwen/qwen3-14b", "a-name-of-ours"):
        (panel,) = board_of((served(server(**LLAMA | {"model_name": name})),), [], ASKED, CATALOG).panels
        assert panel.doubt is None


def test_more_running_than_finds_room_by_the_prediction_is_told() -> None:
    asked = Scenario.model_validate({"model": {"id": "llama-3.1-8b"}, "hardware": {"id": "h100-sxm-80gb"}})
    (panel,) = board_of((served(server(**LLAMA | {"running": 5000.0})),), [], asked, CATALOG).panels
    assert panel.doubt is not None
    assert panel.doubt.startswith("Does not fit")


def test_what_shared_cards_count_is_nobodys_own() -> None:
    two = (cards(card(**BUSY)), served(server(**LLAMA)), served(server(**LLAMA), 2))
    for round_, read_from in ((two[:2], DRAM), (two, COUNTED)):
        for panel in board_of(round_, [], None, CATALOG).panels:
            assert next(each for each in panel.figures if each.id == "mbu").measured.read_from == read_from
    held = cards(card(**BUSY, throttle_reasons=("power cap",)))
    assert {panel.hold and panel.hold.code for panel in board_of((held, *two[1:]), [], None, CATALOG).panels} == {
        "clocks"
    }
