"""A deployment whose operator published what came out: its lengths by hand, and the prediction beside the figures."""

import pytest

from app.features.validation.production import production, production_scenario, published
from tests.calc.formulas import computed
from tests.factories import shipped_catalog


def test_lengths_and_requests_follow_from_what_was_published() -> None:
    told = published()
    assert told.hit_rate == pytest.approx(342 / 608)
    # 3.619 prompt tokens for each of n: 3.619 n + n / 2 = 4,989.
    assert told.answer_tokens == 1211
    assert told.prompt_tokens == 4384
    assert told.prompt_tokens / told.answer_tokens == pytest.approx(608 / 168, rel=1e-3)
    assert told.prompt_tokens + told.answer_tokens / 2 == pytest.approx(4989, abs=1)
    assert told.requests_per_gpu == 88  # 14,800 / 8 / 21
    assert told.concurrency == 144 * 88
    assert told.prefill_units == 4  # 14,800 × 18 nodes × 3.619 ÷ (73,700 × 4 nodes) = 3.27
    assert told.source


def test_the_scenario_is_what_was_published() -> None:
    scenario = production_scenario()
    assert scenario.hardware.id == "h800-sxm-80gb"
    assert scenario.parallelism.data == scenario.parallelism.expert == 144
    apart = scenario.techniques.disaggregation
    assert apart is not None
    assert (apart.data, apart.expert, apart.instances) == (32, 32, 4)


def test_the_prediction_is_near_what_was_published_and_below_its_ceiling() -> None:
    found = production(shipped_catalog())
    prefill, decode = found.sides
    assert (prefill.published, decode.published) == (73_700, 14_800)
    # Within the spread of cross-version measurements; the published prefill has quiet hours in it.
    assert 0.85 < decode.ratio < 1.15
    assert 0.85 < prefill.ratio < 1.25
    for side in found.sides:
        assert side.expected < side.ceiling
        terms = {term.symbol: term.value for term in side.explanation.terms}
        assert computed(side.explanation.formula, terms) == pytest.approx(side.expected)
    pace = found.answer.evaluation.measures.serving.output_tokens_per_s_per_user.best_known
    assert 20 <= pace <= 22


def test_the_pool_keeps_up_with_what_decodes() -> None:
    expected = production(shipped_catalog()).answer.evaluation.measures.expected
    assert expected is not None
    assert expected.pool is not None
    assert published().concurrency / expected.serving.residency_s < expected.pool.per_s
