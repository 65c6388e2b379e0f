"""The working of the ceilings: phases, what users see, and what it costs."""

from app.calc.accelerator import Accelerator
from app.calc.deployment import Deployment
from app.calc.derivation import Explanation, Term
from app.calc.measure import Measures, cards_of
from app.calc.outputs import derivation
from app.calc.quantity import quantity
from app.calc.time.expected.timing import link_wait_s
from app.calc.time.phase import OperatorCost, PhaseCost

_ROOFLINE = "Roofline, operator by operator: Williams et al., CACM 52(4), 2009"
_COUNTED = "Operators as counted in docs/ceilings.md: compulsory traffic, two FLOP a multiply-add"
_LATENCY = "Definition of TTFT and TPOT"
_LITTLE = "Little's law; arithmetic of the whole batch at the vendor's peak"


def explain_time(deployment: Deployment, measures: Measures) -> list[Explanation]:
    """Explanations of `prefill`, `decode`, `serving` and `cost`."""
    return [
        _phase("prefill", measures.prefill),
        *_totals("prefill", measures.prefill),
        _intensity("prefill", measures.prefill),
        _phase("decode", measures.decode),
        *_totals("decode", measures.decode),
        _intensity("decode", measures.decode),
        *_serving(deployment, measures),
        *_cost(deployment, measures),
    ]


def _phase(name: str, cost: PhaseCost) -> Explanation:
    terms = tuple(Term(f"t_{op.name}", _how_long(op), op.time_s, "s") for op in cost.operators)
    formula = " + ".join(term.symbol for term in terms)
    return derivation(f"{name}.ceiling_s", formula, terms, cost.ceiling_s, _ROOFLINE)


def _how_long(op: OperatorCost) -> str:
    name = op.name.replace("_", " ")
    if op.link_bytes:
        return f"{name}: {quantity(op.link_bytes, 'B')} each way ÷ the link in one direction"
    return f"{name}: the longer of FLOP ÷ peak and bytes ÷ bandwidth"


def _totals(name: str, cost: PhaseCost) -> list[Explanation]:
    """Arithmetic and bytes of a phase, as sums over its operators."""
    names = [(op, op.name.replace("_", " ")) for op in cost.operators]
    flops = tuple(Term(f"F_{op.name}", f"arithmetic of {label}", op.flops, "FLOP") for op, label in names)
    moved = tuple(Term(f"D_{op.name}", f"bytes of {label}", op.bytes, "B") for op, label in names)
    return [
        derivation(f"{name}.{key}", " + ".join(t.symbol for t in terms), terms, value, _COUNTED)
        for key, terms, value in (("flops", flops, cost.flops), ("bytes", moved, cost.bytes))
    ]


def _intensity(name: str, cost: PhaseCost) -> Explanation:
    return derivation(
        f"{name}.intensity_flops_per_byte",
        "F ÷ D",
        (Term("F", "arithmetic of the phase", cost.flops, "FLOP"), Term("D", "bytes it moves", cost.bytes, "B")),
        cost.intensity_flops_per_byte,
        _ROOFLINE,
    )


