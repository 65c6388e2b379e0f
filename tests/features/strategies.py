"""Scenarios by chance: those that are right, and those that nobody should send."""

from typing import Any

from hypothesis import strategies as st

from app.calc.dtypes import Dtype, WeightFormat
from app.scenario.query import BY_NAME
from tests.factories import merge_patch, scenario_document, shipped_catalog

Document = dict[str, Any]
CACHES = [dtype.value for dtype in Dtype if dtype is not Dtype.TF32]
NAMES = st.text(
    st.characters(categories=["L", "N", "P", "S", "Zs"], max_codepoint=0x2FFF), min_size=1, max_size=20
).map(lambda text: f"n{text}")
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)


def reals(low: float, high: float) -> st.SearchStrategy[float]:
    return st.floats(low, high, allow_subnormal=False)


def some(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Document]:
    """An object of any of the fields."""
    return st.fixed_dictionaries({}, optional=fields)


def configs() -> st.SearchStrategy[Document]:
    """A config.json of a family that is read; within a query value's length."""
    return st.builds(
        lambda heads, groups, head_dim, layers, vocab, extra: {
            "model_type": "llama",
            "hidden_size": heads * head_dim,
            "num_attention_heads": heads,
            "num_key_value_heads": heads // groups,
            "intermediate_size": 4 * heads,
            "vocab_size": vocab,
            "num_hidden_layers": layers,
            "note": extra,
        },
        st.sampled_from([8, 32, 64]),
        st.sampled_from([1, 2, 8]),
        st.sampled_from([1, 64, 128]),
        st.integers(1, 200),
        st.integers(1, 300_000),
        TEXTS | st.none() | st.integers() | reals(-1e300, 1e300) | st.lists(TEXTS, max_size=2),
    )


def models() -> st.SearchStrategy[Document]:
    own = st.fixed_dictionaries({"config": configs()}, optional={"name": NAMES})
    return st.sampled_from(list(shipped_catalog().models)).map(lambda id_: {"id": id_}) | own


def drafts() -> st.SearchStrategy[Document]:
    return st.sampled_from([{"id": "qwen3-0.6b"}, {"id": "gemma-3-1b"}]) | configs().map(lambda c: {"config": c})


def hardware() -> st.SearchStrategy[Document]:
    rates = st.dictionaries(st.sampled_from([d.value for d in Dtype]), reals(1e-6, 1e9), max_size=4).map(
        lambda rates: {"bf16": 100.0} | rates
    )
    card = st.fixed_dictionaries(
        {"memory_gb": reals(0.001, 1e6), "bandwidth_gb_per_s": reals(0.001, 1e9), "dense_tflops": rates},
        optional={
            "name": NAMES,
            "memory_reported_mib": st.integers(1, 10**9),
            "tdp_w": reals(0.001, 1e6),
            "usd_per_hour": reals(0, 1e6),
            "link_one_way_gb_per_s": reals(0.001, 1e9),
        },
    )
    modern = [r.id for r in shipped_catalog().accelerators.values() if Dtype.BF16 in r.accelerator.peak_flops_per_s]
    return st.sampled_from(modern).map(lambda id_: {"id": id_}) | card.map(lambda custom: {"custom": custom})


def techniques() -> st.SearchStrategy[Document]:
    """Any of them; what a model or the rest of a scenario cannot have is refused by name."""
    guesses = st.fixed_dictionaries({"draft_tokens": st.integers(1, 64)}, optional={"draft": drafts()})
    timed = st.fixed_dictionaries(
        {"draft_tokens": st.integers(1, 64), "acceptance_rate": reals(0, 1)},
        optional={"method": st.sampled_from(["eagle", "ngram"])},
    )
    pool = st.fixed_dictionaries(
        {"hardware": st.sampled_from([{"id": "h100-sxm-80gb"}, {"id": "a100-sxm-40gb"}, {"id": "b200-sxm"}])},
        optional={
            "instances": st.integers(1, 10**5),
            "link": st.sampled_from(["card", "ib-hdr"]),
            "link_gb_per_s": st.none() | reals(1e-3, 1e6),
            "overlap": st.booleans(),
        },
    )
    return some(
        speculative=st.none() | guesses | timed,
        disaggregation=st.none() | pool,
        chunked_prefill=st.booleans(),
        static_batching=st.booleans(),
        reserved_tokens=st.none() | st.integers(1, 10**8),
        attention=st.none() | st.sampled_from(["mha", "gqa", "mqa", "mla"]),
    )


