"""Speculative decoding: several tokens for one reading of the weights, as long as arithmetic lies idle."""

from dataclasses import replace
from typing import Any

from app.calc.accelerator import coverage, ridge_flops_per_byte
from app.calc.broadcast import scalar
from app.calc.deployment import Deployment
from app.calc.derivation import Explanation
from app.calc.measure import replica_batch
from app.calc.model.layers.parts import OperatorName
from app.calc.optimize.optimization import (
    Asked,
    Better,
    Candidate,
    Figure,
    Level,
    Optimization,
    Quantity,
    Row,
    Spec,
    Variants,
)
from app.calc.optimize.sides import (
    TPOT_CEILING,
    TPOT_EXPECTED,
    Side,
    figure,
    figures,
    row,
    served_figures,
    side_of,
    times,
    working,
)
from app.calc.quantity import significant
from app.calc.time.break_even import Paying, eagle_head, mtp_drafter, paying
from app.calc.time.rule_of_thumb import ridge_batch
from app.calc.time.speculation import METHOD_WORDS, Method, Speculation, speculation_of

_PERCENT = 100
TOKENS = Quantity(
    "tokens_per_step",
    "Tokens that a step gives each user",
    "tokens",
    Level.EXPECTED,
    Better.HIGHER,
    lambda side: side.deployment.tokens_per_step,
)
STEP = Quantity(
    "step", "One step, ceiling", "s", Level.CEILING, Better.LOWER, lambda side: side.measures.decode.ceiling_s
)
INTENSITY = Quantity(
    "intensity",
    "Arithmetic intensity of a step",
    "FLOP/B",
    read=lambda side: side.measures.decode.intensity_flops_per_byte,
)
EXPERTS = Quantity(
    "experts_share",
    "Share of the experts that a step reads",
    "%",
    better=Better.LOWER,
    read=lambda side: _PERCENT * experts_read(side.deployment, _batch(side)),
)
DRAFT = Quantity("draft_share", "Share of a step that is guessing", "%", Level.CEILING, Better.LOWER)
COLUMNS = (
    Quantity("tokens_per_step", "Tokens a step", "", read=TOKENS.read),
    TPOT_CEILING,
    TPOT_EXPECTED,
    Quantity("throughput", "Tokens a second", "tokens/s", read=lambda side: side.tokens_per_s),
)
STOPS = Quantity("stops_at", "Stops paying at a batch of", "")
USUAL_DRAFT_TOKENS, USUAL_LENGTH = 3, 2.8
"""What is asked where the scenario says nothing: acceptance lengths of three guesses lie between 2.5 and 3.0."""
_RATES = (0.0, 0.5, 0.7, 0.8, 0.9, 1.0)


def _compare(asked: Asked) -> Optimization:
    """The scenario with one token a step, and with guesses that are checked."""
    here = asked.deployment
    is_used = here.speculation is not None
    guessing = here if is_used else usual_speculation(here)
    speculation = guessing.speculation
    assert speculation is not None  # noqa: S101  # both have one
    off, on = side_of(asked, without(guessing)), side_of(asked, guessing)
    curve = paying(guessing)
    return Optimization(
        SPEC,
        is_used,
        "Guess nothing" if is_used else _label(speculation),
        speculation_change(off.deployment if is_used else guessing),
        (_sentence(off, on, curve),),
        (*_step_figures(off, on), *served_figures(off, on)),
        _explained(off, on, speculation),
        Variants((*COLUMNS, STOPS), tuple(_rows(asked, guessing, speculation, curve))),
    )


def _label(speculation: Speculation) -> str:
    return f"Guess {speculation.draft_tokens} tokens with {METHOD_WORDS[speculation.method]}"


def _candidate(deployment: Deployment) -> Candidate | None:
    if deployment.speculation is not None:
        return None
    changed = usual_speculation(deployment)
    speculation = changed.speculation
    assert speculation is not None  # noqa: S101  # it has just been made
    label = f"{_label(speculation)}, if a step gives {speculation.tokens_per_step:.2g}"
    return Candidate(speculation_change(changed), label, changed)


