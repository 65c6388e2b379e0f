"""Chapter eleven: five beliefs, each beside the number that decides it for the reader's own case.

Chapter ten: the same single user on other cards, and what grew faster, arithmetic or bandwidth.

Chapter nine: the same scenario under each engine, and where the command that starts it lies.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from app.calc.broadcast import scalar
from app.calc.dtypes import Dtype
from app.calc.time.rule_of_thumb import decode_step_s
from app.catalog.accelerators import AcceleratorRecord, Kind
from app.catalog.catalog import Catalog
from app.features.learn.case import EXACT, Case, Cases, Chapter, Desk, case, changed
from app.features.learn.charts import CardPace, cards_chart
from app.features.learn.number import COUNT, PERCENT, TIMES, LiveNumber
from app.features.workbench.charts.memory import memory_chart
from app.scenario.scenario import Engine
from app.web import urls

_SAME = 1.01
_FORMULA = "the formula of rule_of_thumb.decode_step_s"


def beliefs(cases: Cases, of_decode: LiveNumber, of_prefill: LiveNumber, ridge: LiveNumber) -> Chapter:
    """What is doubled, lengthened or shared, and what it does to a user."""
    desk = Desk("beliefs")
    chip = _faster_chip(desk, cases)
    prompts = _long_prompts(desk, cases)
    waiting = _waiting(desk, cases)
    return Chapter(
        "beliefs",
        "Five wrong beliefs",
        desk.numbers,
        cases.wordy,
        says={
            **chip,
            **prompts,
            **waiting,
            "same_side": (of_decode.value < ridge.value) == (of_prefill.value < ridge.value),
            "both_below": of_prefill.value < ridge.value,
        },
    )


def _faster_chip(desk: Desk, cases: Cases) -> dict[str, bool]:
    """One user's step with the arithmetic doubled, and with the bandwidth doubled."""
    one, inputs = cases.one, cases.one.inputs

    def step(arithmetic: float, bandwidth: float) -> float:
        return scalar(
            decode_step_s(
                inputs.step_weights_bytes,
                inputs.n_params,
                one.batch,
                arithmetic * inputs.peak_flops_per_s,
                bandwidth * inputs.bandwidth_bytes_per_s,
            )
        )

    now = desk.read("now", "a step of one user", one, "rule_of_thumb.decode_step_s", "s", 3)
    arithmetic = desk.given(
        "twice_arithmetic", "the same with twice the arithmetic", step(2, 1), "s", _FORMULA, 3, "one"
    )
    bandwidth = desk.given("twice_bandwidth", "the same with twice the bandwidth", step(1, 2), "s", _FORMULA, 3, "one")
    return {
        "arithmetic_idle": now.value < _SAME * arithmetic.value,
        "bandwidth_helps": now.value > _SAME * bandwidth.value,
    }


def _long_prompts(desk: Desk, cases: Cases) -> dict[str, bool]:
    """The crowd's step and room with prompts several times as long."""
    crowd, wordy = cases.crowd, cases.wordy
    desk.tokens("prompt", "tokens of a prompt", crowd, "prompt_tokens")
    desk.tokens("long_prompt", "tokens of a long prompt", wordy, "prompt_tokens")
    desk.given("users", "users", crowd.batch, COUNT, "decode.concurrency", EXACT, crowd.key)
    before = desk.read("step", "a step with the cache", crowd, "rule_of_thumb.kv_step_s", "s", 3)
    after = desk.read("long_step", "the same with long prompts", wordy, "rule_of_thumb.kv_step_s", "s", 3)
    room = desk.read("room", "users that find room", crowd, "rule_of_thumb.kv_capacity_users", COUNT, EXACT)
    long_room = desk.read(
        "long_room", "the same with long prompts", wordy, "rule_of_thumb.kv_capacity_users", COUNT, EXACT
    )
    desk.made("longer", "times as long a step", TIMES, after, "÷", before, digits=3)
    return {
        "steps_lengthen": after.value > _SAME * before.value,
        "room_shrinks": long_room.value < room.value,
        "nobody_fits": room.value == 0,
    }


