"""The Scenario: what the user asked. The one thing that is stored, shared and posted; `schema_version` 1.

Validation of the wire form only; ids are looked up in `app.resolve`.
"""

from typing import Annotated, Any, Literal, Self

from pydantic import Field, Strict, field_validator, model_validator

from app.calc.accelerator import MemoryBasis
from app.calc.deployment_limits import MOST_CONCURRENT
from app.calc.dtypes import Dtype, WeightFormat
from app.calc.techniques.lengths import Shape
from app.scenario_calibration import OwnCalibration
from app.scenario_parts import CustomAccelerator, Identifier, Part, Real, Text, Whole, plain_json
from app.scenario_techniques import Techniques

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
    calibration: OwnCalibration | None = Field(
        None, description="Calibration to a benchmark of your own; null: expected as fitted to published measurements."
    )
    memory_basis: MemoryBasis = Field(
        MemoryBasis.REPORTED, description="Memory as the driver reports it, or as it is marketed."
    )

    def document(self) -> dict[str, Any]:
        """The JSON form with every field written out, so that a default that changes later changes no link."""
        return self.model_dump(mode="json")