def _serving(deployment: Deployment, measures: Measures) -> list[Explanation]:
    served, workload, stages = measures.serving, deployment.workload, deployment.prompt_side.split.pipeline
    ttft = Term("TTFT", "time to the first token", served.ttft_s.ceiling, "s")
    tpot = Term("TPOT", "time of each output token", served.tpot_s.ceiling, "s")
    answer = Term("n", "output tokens of one answer", workload.output_tokens, "tokens")
    batch = Term("B", "users at a time", measures.memory.running_sequences, "")
    latency = Term("T", "one whole answer", served.total_latency_s.ceiling, "s")
    arithmetic = Term("C", _whose_arithmetic(deployment), served.batch_compute_s, "s")
    stay = Term("T", "one whole answer", served.stay_s.ceiling, "s")
    if deployment.engine.is_static:
        stay = Term("T", "the whole batch, to the end of its longest answer", served.stay_s.ceiling, "s")
    throughput = Term("R", "output tokens a second", served.output_tokens_per_s.ceiling, "tokens/s")
    total = Term("m", "prompt and output tokens of one answer", workload.total_tokens, "tokens")
    each, pooled = deployment.tokens_per_step, deployment.prefill_pool is not None
    link_wait = link_wait_s(deployment, measures.prefill.ceiling_s / stages)

    def explain(key: str, formula: str, terms: tuple[Term, ...], source: str) -> Explanation:
        return derivation(f"serving.{key}.ceiling", formula, terms, getattr(served, key).ceiling, source)

    return [
        explain(
            "ttft_s",
            ("t_prefill" if stages == 1 else "t_prefill ÷ s") + (" + t_link" if pooled else ""),
            (
                Term("t_prefill", "prefill of the prompt on an idle card", measures.prefill.ceiling_s, "s"),
                *((Term("s", "pipeline stages, at work on different chunks", stages, ""),) if stages > 1 else ()),
                *((Term("t_link", "cache still on its way when the prefill ends", link_wait, "s"),) if pooled else ()),
            ),
            _LATENCY,
        ),
        explain(
            "tpot_s",
            "t_step" if each == 1 else "t_step ÷ a",
            (
                Term(
                    "t_step", "a decode step of all users, half-way through the answers", measures.decode.ceiling_s, "s"
                ),
                *((Term("a", "tokens that a step gives, guesses accepted", each, "tokens"),) if each != 1 else ()),
            ),
            _LATENCY,
        ),
        explain(
            "total_latency_s",
            "TTFT + TPOT × n",
            (ttft, tpot, answer),
            _LATENCY,
        ),
        explain(
            "tpot_inclusive_s",
            "T ÷ n",
            (latency, answer),
            _LATENCY,
        ),
        explain(
            "output_tokens_per_s",
            "B × n ÷ max(T, C)",
            (batch, answer, stay, arithmetic),
            _LITTLE,
        ),
        explain(
            "output_tokens_per_s_per_user",
            "1 ÷ TPOT",
            (tpot,),
            _LATENCY,
        ),
        explain(
            "total_tokens_per_s",
            "R × m ÷ n",
            (throughput, total, answer),
            _LITTLE,
        ),
    ]


def _whose_arithmetic(deployment: Deployment) -> str:
    pool = deployment.prefill_pool
    if pool is None:
        return "arithmetic of all their prefills and steps at the peak"
    return "arithmetic of all their steps at the peak, or the time that the prefill pool needs for them all"


def _cost(deployment: Deployment, measures: Measures) -> list[Explanation]:
    cost, found = measures.cost, []
    rate = measures.serving.output_tokens_per_s
    level = "ceiling" if rate.mid is None else "expected"
    throughput = Term("R", f"output tokens a second, {level}", rate.best_known, "tokens/s")
    if cost is None:
        return []
    cards = cards_of(deployment)
    if cost.usd_per_million_output_tokens is not None:
        price, terms = _summed("p", "price of an hour of", "$", [(c, c.price_usd_per_hour, n) for c, n in cards])
        found.append(
            derivation(
                "cost.usd_per_million_output_tokens",
                f"{price} ÷ (R × 3600) × 1000000",
                (*terms, throughput),
                cost.usd_per_million_output_tokens,
                "Price of the catalog or the scenario",
            )
        )
    if cost.joules_per_output_token is not None:
        power, terms = _summed("P", "rated power (TDP) of", "W", [(c, c.tdp_w, n) for c, n in cards])
        found.append(
            derivation(
                "cost.joules_per_output_token",
                f"{power} ÷ R",
                (*terms, throughput),
                cost.joules_per_output_token,
                "Rated power of the catalog or the scenario",
            )
        )
    return found


def _summed(
    symbol: str, what: str, unit: str, parts: list[tuple[Accelerator, float | None, int]]
) -> tuple[str, tuple[Term, ...]]:
    """Cards times what each has; with brackets where there are several kinds."""
    formulas, terms = [], []
    for place, (card, each, n) in enumerate(parts, 1):
        mark = f"_{place}" if len(parts) > 1 else ""
        name = card.name if mark else "one card"
        formulas.append(f"g{mark} × {symbol}{mark}" if n > 1 or mark else f"{symbol}{mark}")
        if n > 1 or mark:
            terms.append(Term(f"g{mark}", f"GPUs, {card.name}" if mark else "GPUs", n, ""))
        terms.append(Term(f"{symbol}{mark}", f"{what} {name}", each or 0.0, unit))
    return (f"({' + '.join(formulas)})" if len(parts) > 1 else formulas[0]), tuple(terms)