def _waiting(desk: Desk, cases: Cases) -> dict[str, bool]:
    """One user alone against one of the crowd, weights alone and with the cache."""
    one, crowd = cases.one, cases.crowd
    alone = desk.read("alone", "a step of one user", one, "rule_of_thumb.decode_step_s", "s", 3)
    shared = desk.read("shared", "a step of the crowd, weights alone", crowd, "rule_of_thumb.decode_step_s", "s", 3)
    cached = desk.read("cached", "a step of the crowd with its caches", crowd, "rule_of_thumb.kv_step_s", "s", 3)
    desk.made("wait", "what sharing costs a user", TIMES, shared, "÷", alone, digits=3)
    desk.made("served", "times the tokens for all", TIMES, desk.numbers["users"], "×", alone, "÷", shared, digits=3)
    part = desk.made("of_cache", "part of the step that is cache", "s", cached, "−", shared, digits=3)
    desk.made("of_cache_share", "share of the step that is cache", PERCENT, part, "÷", cached, digits=2)
    return {
        "no_wait": shared.value < _SAME * alone.value,
        "cache_counts": cached.value > _SAME * shared.value,
        "has_experts": crowd.deployment.architecture.has_experts,
        "by_arithmetic": crowd.inputs.step_weights_bytes / crowd.inputs.bandwidth_bytes_per_s < shared.value / _SAME,
    }


RACKS = ("a100-sxm-80gb", "h100-sxm-80gb", "h200-sxm", "b200-sxm", "b300-sxm", "mi300x", "mi355x")
DESKS = ("rtx-3090", "rtx-4090", "rtx-5090", "rtx-pro-6000-ws", "apple-m4-max", "dgx-spark-gb10", "h200-sxm")
OLD, NEW = "a100-sxm-80gb", "b200-sxm"
BEFORE, AFTER = "h100-sxm-80gb", "h200-sxm"
"""Two cards that differ in their memory and in nothing else."""


def cards(cases: Cases, catalog: Catalog) -> tuple[Chapter, list[Case]]:
    """The chapter, and the cases that it made."""
    desk, one = Desk("cards"), cases.one
    own = one.answered.accelerator
    made = {id_: found for id_ in (*_ladder(own), BEFORE, AFTER) if (found := _on(id_, one, catalog)) is not None}
    shown = [made[id_] for id_ in _ladder(own) if id_ in made and (own is None or id_ != own.id)]
    paces = [_pace(one, is_own=True), *(_pace(found, is_own=False) for found in shown)]
    paces.sort(key=lambda pace: (pace.year, pace.pace_tokens_per_s))
    mine = desk.read("own", "one user on this card", one, "rule_of_thumb.decode_tokens_per_s", "tokens/s")
    rows = []
    for found in shown:
        id_ = found.scenario.hardware.id or ""
        key = id_.replace("-", "_").replace(".", "_")
        pace = desk.read(
            f"pace_{key}", f"one user on {_name(found)}", found, "rule_of_thumb.decode_tokens_per_s", "tokens/s", 3
        )
        rows.append((found, pace, desk.made(f"times_{key}", "times this card", TIMES, pace, "÷", mine, digits=3)))
    roomy = [row for row in rows if row[0].inputs.weights_bytes < row[0].inputs.memory_bytes]
    fastest = max(roomy or rows, key=lambda row: row[1].value, default=None)
    twins = _twins(desk, made)
    _growth(desk, catalog)
    return (
        Chapter(
            "cards",
            "Newer cards",
            desk.numbers,
            one,
            says={
                "fastest": None if fastest is None or fastest[1].value <= mine.value else fastest,
                "fastest_name": "" if fastest is None else _name(fastest[0]),
                "twins": twins,
                "twin_names": (catalog.accelerators[BEFORE].name, catalog.accelerators[AFTER].name),
                "old": catalog.accelerators[OLD].name,
                "new": catalog.accelerators[NEW].name,
                "gpus": one.deployment.split.gpus,
            },
            charts={"cards": cards_chart(paces)},
        ),
        list(made.values()),
    )