def calibrations() -> st.SearchStrategy[Document]:
    """A calibration of one's own, of one side or of both."""
    factor = {"factor": reals(0.05, 20), "points": st.integers(1, 10**6)}
    ends = {"low": reals(1e-6, 1), "high": reals(1, 100)}
    side = st.fixed_dictionaries(factor) | st.fixed_dictionaries({**factor, **ends})
    one = st.sampled_from(["decode", "prefill"]).flatmap(lambda key: st.fixed_dictionaries({"name": NAMES, key: side}))
    return one | st.fixed_dictionaries({"name": NAMES, "decode": side, "prefill": side})


def documents() -> st.SearchStrategy[Document]:
    """A scenario that is right in form and computed, in the whole range of every field."""
    return st.fixed_dictionaries(
        {"model": models(), "hardware": hardware()},
        optional={
            "schema_version": st.just(1),
            "precision": some(
                weights=st.sampled_from([w.value for w in WeightFormat]),
                kv_cache=st.sampled_from(CACHES),
                compute=st.sampled_from([None, "bf16"]),
            ),
            "engine": some(
                id=st.sampled_from(list(shipped_catalog().engines)),
                version=st.none() | st.from_regex(r"[0-9A-Za-z][0-9A-Za-z.+_-]{0,39}", fullmatch=True),
                memory_utilization=st.none() | reals(0.01, 1),
                max_model_len=st.none() | st.integers(1, 10**8),
                max_num_seqs=st.none() | st.integers(1, 10**6),
                max_batched_tokens=st.none() | st.integers(1, 10**8),
                block_size=st.none() | st.integers(1, 65_536),
                prefix_caching=st.none() | st.booleans(),
                enforce_eager=st.booleans(),
                total_memory_bytes=st.none() | reals(1, 1e15),
                weights_bytes=st.none() | reals(0, 1e15),
                activation_bytes=st.none() | reals(0, 1e15),
                non_framework_bytes=st.none() | reals(0, 1e15),
                graph_bytes=st.none() | reals(0, 1e15),
                kv_pool_bytes=st.none() | reals(1, 1e15),
            ),
            "parallelism": some(data=st.integers(1, 64)),  # whatever the model, it divides
            "techniques": techniques(),
            "observed": some(
                kv_tokens=st.none() | st.integers(0, 10**12),
                gpu_blocks=st.none() | st.integers(0, 10**12),
                max_concurrency=st.none() | reals(0, 1e9),
            ),
            "workload": some(
                prompt_tokens=st.integers(1, 10**8),
                output_tokens=st.integers(1, 10**8),
                concurrency=st.none() | st.integers(1, 10**6),
                answer_shape=st.sampled_from(["fixed", "uniform", "exponential"]),
                prefix_hit_rate=reals(0, 1),
                shared_prefix_tokens=st.sampled_from([0, 1, 500, 10**8]),
                slo_ttft_s=st.none() | reals(1e-9, 1e6),
                slo_tpot_s=st.none() | reals(1e-9, 1e6),
            ),
            "calibration": st.none() | calibrations(),
            "memory_basis": st.sampled_from(["reported", "marketed"]),
        },
    )