def without(guessing: Deployment) -> Deployment:
    """The same with nobody guessing, and nothing loaded for it but the model's own layers."""
    return replace(guessing, speculation=None, draft=None, engine=replace(guessing.engine, draft_tokens=0))


def usual_speculation(deployment: Deployment) -> Deployment:
    """The usual guesses: with what is loaded for it already, else with an EAGLE-3 head."""
    k = deployment.engine.draft_tokens or USUAL_DRAFT_TOKENS
    own = mtp_drafter(deployment.architecture, deployment.precision.weights)
    if own is not None:
        method, drafter, draft = Method.MTP, own, None
    elif deployment.draft is not None:
        method, drafter, draft = Method.DRAFT_MODEL, deployment.draft, deployment.draft
    else:
        drafter = draft = eagle_head(deployment.architecture)
        method = Method.EAGLE
    length = min(USUAL_LENGTH, 1 + 0.6 * k)
    return replace(
        deployment,
        draft=draft,
        engine=replace(deployment.engine, draft_tokens=k),
        speculation=speculation_of(method, k, None, length, drafter),
    )


def speculation_change(guessing: Deployment) -> dict[str, Any]:
    """The patch that leads to what `usual_speculation` gives."""
    speculation = guessing.speculation
    if speculation is None:
        return {"techniques": {"speculative": None}}
    asked = {"draft_tokens": speculation.draft_tokens, "acceptance_length": speculation.tokens_per_step}
    method = {"method": str(speculation.method)} if speculation.method is Method.EAGLE else {}
    return {"techniques": {"speculative": asked | method}}


def _step_figures(off: Side, on: Side) -> list[Figure]:
    step = on.measures.decode
    draft = sum(op.time_s for op in step.operators if op.name is OperatorName.DRAFT) / step.ceiling_s
    found = figures((TOKENS, STEP), off, on)
    found += [figure(DRAFT, (0.0, _PERCENT * draft)), *figures((INTENSITY,), off, on)]
    return found + figures((EXPERTS,), off, on) if off.deployment.architecture.has_experts else found


def experts_read(deployment: Deployment, batch: float) -> float:
    """Share of a layer's experts that a step of a replica's `batch` reads, all its positions, in expectation."""
    return scalar(coverage(deployment.architecture, batch * deployment.positions))


def _batch(side: Side) -> float:
    return float(replica_batch(side.deployment, side.measures.memory.running_sequences))


def _rows(asked: Asked, guessing: Deployment, speculation: Speculation, curve: Paying) -> list[Row]:
    """The same drafter at other acceptances."""
    rows = []
    for rate in _RATES:
        other = speculation_of(speculation.method, speculation.draft_tokens, rate, None, speculation.drafter)
        label = f"each guess accepted at {significant(_PERCENT * rate, 2)} %"
        rows.append(_row(asked, replace(guessing, speculation=other), label, curve))
    return [
        *rows,
        _row(asked, guessing, f"as asked: {significant(speculation.tokens_per_step, 3)} tokens a step", curve),
    ]


def _row(asked: Asked, deployment: Deployment, label: str, curve: Paying) -> Row:
    stops = curve.at(deployment.tokens_per_step).stops_at
    note = "pays at every batch looked at" if stops is None else "pays at no batch" if stops <= 1 else ""
    found = row(COLUMNS, label, side_of(asked, deployment), is_here=deployment == asked.deployment, note=note)
    return replace(found, values=(*found.values, stops))


def rule_stop(guessing: Deployment) -> float:
    """Batch from which on guessing costs more than it gives, by weights alone: ridge batch · a ÷ (k + 1).

    Below it the arithmetic of all positions still hides behind one reading of the weights, or costs less than the
    tokens it gives. Worked number: Llama-3.1-8B on an H100 in 16 bits has its ridge at a batch of 295; 3 guesses that
    give 2.8 tokens stop paying at 295 × 2.8 ÷ 4 = 207.
    """
    return ridge_batch(guessing) * guessing.tokens_per_step / guessing.positions


