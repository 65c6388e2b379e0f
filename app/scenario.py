"""The Scenario: what the user asked. The one thing that is stored, shared and posted; `schema_version` 1.

Validation of the wire form only; ids are looked up in `app.resolve`.
"""

from functools import partial
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, Strict, field_validator, model_validator

from app.calc.accelerator import MemoryBasis
from app.calc.attention_variants import AttentionVariant
from app.calc.deployment_limits import MOST_CONCURRENT
from app.calc.dtypes import Dtype, WeightFormat
from app.calc.techniques.lengths import Shape
from app.calc.techniques.speculation import Method
from app.strict_json import dumps
from app.text import clean_text, within

MAX_TEXT = 120

Text = Annotated[
    str,
    Field(min_length=1, max_length=MAX_TEXT),
    AfterValidator(clean_text),
    AfterValidator(partial(within, most=MAX_TEXT)),
]
Identifier = Annotated[str, Field(min_length=1, max_length=MAX_TEXT, pattern=r"^[a-z0-9][a-z0-9._-]*$")]
Whole = Annotated[int, Strict()]
Real = Annotated[float, Strict()]
Cache = Literal[Dtype.BF16, Dtype.FP16, Dtype.FP8, Dtype.INT8, Dtype.FP4, Dtype.INT4, Dtype.FP32]

StoredWeights = Literal[
    WeightFormat.FP32,
    WeightFormat.BF16,
    WeightFormat.FP16,
    WeightFormat.FP8,
    WeightFormat.INT8,
    WeightFormat.INT4,
    WeightFormat.MXFP4,
    WeightFormat.NVFP4,
    "native",
]


def plain_json(given: dict[str, Any] | None) -> dict[str, Any] | None:
    """`given`, if it is what can be stored and come back: no NaN, no infinity, no half character at any depth.

    Raises:
        ValueError: it is not.
    """
    if given is not None:
        try:
            dumps(given)
        except (TypeError, ValueError, RecursionError) as error:
            raise ValueError("Must be plain JSON: finite numbers, whole characters.") from error
    return given


