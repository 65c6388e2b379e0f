"""Techniques of a scenario: what each becomes, and every refusal at its own path, whatever is sent."""

import json
import math
from dataclasses import replace
from typing import Any

import pytest
from pydantic import ValidationError

from app.calc.model.attention_variants import AttentionVariant, own_variant
from app.calc.model.split import Split
from app.calc.time.break_even import eagle_head, mtp_drafter
from app.calc.time.lengths import Shape
from app.calc.time.prefill_pool import PrefillPool
from app.calc.time.speculation import Method
from app.scenario.answer import Answer, answer
from app.scenario.refusal import ScenarioError
from app.scenario.resolve import Resolved
from app.scenario.scenario import Scenario
from tests.factories import custom_card, scenario, scenario_document, shipped_catalog
from tests.scenario.test_resolve import refusals, resolved

H100 = {"id": "h100-sxm-80gb"}
OWN_LAYERS = {"id": "deepseek-v3", "mtp": True}
EIGHT = {"hardware": {"id": "h200-sxm"}, "parallelism": {"tensor": 8}}


def guessing(model: Any = "llama-3.1-8b", others: dict[str, Any] | None = None, **speculative: Any) -> Resolved:
    """Three guesses at 2.8 tokens a step, unless said otherwise."""
    asked = {"draft_tokens": 3, "acceptance_length": 2.8} | speculative
    return resolved(model=model, techniques={"speculative": asked}, **(others or {}))


def pooled(model: str = "llama-3.1-8b", others: dict[str, Any] | None = None, **pool: Any) -> dict[str, Any]:
    """Sections of a scenario with a prefill pool."""
    return {"model": model, "techniques": {"disaggregation": {"hardware": H100} | pool}, **(others or {})}


def test_without_techniques_a_deployment_has_none() -> None:
    found = resolved().deployment
    assert (found.speculation, found.prefill_pool, found.draft) == (None, None, None)
    engine = found.engine
    assert (engine.chunks_prefill, engine.is_static, engine.reserved_tokens, engine.shared_tokens) == (
        True,
        False,
        None,
        0,
    )
    assert (found.workload.answer_shape, found.workload.longest_answer) == (Shape.FIXED, None)
    assert (found.positions, found.tokens_per_step, found.prompt_side) == (1, 1.0, found)


def test_every_technique_arrives() -> None:
    found = resolved(
        workload={
            "prompt_tokens": 900,
            "output_tokens": 300,
            "answer_shape": "exponential",
            "longest_answer": 1200,
            "shared_prefix_tokens": 640,
        },
        techniques={"chunked_prefill": False, "static_batching": True, "attention": "mqa"},
    ).deployment
    assert (found.workload.answer_shape, found.workload.longest_answer) == (Shape.EXPONENTIAL, 1200)
    assert (found.engine.chunks_prefill, found.engine.is_static, found.engine.shared_tokens) == (False, True, 640)
    assert own_variant(found.architecture) is AttentionVariant.MQA
    assert resolved(techniques={"reserved_tokens": 4096}).deployment.engine.reserved_tokens == 4096


def test_who_guesses_follows_from_the_rest() -> None:
    catalog = shipped_catalog()
    ngram, eagle = guessing().deployment, guessing(method="eagle").deployment
    assert ngram.speculation is not None
    assert (ngram.speculation.method, ngram.speculation.drafter, ngram.draft) == (Method.NGRAM, None, None)
    head = eagle_head(catalog.architectures["llama-3.1-8b"])
    assert eagle.speculation is not None
    assert (eagle.speculation.method, eagle.speculation.drafter, eagle.draft) == (Method.EAGLE, head, head)
    drafted = guessing(draft={"id": "llama-3.2-1b"}).deployment
    assert drafted.speculation is not None
    assert drafted.draft is not None
    assert drafted.speculation.method is Method.DRAFT_MODEL
    assert drafted.speculation.drafter == drafted.draft
    assert drafted.draft.architecture == catalog.architectures["llama-3.2-1b"]
    own = guessing(OWN_LAYERS, EIGHT).deployment
    assert own.speculation is not None
    assert (own.speculation.method, own.draft) == (Method.MTP, None)
    assert own.speculation.drafter == mtp_drafter(own.architecture, own.precision.weights)


def test_an_acceptance_is_a_rate_or_a_length_and_without_one_no_time_is_told() -> None:
    by_rate = guessing(acceptance_length=None, acceptance_rate=0.8).deployment
    assert by_rate.tokens_per_step == pytest.approx(1 + 0.8 + 0.64 + 0.512)
    assert guessing().deployment.tokens_per_step == 2.8
    unknown = guessing(acceptance_length=None).deployment
    assert (unknown.speculation, unknown.engine.draft_tokens) == (None, 3)