def _ladder(own: AcceleratorRecord | None) -> Sequence[str]:
    return RACKS if own is None or own.kind is Kind.DATA_CENTER else DESKS


def _on(id_: str, one: Case, catalog: Catalog) -> Case | None:
    """The one user on another card; its arithmetic is what weights and card share."""
    scenario = changed(
        one.scenario,
        {"hardware": {"id": id_, "custom": None, "count": None}, "precision": {"compute": None}},
    )
    return case(f"card:{id_}", f"one user on {catalog.accelerators[id_].name}", scenario, catalog)


def _name(found: Case) -> str:
    return found.deployment.accelerator.name


def _pace(found: Case, *, is_own: bool) -> CardPace:
    inputs, record = found.inputs, found.answered.accelerator
    return CardPace(
        name=_name(found),
        year=0 if record is None else record.year,
        pace_tokens_per_s=found.rule.decode_tokens_per_s,
        bandwidth_bytes_per_s=inputs.bandwidth_bytes_per_s,
        peak_flops_per_s=inputs.peak_flops_per_s,
        compute=found.deployment.precision.compute.value,
        holds=inputs.weights_bytes < inputs.memory_bytes,
        is_own=is_own,
    )


def _twins(desk: Desk, made: dict[str, Case]) -> bool:
    """Two cards with one arithmetic and two memories; False where the model is not computed on them."""
    if BEFORE not in made or AFTER not in made:
        return False
    before, after = made[BEFORE], made[AFTER]
    pace_before = desk.read(
        "before", f"one user on {_name(before)}", before, "rule_of_thumb.decode_tokens_per_s", "tokens/s", 4
    )
    pace_after = desk.read(
        "after", f"one user on {_name(after)}", after, "rule_of_thumb.decode_tokens_per_s", "tokens/s", 3
    )
    peaks = [
        desk.peak(f"peak_{key}", found, "rule_of_thumb.decode_step_s P")
        for key, found in (("before", before), ("after", after))
    ]
    weights = desk.term(
        "weights",
        "weights that one token needs",
        after,
        after.inputs.step_weights_bytes,
        "rule_of_thumb.decode_step_s W",
        "B",
    )
    bandwidths: list[LiveNumber] = [
        desk.bandwidth(f"bandwidth_{key}", found, "rule_of_thumb.decode_step_s BW")
        for key, found in (("before", before), ("after", after))
    ]
    desk.made("twin_rate", "tokens a second", "tokens/s", bandwidths[1], "÷", weights, digits=3)
    desk.made("more_bandwidth", "times the bandwidth", TIMES, bandwidths[1], "÷", bandwidths[0], digits=3)
    desk.made("more_arithmetic", "times the arithmetic", TIMES, peaks[1], "÷", peaks[0], digits=3)
    desk.made("more_pace", "times the pace", TIMES, pace_after, "÷", pace_before, digits=3)
    return True


def _growth(desk: Desk, catalog: Catalog) -> None:
    """How much arithmetic in 16 bits and bandwidth grew between two generations, and where that took the ridge."""
    found = {}
    for key, id_ in (("old", OLD), ("new", NEW)):
        record = catalog.accelerators[id_]
        device = record.accelerator
        where = f"catalog: {record.name}"
        peak = desk.given(f"{key}_peak", f"arithmetic of {record.name}", device.peak(Dtype.BF16), "FLOP/s", where)
        bandwidth = desk.given(
            f"{key}_bandwidth", f"bandwidth of {record.name}", device.bandwidth_bytes_per_s, "B/s", where
        )
        desk.made(f"{key}_ridge", f"ridge of {record.name}", "FLOP/B", peak, "÷", bandwidth, digits=3)
        found[key] = (peak, bandwidth)
    desk.made("grew_arithmetic", "growth of the arithmetic", TIMES, found["new"][0], "÷", found["old"][0], digits=2)
    desk.made("grew_bandwidth", "growth of the bandwidth", TIMES, found["new"][1], "÷", found["old"][1], digits=2)