class Part(BaseModel):
    """Closed, frozen and finite: an unknown key, a NaN or an infinity is refused by name."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class Model(Part):
    """A model of the catalog by `id`, or a custom one: by its Hugging Face `config`, or described layer by layer."""

    id: Identifier | None = Field(None, description="Catalog id.", examples=["llama-3.1-8b"])
    name: Text | None = Field(None, description="Name of a custom model.")
    config: dict[str, Any] | None = Field(None, description="A Hugging Face config.json, as an object.", max_length=400)
    quantization: dict[str, Any] | None = Field(
        None, description="The hf_quant_config.json that lies beside the config, where there is one.", max_length=400
    )
    read_as: Identifier | None = Field(
        None, description="Family to read a config of an unknown model_type as; the import suggests, you confirm."
    )
    architecture: dict[str, Any] | None = Field(
        None, description="A model in the catalog's own terms: shape, groups of layers, kinds.", max_length=40
    )
    mtp: Annotated[bool, Strict()] = Field(
        False, description="Load the multi-token-prediction layers: their weights, and their own cache."
    )

    @model_validator(mode="after")
    def _one_of(self) -> Self:
        if sum(given is not None for given in (self.id, self.config, self.architecture)) != 1:
            raise ValueError("Give a catalog id, or a config of your own, or an architecture.")
        if self.id is not None and self.name is not None:
            raise ValueError("A name goes with a config; a catalog model has its own.")
        if self.config is None and (self.quantization is not None or self.read_as is not None):
            raise ValueError("quantization and read_as go with a config.")
        return self

    @field_validator("config", "quantization", "architecture")
    @classmethod
    def _is_plain_json(cls, given: dict[str, Any] | None) -> dict[str, Any] | None:
        return plain_json(given)


class CustomAccelerator(Part):
    """An accelerator that the catalog does not have. Rates are dense; the link is one-way; GB is 10^9 bytes."""

    name: Text = Field("Custom accelerator", description="How it is called on the page.")
    memory_gb: Real = Field(description="Memory as marketed, GB.", ge=0.001, le=1e6)
    memory_reported_mib: Whole | None = Field(None, description="Memory as the driver reports it, MiB.", ge=1, le=10**9)
    bandwidth_gb_per_s: Real = Field(description="Memory bandwidth, GB/s.", ge=0.001, le=1e9)
    dense_tflops: dict[Dtype, Annotated[float, Strict(), Field(ge=1e-6, le=1e9)]] = Field(
        description="Dense matrix rate by element type, TFLOP/s (10^12).", min_length=1
    )
    tdp_w: Real | None = Field(None, description="Rated power, W.", ge=0.001, le=1e6)
    usd_per_hour: Real | None = Field(None, description="Price of an hour, US dollars.", ge=0, le=1e6)
    link_one_way_gb_per_s: Real | None = Field(None, description="Link in one direction, GB/s.", ge=0.001, le=1e9)


class Hardware(Part):
    """An accelerator of the catalog by `id`, or a `custom` one; `count` of them in all."""

    id: Identifier | None = Field(None, description="Catalog id.", examples=["h100-sxm-80gb"])
    custom: CustomAccelerator | None = Field(None, description="An accelerator of your own.")
    count: Whole | None = Field(
        None,
        description="All accelerators of the deployment. Left out: those of one replica; the normalised scenario "
        "writes out how many.",
        ge=1,
        le=10**6,
    )

    @model_validator(mode="after")
    def _one_of(self) -> Self:
        if (self.id is None) == (self.custom is None):
            raise ValueError("Give a catalog id, or a custom accelerator.")
        return self


class Precision(Part):
    """Number formats."""

    weights: StoredWeights | None = Field(
        None,
        description="Format of the layers' matrices; the rest is 16-bit. `native` is what the checkpoint ships, "
        "group by group. Left out: the same; the normalised scenario writes out the format where one name says it.",
    )
    kv_cache: Cache = Field(Dtype.BF16, description="Element type of the KV cache.")
    compute: Dtype | None = Field(
        None,
        description="Element type of the arithmetic in the layers' matrices. Left out: the narrowest that weights and "
        "card share, else bf16, else fp16; the normalised scenario writes out which.",
    )


class Parallelism(Part):
    """How the model is split over accelerators."""

    tensor: Whole = Field(1, description="Tensor parallelism.", ge=1, le=1024)
    pipeline: Whole = Field(1, description="Pipeline stages.", ge=1, le=1024)
    expert: Whole = Field(
        1, description="Expert parallelism: groups that hold whole experts; divides tensor × data.", ge=1, le=4096
    )
    data: Whole = Field(
        1, description="Data-parallel attention: each rank has the attention whole and its own requests.", ge=1, le=4096
    )
    decode_context: Whole = Field(
        1, description="Decode context parallelism: the tensor ranks share out the tokens of a cache.", ge=1, le=1024
    )


Bytes = Annotated[Real, Field(ge=0, le=1e15)]


class Engine(Part):
    """The inference engine and the settings that change how it divides memory.

    What is left out follows the engine's own default; the normalised scenario writes it out. The bytes are those of
    one GPU: what was measured, and beats what is assumed.
    """

    id: Identifier = Field("vllm", description="Engine id, see /engines.")
    underneath: Identifier | None = Field(None, description="The engine that llm-d runs; vllm where it is left out.")
    version: Annotated[str, Field(pattern=r"^[0-9A-Za-z][0-9A-Za-z.+_-]{0,39}$")] | None = Field(
        None, description="Release, such as 0.11.0; the newest known where it is left out."
    )
    memory_utilization: Real | None = Field(None, description="Share of the card the engine may use.", ge=0.01, le=1)
    max_model_len: Whole | None = Field(None, description="Longest sequence served, tokens.", ge=1, le=10**8)
    max_num_seqs: Whole | None = Field(None, description="Sequences run at a time; further ones wait.", ge=1, le=10**6)
    max_batched_tokens: Whole | None = Field(None, description="Tokens of one prefill step.", ge=1, le=10**8)
    block_size: Whole | None = Field(None, description="Tokens of a cache block.", ge=1, le=65536)
    prefix_caching: Annotated[bool, Strict()] | None = Field(None, description="Keep finished prefixes for reuse.")
    enforce_eager: Annotated[bool, Strict()] = Field(False, description="No captured CUDA graphs.")
    total_memory_bytes: Annotated[float, Strict(), Field(ge=1, le=1e15)] | None = Field(
        None, description="The card's memory as the engine sees it, bytes."
    )
    weights_bytes: Bytes | None = Field(None, description="Loaded weights, bytes.")
    activation_bytes: Bytes | None = Field(None, description="Peak of the activations, bytes.")
    non_framework_bytes: Bytes | None = Field(
        None, description="What neither weights nor activations are: collectives, workspaces, contexts; bytes."
    )
    graph_bytes: Bytes | None = Field(None, description="Captured CUDA graphs, as far as they are charged, bytes.")
    kv_pool_bytes: Real | None = Field(None, description="Measured cache pool, bytes.", ge=1, le=1e15)


class Observed(Part):
    """What an engine's start-up log says came out of it, to stand beside the prediction. Nothing is computed of it."""

    kv_tokens: Whole | None = Field(None, description="Tokens of the cache, as logged.", ge=0, le=10**12)
    gpu_blocks: Whole | None = Field(None, description="Blocks of the cache, as logged.", ge=0, le=10**12)
    max_concurrency: Real | None = Field(None, description="Longest requests at a time, as logged.", ge=0, le=1e9)


