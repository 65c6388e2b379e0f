"""What is told beside the memory of an engine: how sure it is, and where a plan is closer to the edge than it looks."""

from dataclasses import replace
from typing import Any

import pytest

from app.calc.accelerator import MemoryBasis
from app.calc.deployment import Deployment, Engine
from app.calc.measure import measure
from app.calc.memory.engines.parts import Given, Policy
from app.calc.memory.engines.sglang import SglangPolicy
from app.calc.memory.engines.vllm import VllmPolicy, VllmRelease
from app.calc.notices import memory_notices
from app.calc.verdict import verdict
from tests.calc.memory.engines.laws import GIB, fixed, laws
from tests.factories import deployment, precision, shipped_catalog, workload

CATALOG = shipped_catalog()
EXACT = VllmPolicy("vLLM", VllmRelease(), laws())
ASSUMED = VllmPolicy("vLLM", VllmRelease(), laws(activation=fixed(2, 0.5, 2.0)))
CARD = CATALOG.devices["h100-sxm-80gb"]


def asked(
    policy: Policy, utilization: float = 0.9, *, settings: dict[str, Any] | None = None, **changes: Any
) -> Deployment:
    engine = Engine("tested", utilization, policy, **settings or {})
    return deployment(engine=engine, **{"accelerator": CARD, **changes})


def told(one: Deployment) -> dict[str, str]:
    found = memory_notices(one, measure(one))
    assert len({notice.code for notice in found}) == len(found)
    for notice in found:
        assert notice.message.endswith(".")
        assert notice.message[0].isupper() or notice.message.startswith(one.engine.policy.name)
    return {notice.code: notice.message for notice in found}


def test_an_ideal_engine_says_that_it_is_one() -> None:
    assert set(told(deployment())) == {"ideal_engine"}


def test_what_is_assumed_is_told_with_its_interval() -> None:
    held = measure(asked(ASSUMED)).memory
    low, high = held.kv_pool_tokens_interval
    assert low < held.kv_pool_tokens < high
    assert f"{low:,} to {high:,} tokens" in told(asked(ASSUMED))["assumed_overheads"]
    assert "vLLM" in told(asked(ASSUMED))["assumed_overheads"]


def test_what_was_measured_is_not_assumed() -> None:
    assert told(asked(EXACT)) == {}
    assert told(asked(ASSUMED, settings={"given": Given(activation=2e9)})) == {}
    assert told(asked(ASSUMED, settings={"given": Given(kv_pool=3e10)})) == {}


def test_a_layout_that_is_not_published_is_told() -> None:
    model = CATALOG.architectures["deepseek-v4-flash"]
    assert "layout_not_reproduced" in told(asked(EXACT, architecture=model))
    assert "layout_not_reproduced" not in told(asked(EXACT))
    assert set(told(deployment(architecture=model))) == {"ideal_engine"}


def users_that_need(bytes_of_share: float) -> int:
    """Sequences of 1,500 tokens (94 blocks of 16) whose cache takes so much."""
    return int(bytes_of_share // (94 * 16 * 131_072))


def test_a_plan_that_fits_the_number_on_the_box_but_not_the_card() -> None:
    # 80 "GB" read as GiB less the 79.18 GiB that an engine sees, 0.82 GiB: nine tenths of it are 0.74 GiB.
    beside = 16_060_522_496 + 2.75 * GIB
    fits = users_that_need(0.9 * 79.18 * GIB - beside)
    on_the_box = users_that_need(0.9 * 80 * GIB - beside)
    assert on_the_box - fits == 3 or on_the_box - fits == 4
    for users, is_told in ((fits, False), (fits + 1, True), (on_the_box, True), (on_the_box + 1, False)):
        assert ("fits_label_not_card" in told(asked(EXACT, workload=workload(concurrency=users)))) is is_told
    message = told(asked(EXACT, workload=workload(concurrency=fits + 1)))["fits_label_not_card"]
    assert "80 GB read as GiB" in message
    assert "79.2 GiB" in message


def test_the_number_on_the_box_is_not_told_where_it_is_asked_for_or_the_pool_is_measured() -> None:
    users = users_that_need(0.9 * 79.18 * GIB - 16_060_522_496 - 2.75 * GIB) + 1
    some = workload(concurrency=users)
    assert "fits_label_not_card" in told(asked(EXACT, workload=some))
    marketed = asked(EXACT, workload=some, memory_basis=MemoryBasis.MARKETED)
    assert "fits_label_not_card" not in told(marketed)
    measured = asked(EXACT, workload=some, settings={"given": Given(kv_pool=1e10)})
    assert "fits_label_not_card" not in told(measured)


@pytest.mark.parametrize(("fraction", "is_told"), [(0.9, False), (0.99, True)])
def test_what_is_not_charged_must_find_room_outside(fraction: float, is_told: bool) -> None:
    """SGLang: two GiB of activations and a quarter of graphs in 0.01 × 78.7 GiB; the pool is not made smaller."""
    found = told(asked(SglangPolicy("SGLang", laws()), fraction))
    assert ("uncharged_memory" in found) is is_told
    if is_told:
        assert found["uncharged_memory"].startswith(
            "SGLang does not charge activation and graphs to its share: 2.42 GB"
        )


def test_graphs_beyond_the_share_are_told_of_old_releases() -> None:
    old = VllmPolicy("vLLM", VllmRelease(charges_graphs=False), laws(graphs=fixed(3)))
    assert "uncharged_memory" in told(asked(old, 0.99))
    assert "uncharged_memory" not in told(asked(old, 0.99, settings={"is_eager": True}))
    assert "uncharged_memory" not in told(asked(old, 0.9))


def test_an_engine_that_prints_a_concurrency_below_one_is_told_not_to_start() -> None:
    card = CATALOG.devices["l4"]
    few = workload(concurrency=1)  # a single request of 1,500 tokens: it would fit
    long: dict[str, Any] = {"accelerator": card, "workload": few}
    one = asked(EXACT, settings={"max_model_len": 131_072}, **long)
    held = measure(one).memory
    message = told(one)["will_not_start"]
    assert f"set it to {held.longest_alone:,} or less" in message
    sentence = verdict(one, measure(one)).sentence
    assert sentence.startswith("Fits, but tight: ")
    assert f"vLLM starts only when limited to sequences of {held.longest_alone:,} tokens." in sentence
    for length, is_told in ((held.longest_alone, False), (held.longest_alone + 16, True)):
        assert ("will_not_start" in told(asked(EXACT, settings={"max_model_len": length}, **long))) is is_told
    assert "will_not_start" not in told(asked(SglangPolicy("SGLang", laws()), **long))  # it starts and refuses the long


def test_guessing_is_counted_in_memory_alone() -> None:
    assert "speculation_not_timed" in told(asked(EXACT, settings={"draft_tokens": 3}))
    plain, guessing = (measure(asked(EXACT, settings={"draft_tokens": n})).serving for n in (0, 3))
    assert plain.tpot_s == guessing.tpot_s


def test_what_leaves_no_room_is_not_told_to_fail_later() -> None:
    heavy = replace(asked(SglangPolicy("SGLang", laws()), 0.99), precision=precision())
    small = replace(heavy, accelerator=CATALOG.devices["rtx-4090"], architecture=CATALOG.architectures["llama-3.1-70b"])
    assert "uncharged_memory" not in told(small)
