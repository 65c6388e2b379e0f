"""The working of the expected values: each a sum that a reader can add up, its parts written out beside it."""

from collections import Counter
from collections.abc import Sequence

from app.calc.broadcast import scalar
from app.calc.deployment import Deployment
from app.calc.derivation import Explanation, Term
from app.calc.measure import Measures
from app.calc.outputs import derivation
from app.calc.quantity import quantity, significant
from app.calc.time.expected.answer import Expected
from app.calc.time.expected.operators import OperatorTime, prompt_operators, step_operators
from app.calc.time.expected.passes import LINKED
from app.calc.time.expected.timing import chunks_of, on_rank

_SOURCE = "Fitted to published measurements: docs/expected.md, calibration "
_PERCENT = 100
_FLOOR = "t_ceiling"


def explain_expected(deployment: Deployment, measures: Measures) -> list[Explanation]:
    """Explanations of every expected value; none where nothing is calibrated."""
    expected = measures.expected
    if expected is None:
        return []
    return [*_phases(deployment, measures, expected), *_serving(deployment, measures, expected)]


def _source(deployment: Deployment, expected: Expected, *sides: str) -> str:
    """Where a figure of these sides comes from, a user's own calibration of them named."""
    own = deployment.own_calibration
    named = None if own is None else own.named_for(*sides)
    fitted = _SOURCE + expected.calibration_version
    return fitted if named is None else f"{fitted}; on it {named}"


def _phases(deployment: Deployment, measures: Measures, expected: Expected) -> list[Explanation]:
    found = []
    step = step_operators(deployment, expected)
    host = scalar(expected.step.host_s)
    terms = (*_operators(step), *_calls(step), *_links(step), _host(deployment, expected, host))
    if measures.decode_s.mid is not None:
        value = measures.decode_s.mid
        formula = " + ".join(term.symbol for term in terms)
        if value > scalar(expected.step.total_s):
            formula, terms = f"max({formula}, {_FLOOR})", (*terms, _floor(measures))
        source = _source(deployment, expected, "decode")
        found.append(derivation("decode.expected_s.mid", formula, terms, value, source))
    prompt = prompt_operators(deployment, expected)
    prompt_terms = (*_operators(prompt), *_calls(prompt), *_links(prompt))
    if measures.prefill_s.mid is not None:
        formula = " + ".join(term.symbol for term in prompt_terms)
        if deployment.prompt_side.split.pipeline > 1:
            formula = f"({formula}) × p"
            prompt_terms = (*prompt_terms, _pipelined(deployment, expected))
        if measures.prefill_s.mid > expected.alone_s:
            floor = Term(_FLOOR, "ceiling of the stages one after the other", measures.prefill.ceiling_s, "s")
            formula, prompt_terms = f"max({formula}, {_FLOOR})", (*prompt_terms, floor)
        found.append(
            derivation(
                "prefill.expected_s.mid",
                formula,
                prompt_terms,
                measures.prefill_s.mid,
                _source(deployment, expected, "prefill"),
            )
        )
    return found


def _operators(times: Sequence[OperatorTime]) -> tuple[Term, ...]:
    """A term for each operator of each group of layers; names that come twice are numbered."""
    own = [time for time in times if time.kind not in LINKED]
    counts, seen, terms = Counter(time.name for time in own), Counter[str](), []
    for time in own:
        seen[time.name] += 1
        number = f"_{seen[time.name]}" if counts[time.name] > 1 else ""
        words = time.name.replace("_", " ")
        sides = (
            f"{quantity(time.bytes_s, 's', 4)} of bytes at {_share(time.bandwidth_share)} of the bandwidth and "
            f"{quantity(time.flops_s, 's', 4)} of FLOP at {_share(time.rate_share)} of the peak"
        )
        terms.append(Term(f"t_{time.name}{number}", f"{words}: {sides}, (a³ + b³)^⅓", time.time_s, "s"))
    return tuple(terms)


def _calls(times: Sequence[OperatorTime]) -> tuple[Term, ...]:
    own = [time for time in times if time.kind not in LINKED]
    parts = Counter[tuple[str, float]]()
    for time in own:
        parts[time.kind, time.call_s] += time.calls  # type: ignore[assignment]
    words = ", ".join(f"{n:,.0f} {kind} of {quantity(s, 's', 3)}" for (kind, s), n in parts.items())
    return (Term("t_calls", f"floors of the calls: {words}", sum(time.calls_s for time in own), "s"),)


def _links(times: Sequence[OperatorTime]) -> tuple[Term, ...]:
    linked = [time for time in times if time.kind in LINKED]
    if not linked:
        return ()
    volume = sum(time.time_s for time in linked)
    calls = sum(time.calls_s for time in linked)
    words = ", ".join(
        f"{time.calls:,.0f} {time.name.replace('_', ' ')} of {quantity(time.call_s, 's', 3)}" for time in linked
    )
    label = f"between GPUs: {quantity(volume, 's', 4)} of volume at the link’s reached rate, {words}"
    return (Term("t_links", label, volume + calls, "s"),)


def _host(deployment: Deployment, expected: Expected, host_s: float) -> Term:
    step, each = scalar(expected.efficiency.step_s), scalar(expected.efficiency.sequence_s)
    batch = scalar(on_rank(deployment, float(expected.batch)))
    words = (
        f"{quantity(step, 's', 3)} a step and {quantity(each, 's', 3)} for each of {significant(batch, 6)} sequences"
    )
    return Term("t_host", f"the host: {words}", host_s, "s")