ODD_VALUES = (
    st.none()
    | st.booleans()
    | st.integers(-(10**400), 10**400)
    | st.sampled_from(
        [0, -1, 1e308, -0.0, 5e-324, 1e-300, 10**18, "", "NaN", "<b>", "' OR 1=1", "\x00", "\u202e", "9" * 999]
    )
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS
    | st.lists(st.integers(), max_size=3)
    | st.dictionaries(TEXTS, st.integers(), max_size=3)
)
FULL = {
    "schema_version": 1,
    "model": {"id": 0, "name": 0, "config": 0},
    "hardware": {"id": 0, "custom": {"memory_gb": 0, "dense_tflops": {"bf16": 0}, "name": 0, "x": 0}, "count": 0},
    "precision": {"weights": 0, "kv_cache": 0, "compute": 0},
    "parallelism": {"tensor": 0, "data": 0, "pipeline": 0, "expert": 0, "decode_context": 0},
    "engine": {
        "id": 0,
        "underneath": 0,
        "version": 0,
        "memory_utilization": 0,
        "max_num_seqs": 0,
        "max_batched_tokens": 0,
        "block_size": 0,
        "prefix_caching": 0,
        "enforce_eager": 0,
        "total_memory_bytes": 0,
        "weights_bytes": 0,
        "kv_pool_bytes": 0,
        "x": 0,
    },
    "workload": {"prompt_tokens": 0, "output_tokens": 0, "concurrency": 0, "prefix_hit_rate": 0, "slo_ttft_s": 0},
    "techniques": {
        "speculative": {"draft_tokens": 0, "draft": {"id": 0, "config": 0}},
        "disaggregation": {"hardware": {"id": 0}, "instances": 0},
        "chunked_prefill": 0,
        "static_batching": 0,
        "reserved_tokens": 0,
        "attention": 0,
    },
    "observed": {"kv_tokens": 0, "max_concurrency": 0},
    "calibration": {"name": 0, "decode": {"factor": 0, "points": 0}, "prefill": 0, "x": 0},
    "memory_basis": 0,
    "unknown": 0,
}
PLACES = [
    path.split(".")
    for path in (
        *(f"{part}.{name}" for part, names in FULL.items() if isinstance(names, dict) for name in names),
        *FULL,
        *(f"techniques.speculative.{name}" for name in ("method", "acceptance_rate", "acceptance_length", "x")),
        *(f"techniques.disaggregation.{name}" for name in ("link", "link_gb_per_s", "tensor", "overlap", "x")),
        *(f"workload.{name}" for name in ("answer_shape", "longest_answer", "shared_prefix_tokens")),
        *(f"calibration.decode.{name}" for name in ("factor", "points", "low", "high", "x")),
        "hardware.custom.memory_gb",
        "hardware.custom.dense_tflops.bf16",
        "hardware.custom.dense_tflops.bf17",
    )
]


def hostile_documents() -> st.SearchStrategy[Any]:
    """A right scenario with wrong values in some places, or something else altogether."""

    def spoil(document: Document, changes: list[tuple[list[str], Any]]) -> Document:
        for keys, value in changes:
            patch: Any = value
            for key in reversed(keys):
                patch = {key: patch}
            document = merge_patch(document, patch)
        return document

    changes = st.lists(st.tuples(st.sampled_from(PLACES), ODD_VALUES), min_size=1, max_size=4)
    return st.builds(spoil, documents() | st.just(scenario_document()), changes) | ODD_VALUES


def query_items() -> st.SearchStrategy[list[tuple[str, str]]]:
    """The query of the reference case with odd names and values behind it."""
    texts = TEXTS | st.sampled_from(
        [
            "",
            " 7 ",
            "1e9",
            "1e999",
            "-1",
            "0",
            "٣",
            "0x10",
            "1_000",
            "NaN",
            "inf",
            "9" * 400,
            "9" * 401,
            "null",
            "{}",
            '{"a":NaN}',
            "[" * 300,
            '"><script>alert(1)</script>',
            "' onfocus=x",
            "&amp;",
            "</textarea>",
            "custom",
            "\x00",
        ]
    )
    names = st.sampled_from([*BY_NAME, "units"]) | TEXTS
    start = st.sampled_from(
        [
            [("model", "llama-3.1-8b"), ("hw", "h100-sxm-80gb")],
            [("model", "llama-3.1-8b"), ("hw", "custom"), ("hw_mem", "80"), ("hw_bw", "3350"), ("hw_bf16", "989")],
            [("model", "custom"), ("hw", "h100-sxm-80gb")],
            [],
        ]
    )
    return st.builds(
        lambda first, more: [*(item for item in first if item[0] not in dict(more)), *more],
        start,
        st.lists(st.tuples(names, texts), max_size=5),
    )
