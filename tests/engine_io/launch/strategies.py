"""Scenarios by chance, written out as `resolve` writes them: what a launch text is made of."""

from typing import Any

from hypothesis import strategies as st

from app.calc.dtypes import WeightFormat
from app.calc.model.attention_variants import AttentionVariant
from app.calc.time.lengths import Shape
from app.scenario.scenario import Scenario
from tests.factories import shipped_catalog
from tests.features.strategies import CACHES, NAMES, configs, hardware, reals, some

Document = dict[str, Any]
ENGINES = ("vllm", "sglang", "tensorrt-llm", "llama.cpp", "llm-d")
SIZES = st.sampled_from([1, 1, 1, 2, 3, 4, 8, 16, 32])


def models() -> st.SearchStrategy[Document]:
    own = st.fixed_dictionaries({"config": configs()}, optional={"name": NAMES})
    drawn = st.fixed_dictionaries({"architecture": st.just({"hidden_size": 64, "note": "a & b = c"})})
    listed = st.sampled_from(list(shipped_catalog().models)).map(lambda id_: {"id": id_})
    return st.builds(lambda model, mtp: {**model, "mtp": mtp}, listed | listed | own | drawn, st.booleans())


@st.composite
def speculation(draw: st.DrawFn, with_mtp: bool) -> Document:
    listed = st.sampled_from(list(shipped_catalog().models)).map(lambda id_: {"id": id_})
    own = configs().map(lambda config: {"config": config})
    tokens, draft = draw(st.integers(1, 64)), draw(st.none() | st.none() | listed | own)
    methods = ["draft_model"] if draft else ["eagle", "ngram", *(["mtp"] if with_mtp else [])]
    acceptance = some(acceptance_rate=reals(0, 1)) | some(acceptance_length=reals(1, tokens + 1))
    method = draw(st.none() | st.sampled_from(methods))
    return {"draft_tokens": tokens, "draft": draft, "method": method, **draw(acceptance)}


def pools() -> st.SearchStrategy[Document]:
    sizes = some(tensor=SIZES, pipeline=SIZES, data=SIZES, expert=SIZES, instances=st.integers(1, 10**5))
    ways = some(
        link=st.sampled_from(["card", "ib-hdr"]), link_gb_per_s=st.none() | reals(1e-3, 1e6), overlap=st.booleans()
    )
    return st.builds(lambda card, split, way: {"hardware": card, **split, **way}, hardware(), sizes, ways)


def techniques(with_mtp: bool) -> st.SearchStrategy[Document]:
    return some(
        speculative=st.none() | speculation(with_mtp),
        disaggregation=st.none() | pools(),
        chunked_prefill=st.booleans(),
        static_batching=st.booleans(),
        reserved_tokens=st.none() | st.integers(1, 10**8),
        attention=st.none() | st.sampled_from(AttentionVariant).map(str),
    )


def weights(model: Document) -> st.SearchStrategy[str]:
    formats = st.sampled_from([str(w) for w in WeightFormat])
    if "id" not in model:
        return formats | st.just("native")
    # "native" is written out only where no one format's name says what the checkpoint ships.
    native = str(shipped_catalog().plans[model["id"]].label)
    return st.just(native) | formats


@st.composite
def scenarios(draw: st.DrawFn, engine: str) -> Scenario:
    """A scenario as it stands after normalising: count, formats and defaults written out."""
    model = draw(models())
    split = {
        "tensor": draw(SIZES),
        "pipeline": draw(SIZES),
        "data": draw(SIZES),
        "decode_context": draw(SIZES),
    }
    split["expert"] = draw(st.sampled_from([1, split["tensor"] * split["data"], split["data"]]))
    ranks = split["tensor"] * split["pipeline"] * split["data"]
    settings = draw(
        some(
            version=st.sampled_from(["0.11.0", "0.10.1.1", "b6000", "1.2.0rc3", "nightly-2026"]),
            memory_utilization=reals(0.01, 1) | st.sampled_from([0.9, 0.92, 1.0]),
            max_model_len=st.integers(1, 10**8) | st.just(8192),
            max_num_seqs=st.integers(1, 10**6) | st.just(256),
            max_batched_tokens=st.integers(1, 10**8),
            block_size=st.integers(1, 65536),
            prefix_caching=st.booleans(),
            enforce_eager=st.booleans(),
            total_memory_bytes=reals(1, 1e15),
            weights_bytes=reals(0, 1e15),
            activation_bytes=reals(0, 1e15),
            graph_bytes=reals(0, 1e15),
            kv_pool_bytes=reals(1, 1e15),
        )
    )
    if engine == "llm-d":
        settings["underneath"] = draw(st.sampled_from(["vllm", "sglang"]))
    document = {
        "model": model,
        "hardware": {**draw(hardware()), "count": ranks * draw(st.sampled_from([1, 1, 2, 3, 7]))},
        "precision": {
            "weights": draw(weights(model)),
            "kv_cache": draw(st.sampled_from(CACHES)),
            "compute": draw(st.sampled_from([None, "bf16", "fp8"])),
        },
        "parallelism": split,
        "engine": {"id": engine, **settings},
        "workload": draw(
            some(
                prompt_tokens=st.integers(1, 10**8),
                output_tokens=st.integers(1, 10**8),
                concurrency=st.none() | st.integers(1, 10**6),
                answer_shape=st.sampled_from(Shape).map(str),
                longest_answer=st.none() | st.integers(1, 10**8),
                prefix_hit_rate=reals(0, 1),
                shared_prefix_tokens=st.integers(0, 10**8),
                slo_ttft_s=st.none() | reals(1e-9, 1e6),
            )
        ),
        "techniques": draw(techniques(model["mtp"])),
        "observed": draw(some(kv_tokens=st.integers(0, 10**12), max_concurrency=reals(0, 1e9))),
        "memory_basis": draw(st.sampled_from(["reported", "marketed"])),
    }
    return Scenario.model_validate(document)
