"""Quantiles from buckets, against the observations themselves."""

import math
from bisect import bisect_left

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.machine.probes.servers.tally import Observed, Quantile, merged, observed_between, quantile

INF = math.inf
BOUNDS = (0.01, 0.1, 0.25, 1.0, 4.0)
_SECONDS = st.floats(0.001, 8.0)


def of(observations: list[float], bounds: tuple[float, ...] = BOUNDS) -> Observed:
    """What a histogram with these bounds would say of the observations."""
    buckets = {bound: float(sum(each <= bound for each in observations)) for bound in (*bounds, INF)}
    return Observed(buckets, float(len(observations)), math.fsum(observations))


def test_within_a_bucket_observations_lie_evenly() -> None:
    observed = Observed({0.1: 2, 0.2: 6, 0.4: 10, INF: 10}, 10, 2.0)
    assert quantile(observed, 0.1) == Quantile(pytest.approx(0.05))  # type: ignore[arg-type]
    assert quantile(observed, 0.2) == Quantile(0.1)
    assert quantile(observed, 0.5) == Quantile(pytest.approx(0.175))  # type: ignore[arg-type]
    assert quantile(observed, 1) == Quantile(0.4)
    assert observed.mean == 0.2


def test_beyond_the_last_bound_that_bound_is_answered() -> None:
    observed = Observed({0.1: 5, INF: 10}, 10, 50.0)
    assert quantile(observed, 0.99) == Quantile(0.1, beyond=True)
    assert quantile(observed, 0.5) == Quantile(0.1)


@pytest.mark.parametrize(
    "buckets",
    [{}, {INF: 5.0}, {0.1: 5.0, 0.2: 5.0}, {0.1: 0.0, INF: 0.0}],
    ids=["no buckets", "no finite bound", "no last bucket", "no observations"],
)
def test_without_bounds_or_observations_there_is_no_quantile(buckets: dict[float, float]) -> None:
    assert quantile(Observed(buckets, 5, 1.0), 0.5) is None


def test_a_first_bound_of_zero_or_less_is_its_own_quantile() -> None:
    assert quantile(Observed({0.0: 8, 1.0: 10, INF: 10}, 10, 1.0), 0.5) == Quantile(0.0)
    assert quantile(Observed({-1.0: 8, 1.0: 10, INF: 10}, 10, 1.0), 0.5) == Quantile(-1.0)


def test_wider_buckets_with_fewer_observations_are_levelled_up() -> None:
    levelled = quantile(Observed({0.1: 5, 0.2: 4, 0.4: 10, INF: 9}, 10, 1.0), 0.8)
    assert levelled == quantile(Observed({0.1: 5, 0.2: 5, 0.4: 10, INF: 10}, 10, 1.0), 0.8)


def test_a_count_that_falls_means_that_the_server_began_anew() -> None:
    before, after = of([0.05, 0.05]), of([0.05, 0.5])
    assert observed_between(before, after) is None
    assert observed_between(of([0.5, 0.5]), of([0.5])) is None
    assert observed_between(Observed({}, 5, 1.0), Observed({}, 4, 2.0)) is None  # A summary has no buckets.
    # A sum may fall: observations below zero do that, and are no restart.
    assert observed_between(Observed({}, 1, 5.0), Observed({}, 2, 4.0)) == Observed({}, 1, -1.0)


def test_engines_are_merged_where_their_bounds_agree() -> None:
    coarse, fine = of([0.05, 0.5], (0.1, 1.0)), of([0.05, 0.2, 2.0], (0.1, 0.25, 1.0))
    assert merged([coarse, fine]) == Observed({0.1: 2, 1.0: 4, INF: 5}, 5, pytest.approx(2.8))  # type: ignore[arg-type]
    strangers = merged([of([0.05], (0.1,)), of([0.05], (0.2,))])
    assert quantile(strangers, 0.5) is None
    assert strangers.mean == 0.05


def test_an_engine_at_rest_does_not_coarsen_the_others() -> None:
    assert merged([of([], (7.0,)), of([0.2])]) == of([0.2])
    assert merged([]) == Observed({}, 0, 0)


@given(st.lists(_SECONDS, min_size=1, max_size=60), st.lists(_SECONDS, max_size=30))
def test_the_quantile_lies_in_the_bucket_of_the_observation_it_stands_for(
    since: list[float], earlier: list[float]
) -> None:
    grown = observed_between(of(earlier), of(earlier + since))
    assert grown is not None
    assert grown.count == len(since)
    answers = []
    for share in (0.5, 0.9, 0.99):
        stands_for = sorted(since)[math.ceil(share * len(since)) - 1]
        place = bisect_left(BOUNDS, stands_for)
        found = quantile(grown, share)
        assert found is not None
        assert found.beyond == (place == len(BOUNDS))
        lower = (0.0, *BOUNDS)[place]
        assert lower <= found.value <= (BOUNDS[place] if place < len(BOUNDS) else lower)
        answers.append(found.value)
    assert answers == sorted(answers)


@given(st.lists(st.lists(_SECONDS, max_size=20), min_size=1, max_size=4))
def test_merged_engines_are_one_histogram_of_all_observations(engines: list[list[float]]) -> None:
    together = merged([of(each) for each in engines])
    whole = of([each for engine in engines for each in engine])
    assert together.buckets == whole.buckets
    assert together.count == whole.count
    assert together.sum == pytest.approx(whole.sum)
