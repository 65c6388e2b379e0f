"""Chapter ten: the same single user on other cards, and what grew faster, arithmetic or bandwidth."""

from collections.abc import Sequence

from app.calc.dtypes import Dtype
from app.catalog.accelerators import AcceleratorRecord, Kind
from app.catalog.catalog import Catalog
from app.charts.learn_cards import CardPace, cards_chart
from app.learn.case import Case, case, changed
from app.learn.cases import Cases
from app.learn.chapter import Chapter
from app.learn.desk import Desk
from app.learn.number import TIMES, LiveNumber

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