class Workload(Part):
    """The requests."""

    prompt_tokens: Whole = Field(1000, description="Tokens of a prompt.", ge=1, le=10**8)
    output_tokens: Whole = Field(500, description="Tokens of an answer.", ge=1, le=10**8)
    concurrency: Whole | None = Field(
        64, description="Requests served at a time; null: as many as fit at full length.", ge=1, le=MOST_CONCURRENT
    )
    answer_shape: Shape = Field(
        Shape.FIXED, description="How answers are spread about their length; a static batch waits for the longest."
    )
    longest_answer: Whole | None = Field(
        None, description="Where answers of exponential lengths are cut off, tokens.", ge=1, le=10**8
    )
    prefix_hit_rate: Real = Field(0.0, description="Share of the prompt found in the prefix cache.", ge=0, le=1)
    shared_prefix_tokens: Whole = Field(
        0, description="Tokens of every prompt that are the same and stand in the cache once.", ge=0, le=10**8
    )
    slo_ttft_s: Real | None = Field(None, description="Target: time to first token, s.", gt=0, le=1e6)
    slo_tpot_s: Real | None = Field(None, description="Target: time per output token, s.", gt=0, le=1e6)


class DraftModel(Part):
    """The small model that guesses, by catalog `id` or by its `config`."""

    id: Identifier | None = Field(None, description="Catalog id.")
    config: dict[str, Any] | None = Field(None, description="A Hugging Face config.json, as an object.", max_length=400)

    @model_validator(mode="after")
    def _one_of(self) -> Self:
        if (self.id is None) == (self.config is None):
            raise ValueError("Give a catalog id, or a config of your own.")
        return self

    @field_validator("config")
    @classmethod
    def _is_plain_json(cls, given: dict[str, Any] | None) -> dict[str, Any] | None:
        return plain_json(given)


class Speculative(Part):
    """Speculative decoding: who guesses, how many tokens, and how many of them are accepted.

    Without a `method` a `draft` guesses where there is one, else the model's own multi-token-prediction layers where
    `model.mtp` loads them, else text already seen (n-grams), which costs no memory. Without an acceptance it is counted
    in memory alone.
    """

    method: Method | None = Field(None, description="Who guesses; follows from the rest where it is left out.")
    draft_tokens: Whole = Field(description="Tokens guessed in each step.", ge=1, le=64)
    draft: DraftModel | None = Field(None, description="A draft model beside the model.")
    acceptance_rate: Real | None = Field(
        None, description="Share of the guesses that are accepted, each given that those before it were.", ge=0, le=1
    )
    acceptance_length: Real | None = Field(
        None, description="Tokens that a step gives, as measured: from 1 to the guesses and one.", ge=1, le=65
    )

    @model_validator(mode="after")
    def _one_acceptance(self) -> Self:
        if self.acceptance_rate is not None and self.acceptance_length is not None:
            raise ValueError("Give an acceptance rate or an acceptance length, not both.")
        if self.acceptance_length is not None and self.acceptance_length > self.draft_tokens + 1:
            raise ValueError(f"A step of {self.draft_tokens} guesses gives at most {self.draft_tokens + 1} tokens.")
        if self.draft is not None and self.method not in (None, Method.DRAFT_MODEL):
            raise ValueError("A draft model is given, and another method is asked for; leave one of the two out.")
        return self