def _floor(measures: Measures) -> Term:
    """The ceiling of all who were asked for: those who find room are told no less."""
    return Term(_FLOOR, "ceiling of a step of all who were asked for", measures.decode.ceiling_s, "s")


def _pipelined(deployment: Deployment, expected: Expected) -> Term:
    cached = deployment.workload.cached_prompt_tokens
    chunks = scalar(chunks_of(deployment, deployment.workload.prompt_tokens - cached, cached).count)
    stages = deployment.prompt_side.split.pipeline
    share = f"(({chunks:,.0f} + {stages:,} − 1) ÷ ({chunks:,.0f} × {stages:,}))^0.6"
    label = f"chunks follow each other through {stages:,} stages: {share}"
    return Term("p", label, expected.alone_s / scalar(expected.prompt.alone.total_s), "")


def _serving(deployment: Deployment, measures: Measures, expected: Expected) -> list[Explanation]:
    served, n = measures.serving, deployment.workload.output_tokens
    pooled, each = deployment.prefill_pool is not None, deployment.tokens_per_step
    # The first token waits for prompts alone; for places in a prefill pool it waits while others decode.
    sides = {"ttft_s": ("prefill", "decode") if pooled else ("prefill",)}
    held, found = measures.memory, []
    tokens = Term("n", "output tokens of one answer", n, "tokens")
    stays = expected.stay
    wait, interference = scalar(stays.wait_s), scalar(stays.interference_s)
    others = scalar(on_rank(deployment, float(expected.batch))) - 1
    marginal = scalar(expected.prompt.marginal_s) / deployment.split.pipeline
    what = f"{significant(others, 6)} other prompts, {quantity(marginal, 's', 4)} each"

    def explain(key: str, formula: str, terms: tuple[Term, ...]) -> None:
        value = getattr(served, key).mid
        if value is not None:
            source = _source(deployment, expected, *sides.get(key, ("decode", "prefill")))
            found.append(derivation(f"serving.{key}.mid", formula, terms, value, source))

    part = 0.0 if not others else wait / (others * marginal) if marginal else 0.0
    waits = f"{_share(part)} of the prefills of {what}" if not pooled else "for a place in the prefill pool"
    between = f"the rest of the prefills of {what}, spread over {n:,} tokens"
    if pooled:
        between = "prefills of other prompts: none, they are in the prefill pool"
    explain(
        "ttft_s",
        "t_prefill + t_link + t_request + t_wait" if pooled else "t_prefill + t_request + t_wait",
        (
            Term("t_prefill", "prefill of the prompt on an idle replica", expected.alone_s, "s"),
            *((Term("t_link", "cache still on its way", expected.link_wait_s, "s"),) if pooled else ()),
            Term("t_request", "the host’s part of a request", scalar(expected.efficiency.request_s), "s"),
            Term("t_wait", waits, wait, "s"),
        ),
    )
    raised = (served.tpot_s.mid or 0.0) > scalar(stays.tpot_s)
    step = "t_step" if each == 1 else "t_step ÷ a"
    floor = _FLOOR if each == 1 else f"{_FLOOR} ÷ a"
    explain(
        "tpot_s",
        f"max({step} + t_others, {floor})" if raised else f"{step} + t_others",
        (
            *((_floor(measures),) if raised else ()),
            Term("t_step", "a decode step of all who run", scalar(expected.step.total_s), "s"),
            *((Term("a", "tokens that a step gives, guesses accepted", each, "tokens"),) if each != 1 else ()),
            Term("t_others", between, interference, "s"),
        ),
    )
    stay = Term("T", "stay of a request among the others: first token, then n tokens", served.stay_s.best_known, "s")
    turnover, static = stay, deployment.engine.is_static
    if static:
        turnover = Term("T_batch", "the batch, to the end of its longest answer", served.residency_s, "s")
    running = Term("B", "requests that run at a time", held.served_sequences, "")
    asked = deployment.workload.concurrency or held.served_sequences
    explain(
        "total_latency_s",
        "T + T_batch × max(0, C ÷ B − 1)" if static else "T × max(1, C ÷ B)",
        (stay, *((turnover,) if static else ()), Term("C", "requests in the system", asked, ""), running),
    )
    explain(
        "output_tokens_per_s",
        "B × n ÷ T_batch" if static else "B × n ÷ T",
        (running, tokens, turnover),
    )
    explain(
        "output_tokens_per_s_per_user",
        "1 ÷ TPOT",
        (Term("TPOT", "time of each output token", served.tpot_s.best_known, "s"),),
    )
    explain(
        "total_tokens_per_s",
        "R × m ÷ n",
        (
            Term("R", "output tokens a second", served.output_tokens_per_s.best_known, "tokens/s"),
            Term("m", "prompt and output tokens of one answer", deployment.workload.total_tokens, "tokens"),
            tokens,
        ),
    )
    explain(
        "tpot_inclusive_s",
        "T_answer ÷ n",
        (Term("T_answer", "the whole answer", served.total_latency_s.best_known, "s"), tokens),
    )
    return found


def _share(share: float) -> str:
    return f"{significant(_PERCENT * share, 3)} %"
