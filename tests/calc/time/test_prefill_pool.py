"""A prefill pool: what its links carry and what it gives, by hand."""

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.calc.model.split import Split
from app.calc.time.prefill_pool import PoolRates, PrefillPool, pool_rates, transfer_s, wait_for_link_s
from tests.calc.strategies import repeatable
from tests.factories import h100_sxm

SECONDS = st.floats(0, 1e6)


def pool(link: float = 50e9, instances: int = 2, **split: int) -> PrefillPool:
    """Instances on H100s."""
    return PrefillPool(h100_sxm(), Split(**split), instances, "InfiniBand", link)


def test_4096_tokens_of_llama_3_1_70b_take_3_36_ms_from_eight_gpus() -> None:
    cache = 4096 * 327_680
    assert cache == pytest.approx(1.342e9, rel=1e-3)
    assert transfer_s(cache, 50e9, 8) == pytest.approx(3.355e-3, rel=1e-3)


@pytest.mark.parametrize(
    ("transfer_ms", "prefill_ms", "wait_ms"), [(8, 40, 0.25), (40, 8, 32.25), (0, 40, 0), (8, 0, 8), (40, 40, 1.25)]
)
def test_what_is_still_on_its_way_when_a_prefill_ends(transfer_ms: float, prefill_ms: float, wait_ms: float) -> None:
    found = wait_for_link_s(transfer_ms / 1e3, prefill_ms / 1e3, 32, overlaps=True)
    assert found == pytest.approx(wait_ms / 1e3)
    assert wait_for_link_s(transfer_ms / 1e3, prefill_ms / 1e3, 32, overlaps=False) == transfer_ms / 1e3


@repeatable
@given(SECONDS, SECONDS, st.integers(1, 200))
def test_sending_layer_by_layer_never_waits_longer_and_never_beats_the_last_layer(
    transfer: float, prefill: float, layers: int
) -> None:
    wait = wait_for_link_s(transfer, prefill, layers, overlaps=True)
    assert transfer / layers <= wait <= transfer * (1 + 1e-12)
    # Not before all of it has gone: the first layer leaves when it is done.
    assert prefill + wait >= (prefill / layers + transfer) * (1 - 1e-12)


def test_a_cache_of_one_layer_has_nothing_to_hide_behind() -> None:
    assert wait_for_link_s(0.008, 0.04, 1, overlaps=True) == 0.008


def test_the_rates_of_two_instances_by_hand() -> None:
    found = pool_rates(pool(), 0.04, 1e9)
    assert found == PoolRates(50, 100)
    assert found.per_s == 50
    wide = pool_rates(pool(tensor=8), 0.04, 1.342e9)
    assert wide.prefill_per_s == 50
    assert wide.link_per_s == pytest.approx(596, rel=1e-3)
    assert pool_rates(pool(link=1e9), 0.04, 1e9).per_s == 2  # the link is what limits
    assert pool_rates(pool(data=4), 0.04, 1e9) == PoolRates(200, 400)


def test_a_model_without_a_cache_sends_nothing() -> None:
    assert pool_rates(pool(), 0.04, 0).link_per_s == inf


def test_gpus_and_senders_of_a_pool() -> None:
    found = pool(tensor=4, pipeline=2, data=2)
    assert (found.gpus, found.senders) == (32, 4)