def _sentence(off: Side, on: Side, curve: Paying) -> str:
    speculation, gain = on.deployment.speculation, off.tpot_s / on.tpot_s
    assert speculation is not None  # noqa: S101  # it is the open side
    tokens, batch = significant(speculation.tokens_per_step, 3), _batch(on)
    guesses = f"{speculation.draft_tokens} guesses by {METHOD_WORDS[speculation.method]} give {tokens} tokens a step"
    text = f"{guesses}, and each token comes {times(gain)} sooner"
    if gain < 1:
        text = f"{guesses}, and yet each token comes {times(1 / gain)} later"
    rule = f"By weights alone it pays up to a batch of {significant(rule_stop(on.deployment), 3)}"
    stops = curve.stops_at
    if stops is None:
        return f"{text}. {rule}; with the cache, which all positions read once together, at every batch looked at."
    if stops <= 1:
        return f"{text}. Here it pays at no batch."
    where = "below" if batch < stops else "beyond"
    return (
        f"{text}. {rule}, with cache and overheads up to about {significant(stops, 2)}; {batch:,.0f} is {where} that."
    )


def _explained(off: Side, on: Side, speculation: Speculation) -> tuple[Explanation, ...]:
    k, rate = speculation.draft_tokens, speculation.acceptance_rate
    step, each = on.measures.decode.ceiling_s, speculation.tokens_per_step
    card, compute = on.deployment.accelerator, on.deployment.precision.compute
    ridge = float(ridge_flops_per_byte(card.peak(compute), card.bandwidth_bytes_per_s))
    powers = [(f"a_{i}", f"all of the first {i} accepted: α^{i}", rate**i, "") for i in range(1, k + 1)]
    return (
        working(
            "speculative.tokens_per_step",
            "Tokens that a step gives, in expectation",
            " + ".join(["1", *(symbol for symbol, *_ in powers)]),
            powers,
            (each, "tokens", "Leviathan et al., ICML 2023: (1 − α^(k+1)) ÷ (1 − α), the sum of its powers"),
        ),
        working(
            "speculative.tpot_s",
            "Time per output token at the ceiling",
            "t_step ÷ a",
            (
                ("t_step", "guessing, and one step over all positions", step, "s"),
                ("a", "tokens that it gives", each, "tokens"),
            ),
            (step / each, "s", "Roofline, operator by operator"),
        ),
        working(
            "speculative.rule_stop_batch",
            "Batch up to which it pays, weights alone",
            "B_ridge × a ÷ (k + 1)",
            (
                ("B_ridge", "batch at the ridge: one token each", ridge_batch(on.deployment), ""),
                ("a", "tokens that a step gives", each, "tokens"),
                ("k", "guesses of a step", k, "tokens"),
            ),
            (rule_stop(on.deployment), "", "Rule of thumb: two FLOP a parameter, all weights once a step"),
        ),
        working(
            "speculative.ridge_share",
            "How much of the way to the ridge a step’s intensity has come",
            "I ÷ r",
            (
                ("I", "arithmetic intensity of a step", on.measures.decode.intensity_flops_per_byte, "FLOP/B"),
                ("r", f"ridge point: peak in {compute} ÷ bandwidth", ridge, "FLOP/B"),
            ),
            (on.measures.decode.intensity_flops_per_byte / ridge, "", "Williams et al., CACM 52(4), 2009"),
        ),
    )


SPEC = Spec(
    "speculative",
    "Speculative decoding",
    _compare,
    counts=("tpot",),
    shown=("tokens_per_step", "tpot"),
    limits=(
        "The acceptance is an input: it depends on the text, the temperature and how the drafter was trained, and a "
        "rate that is the same at each place is an idealisation. Measure the length and put it in.",
        "Guesses in a chain; trees of guesses give more tokens for more positions.",
        "The drafter’s passes follow each other before each check; engines that overlap them hide a part.",
        "Expected values use efficiencies that were fitted without speculation: no interval is claimed.",
        "Positions that are checked together read the cache once; kernels that do not, gain less at long contexts.",
    ),
    candidate=_candidate,
)