def test_a_head_that_does_not_divide_among_the_gpus_is_no_reason_to_refuse() -> None:
    """No one chooses a head's heads: it stands whole on each GPU. A draft model can be another one."""
    sixteen = {"hardware": {"id": "h200-sxm"}, "parallelism": {"tensor": 16}}
    assert guessing("deepseek-v3", sixteen, method="eagle").deployment.draft is not None
    refused = refusals(model="llama-3.1-70b", **_with_draft({"id": "qwen2.5-0.5b"}), **EIGHT)  # 14 heads
    assert list(refused) == ["techniques.speculative.draft"]


def _with_draft(draft: dict[str, Any]) -> dict[str, Any]:
    return {"techniques": {"speculative": {"draft_tokens": 3, "draft": draft}}}


def test_a_pool_as_it_is_named_or_described() -> None:
    catalog = shipped_catalog()
    found = resolved(**pooled(instances=2, tensor=4, pipeline=2, link="ib-xdr", overlap=False)).deployment
    card = catalog.devices["h100-sxm-80gb"]
    link = catalog.links["ib-xdr"]
    assert found.prefill_pool == PrefillPool(card, Split(4, 2), 2, link.name, 100e9, overlaps=False)
    assert (found.decode_gpus, found.gpus) == (1, 17)
    assert found.prompt_side == replace(found, accelerator=card, split=Split(4, 2), replicas=2, prefill_pool=None)
    own = resolved(**pooled(link="card")).deployment.prefill_pool
    assert own is not None
    assert own.link_bytes_per_s == card.link_bytes_per_s_one_way
    measured = resolved(**pooled(link_gb_per_s=12.5)).deployment.prefill_pool
    assert measured is not None
    assert (measured.link_name, measured.link_bytes_per_s) == (catalog.links["ib-ndr"].name, 12.5e9)
    described = resolved(**pooled(hardware={"custom": custom_card(name="Mine")}, link_gb_per_s=1, link="card"))
    pool = described.deployment.prefill_pool
    assert pool is not None
    assert (pool.accelerator.name, pool.link_bytes_per_s) == ("Mine", 1e9)


NO_ATTENTION = {"config": {"model_type": "mamba", "hidden_size": 256, "num_hidden_layers": 4, "vocab_size": 1000}}