SHOWN = ("vllm", "sglang", "tensorrt-llm", "llama.cpp", "llm-d", "deepinfer")


@dataclass(frozen=True, slots=True)
class EngineRow:
    """One engine with what it leaves for the cache, and the launch page; numbers None where it is not computed."""

    id: str
    name: str
    setting: str
    launch: str | None
    share: LiveNumber | None = None
    weights: LiveNumber | None = None
    pool: LiveNumber | None = None
    users: LiveNumber | None = None


def engines(cases: Cases, catalog: Catalog) -> tuple[Chapter, list[Case]]:
    """The chapter, and the cases that it made."""
    desk, own = Desk("engines"), cases.asked
    made, rows = _under_each(desk, own, catalog)
    card = desk.read("card", "the card, as the driver reports it", own, "memory.per_gpu.capacity_bytes", "B", 4)
    desk.read("budget", "what the engine may use", own, "memory.budget_bytes", "B", 4)
    tokens, source = own.deployment.workload.total_tokens, "scenario.workload.prompt_tokens + output_tokens"
    desk.given("length", "tokens of a whole conversation", tokens, "tokens", source, EXACT, own.key)
    sold = own.deployment.accelerator.memory_marketed_bytes
    desk.given("label", "the card, as it is sold", sold, "B", "catalog: memory.marketed_gb", 4, own.key)
    pools = [row.pool.value for row in rows if row.pool is not None]
    return (
        Chapter(
            "engines",
            "The engines: who divides the memory",
            desk.numbers,
            own,
            says={
                "rows": {row.id: row for row in rows},
                "is_labelled_otherwise": abs(card.value / desk.numbers["label"].value - 1) > 1e-3,
                "differs": bool(pools) and max(pools) > 1.01 * min(pools),
                "gpus": own.deployment.gpus,
                "own": own.answered.engine.name,
            },
            charts={"memory": memory_chart(own.evaluation)},
        ),
        made,
    )


def _under_each(desk: Desk, own: Case, catalog: Catalog) -> tuple[list[Case], list[EngineRow]]:
    """The scenario under every engine with the settings that it chooses by itself."""
    made, rows = list[Case](), list[EngineRow]()
    for id_ in SHOWN:
        engine = catalog.engines[id_]
        scenario = own.scenario.model_copy(update={"engine": Engine(id=id_)})
        found = case(f"engine:{id_}", f"as asked, under {engine.name}", scenario, catalog)
        if found is None:
            rows.append(EngineRow(id_, engine.name, engine.memory_setting, None))
        else:
            made.append(found)
            rows.append(_row(desk, id_, engine.name, engine.memory_setting, found))
    return made, rows


def _row(desk: Desk, id_: str, name: str, setting: str, found: Case) -> EngineRow:
    key = id_.replace(".", "").replace("-", "_")
    return EngineRow(
        id_,
        name,
        setting,
        urls.launching(urls.scenario_items(found.scenario)),
        share=desk.given(
            f"{key}_share",
            f"{name}: its share",
            found.deployment.engine.memory_utilization,
            COUNT,
            "scenario.engine.memory_utilization",
            3,
            found.key,
        ),
        weights=desk.read(f"{key}_weights", f"{name}: weights", found, "memory.per_gpu.weights_bytes", "B", 3),
        pool=desk.read(f"{key}_pool", f"{name}: cache pool", found, "memory.per_gpu.kv_pool_bytes", "B", 3),
        users=desk.read(f"{key}_users", f"{name}: users at full length", found, "memory.max_concurrency", COUNT, EXACT),
    )