class PoolHardware(Part):
    """An accelerator of the catalog by `id`, or a `custom` one."""

    id: Identifier | None = Field(None, description="Catalog id.")
    custom: CustomAccelerator | None = Field(None, description="An accelerator of your own.")

    @model_validator(mode="after")
    def _one_of(self) -> Self:
        if (self.id is None) == (self.custom is None):
            raise ValueError("Give a catalog id, or a custom accelerator.")
        return self


class Disaggregation(Part):
    """A prefill pool beside the hardware of the scenario, which then only decodes."""

    hardware: PoolHardware = Field(description="The accelerator of the prefill pool.")
    tensor: Whole = Field(1, description="Tensor parallelism of an instance of the pool.", ge=1, le=1024)
    pipeline: Whole = Field(1, description="Pipeline stages of an instance.", ge=1, le=1024)
    data: Whole = Field(1, description="Data-parallel ranks of an instance.", ge=1, le=4096)
    expert: Whole = Field(1, description="Expert groups of an instance.", ge=1, le=4096)
    instances: Whole = Field(1, description="Instances of the model that prefill.", ge=1, le=10**5)
    link: Identifier = Field(
        "ib-ndr", description="What a cache travels over: an id of the links, or `card` for the card's own link."
    )
    link_gb_per_s: Real | None = Field(
        None,
        description="Its rate from one GPU in one direction, GB/s, where it is not the link's own.",
        ge=1e-3,
        le=1e6,
    )
    overlap: Annotated[bool, Strict()] = Field(
        True, description="The cache of a layer is sent while the next one is computed."
    )


class Techniques(Part):
    """Optimizations, each left out or null where it is not used."""

    speculative: Speculative | None = Field(None, description="Speculative decoding.")
    disaggregation: Disaggregation | None = Field(None, description="Prefill and decode on different accelerators.")
    chunked_prefill: Annotated[bool, Strict()] = Field(
        True, description="Prompts are prefilled in steps of engine.max_batched_tokens; false prefills each whole."
    )
    static_batching: Annotated[bool, Strict()] = Field(
        False, description="A batch starts together and ends with its longest answer."
    )
    reserved_tokens: Whole | None = Field(
        None,
        description="Cache that is set aside for each sequence when it starts, tokens; null: pages as it grows.",
        ge=1,
        le=10**8,
    )
    attention: AttentionVariant | None = Field(
        None, description="The same model with another attention; nobody trained it. Left out: its own."
    )

    @field_validator("chunked_prefill", mode="before")
    @classmethod
    def _null_is_the_default(cls, given: Any) -> Any:
        """Links that were saved before it was computed hold a null there."""
        return True if given is None else given


class Scenario(Part):
    """What is asked: a model on an accelerator, in a precision, under an engine and a workload."""

    schema_version: Whole = Field(1, description="Version of this form.", ge=1, le=1)
    model: Model
    hardware: Hardware
    precision: Precision = Field(default_factory=Precision)
    parallelism: Parallelism = Field(default_factory=Parallelism)
    engine: Engine = Field(default_factory=Engine)
    workload: Workload = Field(default_factory=Workload)
    techniques: Techniques = Field(default_factory=Techniques)
    observed: Observed = Field(default_factory=Observed)
    memory_basis: MemoryBasis = Field(
        MemoryBasis.REPORTED, description="Memory as the driver reports it, or as it is marketed."
    )

    def document(self) -> dict[str, Any]:
        """The JSON form with every field written out, so that a default that changes later changes no link."""
        return self.model_dump(mode="json")