@pytest.mark.parametrize(
    ("sections", "path", "why"),
    [
        (
            {"techniques": {"speculative": {"draft_tokens": 2, "method": "mtp"}}},
            "techniques.speculative.method",
            "model.mtp",
        ),
        (
            {"techniques": {"speculative": {"draft_tokens": 2, "method": "draft_model"}}},
            "techniques.speculative.draft",
            "Name the draft model",
        ),
        (
            {"model": OWN_LAYERS, "techniques": {"speculative": {"draft_tokens": 2, "method": "eagle"}}, **EIGHT},
            "techniques.speculative.method",
            "leave one out",
        ),
        (
            {"model": OWN_LAYERS, "techniques": {"speculative": {"draft_tokens": 2, "method": "ngram"}}, **EIGHT},
            "techniques.speculative.method",
            "leave one out",
        ),
        (
            {"model": OWN_LAYERS, **_with_draft({"id": "qwen3-0.6b"}), **EIGHT},
            "techniques.speculative.draft",
            "guess already",
        ),
        (pooled(link="ib-fdr"), "techniques.disaggregation.link", "ib-fdr"),
        (pooled(link="nvlink"), "techniques.disaggregation.link", "nvlink"),
        (
            pooled(link="card", hardware={"custom": custom_card()}),
            "techniques.disaggregation.link",
            "No link between cards is known",
        ),
        (pooled(hardware={"id": "h100"}), "techniques.disaggregation.hardware.id", "h100"),
        (pooled(tensor=3), "techniques.disaggregation.tensor", "divide"),
        (pooled(pipeline=33), "techniques.disaggregation.tensor", "pipeline stages"),
        (pooled(expert=2, tensor=2), "techniques.disaggregation.expert", "no experts"),
        (pooled("qwen3-30b-a3b", expert=3, tensor=2), "techniques.disaggregation.tensor", "do not divide"),
        (
            pooled(others={"precision": {"weights": "fp8", "compute": "fp8"}}, hardware={"id": "a100-sxm-80gb"}),
            "techniques.disaggregation.hardware.id",
            "fp8",
        ),
        ({"workload": {"prompt_tokens": 99, "shared_prefix_tokens": 100}}, "workload.shared_prefix_tokens", "99"),
        (
            {"workload": {"shared_prefix_tokens": 100}, "techniques": {"reserved_tokens": 2048}},
            "workload.shared_prefix_tokens",
            "shared in pages",
        ),
        ({"workload": {"longest_answer": 900}}, "workload.longest_answer", "exponential"),
        ({"workload": {"longest_answer": 900, "answer_shape": "uniform"}}, "workload.longest_answer", "exponential"),
        (
            {"workload": {"longest_answer": 499, "answer_shape": "exponential"}},
            "workload.longest_answer",
            "less than the 500",
        ),
        ({"model": NO_ATTENTION, "techniques": {"attention": "gqa"}}, "techniques.attention", "no attention"),
        ({"model": "deepseek-v4-flash", "techniques": {"attention": "mha"}}, "techniques.attention", "none of"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_does_not_go_together_is_refused_at_its_path(sections: dict[str, Any], path: str, why: str) -> None:
    found = refusals(**sections)
    assert list(found) == [path]
    assert why in found[path]


def test_a_whole_prompt_may_be_shared_and_an_answer_cut_at_its_mean() -> None:
    whole = {"prompt_tokens": 100, "shared_prefix_tokens": 100}
    cut = {"answer_shape": "exponential", "longest_answer": 500}
    for workload in (whole, cut):
        answer(scenario(workload=workload), shipped_catalog())


def test_refusals_of_several_techniques_come_together() -> None:
    found = refusals(
        model=NO_ATTENTION,
        hardware="nope",
        workload={"prompt_tokens": 5, "shared_prefix_tokens": 6, "longest_answer": 900},
        techniques={"attention": "mla", "speculative": {"draft_tokens": 1, "method": "mtp"}},
    )
    assert set(found) == {
        "hardware.id",
        "workload.shared_prefix_tokens",
        "workload.longest_answer",
        "techniques.attention",
        "techniques.speculative.method",
    }


NEW_FIELDS = (
    "workload.answer_shape",
    "workload.longest_answer",
    "workload.shared_prefix_tokens",
    "techniques.speculative.method",
    "techniques.speculative.acceptance_rate",
    "techniques.speculative.acceptance_length",
    "techniques.disaggregation.hardware",
    "techniques.disaggregation.hardware.id",
    "techniques.disaggregation.hardware.custom",
    "techniques.disaggregation.tensor",
    "techniques.disaggregation.pipeline",
    "techniques.disaggregation.data",
    "techniques.disaggregation.expert",
    "techniques.disaggregation.instances",
    "techniques.disaggregation.link",
    "techniques.disaggregation.link_gb_per_s",
    "techniques.disaggregation.overlap",
    "techniques.chunked_prefill",
    "techniques.static_batching",
    "techniques.reserved_tokens",
    "techniques.attention",
)
ODD: list[Any] = [
    math.nan,
    math.inf,
    -math.inf,
    1e30,
    -1e30,
    10**400,
    -1,
    0,
    1.5,
    True,
    False,
    None,
    "",
    "NaN",
    "1e999",
    "'; DROP TABLE links; --",
    "<script>alert(1)</script>",
    "../../etc/passwd",
    "\x00",
    "\ud800",
    "\u202eb",
    "x" * 5000,
    [],
    [1] * 10,
    {},
    {"id": {"id": {}}},
]


@pytest.mark.parametrize("path", NEW_FIELDS)
def test_whatever_is_sent_is_answered_or_refused(path: str) -> None:
    """A form that does not validate, or a scenario that is refused by name: never another exception."""
    for value in ODD:
        document = scenario_document(
            techniques={
                "speculative": {"draft_tokens": 3},
                "disaggregation": {"hardware": dict(H100)},
            }
        )
        table: Any = document
        *parents, last = path.split(".")
        for key in parents:
            table = table.setdefault(key, {})
        table[last] = value
        refused, found = told(document)
        assert found is not None or refused
        if found is None:
            assert all(place.startswith(path) or path.startswith(place) for place in refused), (value, refused)
        else:
            assert math.isfinite(found.evaluation.measures.serving.tpot_s.ceiling)
            json.dumps(found.scenario.document(), allow_nan=False)


def told(document: dict[str, Any]) -> tuple[list[str], Answer | None]:
    """Where a document is refused, or the answer to it."""
    try:
        return [], answer(Scenario.model_validate(document), shipped_catalog())
    except ValidationError as error:
        return [".".join(map(str, one["loc"])) for one in error.errors()], None
    except ScenarioError as error:
        return [refusal.path for refusal in error.refusals], None


def test_the_largest_pool_is_reckoned_in_plain_numbers() -> None:
    most: dict[str, Any] = {"tensor": 8, "data": 4096, "instances": 10**5, "link_gb_per_s": 1e6}
    found = answer(scenario(**pooled(**most)), shipped_catalog())
    assert found.evaluation.measures.serving.output_tokens_per_s.ceiling > 0
    least = answer(scenario(**pooled(link_gb_per_s=1e-3)), shipped_catalog()).evaluation.measures
    assert least.serving.ttft_s.ceiling == pytest.approx(131_072_000 / 1e6, rel=0.01)  # 131 s for 131 MB
