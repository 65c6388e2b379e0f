"""The Scenario: what the user asked. The one thing that is stored, shared and posted; `schema_version` 1.

Validation of the wire form only; ids are looked up in `app.scenario.resolve`.

The scenario that stands there before anything is asked.
"""

from typing import Annotated, Any, Literal, Self

from pydantic import Field, Strict, field_validator, model_validator

from app.calc.accelerator import MemoryBasis
from app.calc.dtypes import Dtype, WeightFormat
from app.calc.memory.engines.parts import MOST_CONCURRENT
from app.calc.time.lengths import Shape
from app.scenario.parts import CustomAccelerator, Identifier, OwnCalibration, Part, Real, Text, Ui, Whole, plain_json
from app.scenario.techniques import Techniques

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

    id: Annotated[Identifier | None, Ui("model", "Model")] = Field(
        None, description="Catalog id.", examples=["llama-3.1-8b"]
    )
    name: Annotated[Text | None, Ui("model_name", "Name of your model")] = Field(
        None, description="Name of a custom model."
    )
    config: Annotated[dict[str, Any] | None, Ui("config", "Its config.json")] = Field(
        None, description="A Hugging Face config.json, as an object.", max_length=400
    )
    quantization: Annotated[
        dict[str, Any] | None,
        Ui("quant", "Its hf_quant_config.json", hint="Where one lies beside the config.", group="own model"),
    ] = Field(
        None, description="The hf_quant_config.json that lies beside the config, where there is one.", max_length=400
    )
    read_as: Annotated[
        Identifier | None,
        Ui("read_as", "Read as", hint="A family for a model_type that is not known.", group="own model"),
    ] = Field(
        None, description="Family to read a config of an unknown model_type as; the import suggests, you confirm."
    )
    architecture: Annotated[
        dict[str, Any] | None,
        Ui(
            "arch",
            "A description, in place of a config",
            hint="In the catalog’s own terms; the editor writes one.",
            group="own model",
        ),
    ] = Field(None, description="A model in the catalog's own terms: shape, groups of layers, kinds.", max_length=40)
    mtp: Annotated[
        Annotated[bool, Strict()],
        Ui("mtp", "Load the multi-token-prediction layers, where the model has any", group="speculation"),
    ] = Field(False, description="Load the multi-token-prediction layers: their weights, and their own cache.")

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

    id: Annotated[Identifier | None, Ui("hw", "Accelerator")] = Field(
        None, description="Catalog id.", examples=["h100-sxm-80gb"]
    )
    custom: CustomAccelerator | None = Field(None, description="An accelerator of your own.")
    count: Annotated[
        Whole | None, Ui("count", "All GPUs", group="split", empty="one replica", phrase="{} GPUs", empty_is_null=True)
    ] = Field(
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

    weights: Annotated[
        StoredWeights | None,
        Ui(
            "w",
            "Weights",
            empty="as shipped (native)",
            choices=(("native", "as shipped (native)"),),
            phrase="weights {}",
        ),
    ] = Field(
        None,
        description="Format of the layers' matrices; the rest is 16-bit. `native` is what the checkpoint ships, "
        "group by group. Left out: the same; the normalised scenario writes out the format where one name says it.",
    )
    kv_cache: Annotated[Cache, Ui("kv", "KV cache", phrase="cache {}")] = Field(
        Dtype.BF16, description="Element type of the KV cache."
    )
    compute: Annotated[
        Dtype | None, Ui("compute", "Arithmetic", empty="as weights and card allow", phrase="arithmetic {}")
    ] = Field(
        None,
        description="Element type of the arithmetic in the layers' matrices. Left out: the narrowest that weights and "
        "card share, else bf16, else fp16; the normalised scenario writes out which.",
    )


class Parallelism(Part):
    """How the model is split over accelerators."""

    tensor: Annotated[Whole, Ui("tp", "Tensor parallelism", hint="GPUs that share each layer.", phrase="TP {}")] = (
        Field(1, description="Tensor parallelism.", ge=1, le=1024)
    )
    pipeline: Annotated[Whole, Ui("pp", "Pipeline stages", group="split", phrase="PP {}")] = Field(
        1, description="Pipeline stages.", ge=1, le=1024
    )
    expert: Annotated[Whole, Ui("ep", "Expert groups", group="split", phrase="EP {}")] = Field(
        1, description="Expert parallelism: groups that hold whole experts; divides tensor × data.", ge=1, le=4096
    )
    data: Annotated[Whole, Ui("dp", "Data ranks", group="split", phrase="DP {}")] = Field(
        1, description="Data-parallel attention: each rank has the attention whole and its own requests.", ge=1, le=4096
    )
    decode_context: Annotated[Whole, Ui("dcp", "Context ranks", group="split", phrase="DCP {}")] = Field(
        1, description="Decode context parallelism: the tensor ranks share out the tokens of a cache.", ge=1, le=1024
    )


SHAPES = ((Shape.FIXED.value, "all alike"), (Shape.UNIFORM.value, "uniform"), (Shape.EXPONENTIAL.value, "exponential"))
Bytes = Annotated[Real, Field(ge=0, le=1e15)]


class Engine(Part):
    """The inference engine and the settings that change how it divides memory.

    What is left out follows the engine's own default; the normalised scenario writes it out. The bytes are those of
    one GPU: what was measured, and beats what is assumed.
    """

    id: Annotated[Identifier, Ui("engine", "Engine")] = Field("vllm", description="Engine id, see /engines.")
    underneath: Annotated[
        Identifier | None, Ui("under", "Engine underneath", empty="vLLM, as llm-d runs it by default")
    ] = Field(None, description="The engine that llm-d runs; vllm where it is left out.")
    version: Annotated[
        Annotated[str, Field(pattern=r"^[0-9A-Za-z][0-9A-Za-z.+_-]{0,39}$")] | None,
        Ui(
            "engine_version",
            "Release",
            hint="Such as 0.11.0. Left empty: the newest known.",
            group="engine",
            empty="the newest known",
            phrase="release {}",
        ),
    ] = Field(None, description="Release, such as 0.11.0; the newest known where it is left out.")
    memory_utilization: Annotated[
        Real | None, Ui("util", "GPU memory utilization", group="engine", empty="engine’s default")
    ] = Field(None, description="Share of the card the engine may use.", ge=0.01, le=1)
    max_model_len: Annotated[
        Whole | None, Ui("max_len", "Maximum sequence length", "tokens", group="engine", empty="model’s limit")
    ] = Field(None, description="Longest sequence served, tokens.", ge=1, le=10**8)
    max_num_seqs: Annotated[Whole | None, Ui("max_seqs", "Sequences at a time", group="engine", empty="default")] = (
        Field(None, description="Sequences run at a time; further ones wait.", ge=1, le=10**6)
    )
    max_batched_tokens: Annotated[
        Whole | None, Ui("max_batched", "Tokens of a step", group="engine", empty="default")
    ] = Field(None, description="Tokens of one prefill step.", ge=1, le=10**8)
    block_size: Annotated[Whole | None, Ui("block", "Tokens of a block", group="engine", empty="default")] = Field(
        None, description="Tokens of a cache block.", ge=1, le=65536
    )
    prefix_caching: Annotated[
        Annotated[bool, Strict()] | None,
        Ui("prefix", "Prefix caching", group="engine", empty="default", choices=(("1", "on"), ("0", "off"))),
    ] = Field(None, description="Keep finished prefixes for reuse.")
    enforce_eager: Annotated[
        Annotated[bool, Strict()], Ui("eager", "No captured CUDA graphs (eager)", group="engine")
    ] = Field(False, description="No captured CUDA graphs.")
    total_memory_bytes: Annotated[
        Annotated[float, Strict(), Field(ge=1, le=1e15)] | None,
        Ui("seen", "Seen by the engine", "B", group="measured", empty="known"),
    ] = Field(None, description="The card's memory as the engine sees it, bytes.")
    weights_bytes: Annotated[Bytes | None, Ui("loaded", "Loaded weights", "B", group="measured", empty="computed")] = (
        Field(None, description="Loaded weights, bytes.")
    )
    activation_bytes: Annotated[
        Bytes | None, Ui("activation", "Activations, peak", "B", group="measured", empty="assumed")
    ] = Field(None, description="Peak of the activations, bytes.")
    non_framework_bytes: Annotated[
        Bytes | None, Ui("non_framework", "Non-framework", "B", group="measured", empty="assumed")
    ] = Field(None, description="What neither weights nor activations are: collectives, workspaces, contexts; bytes.")
    graph_bytes: Annotated[Bytes | None, Ui("graphs", "CUDA graphs", "B", group="measured", empty="assumed")] = Field(
        None, description="Captured CUDA graphs, as far as they are charged, bytes."
    )
    kv_pool_bytes: Annotated[Real | None, Ui("pool", "Cache pool", "B", group="measured", empty="computed")] = Field(
        None, description="Measured cache pool, bytes.", ge=1, le=1e15
    )


class Observed(Part):
    """What an engine's start-up log says came out of it, to stand beside the prediction. Nothing is computed of it."""

    kv_tokens: Annotated[Whole | None, Ui("log_tokens", "Logged tokens", group="measured")] = Field(
        None, description="Tokens of the cache, as logged.", ge=0, le=10**12
    )
    gpu_blocks: Annotated[Whole | None, Ui("log_blocks", "Logged blocks", group="measured")] = Field(
        None, description="Blocks of the cache, as logged.", ge=0, le=10**12
    )
    max_concurrency: Annotated[Real | None, Ui("log_concurrency", "Logged concurrency", group="measured")] = Field(
        None, description="Longest requests at a time, as logged.", ge=0, le=1e9
    )


class Workload(Part):
    """The requests."""

    prompt_tokens: Annotated[
        Whole, Ui("prompt", "Prompt length", "tokens", slider=("log", 1, 131072), phrase="prompt {}")
    ] = Field(1000, description="Tokens of a prompt.", ge=1, le=10**8)
    output_tokens: Annotated[
        Whole, Ui("out", "Answer length", "tokens", slider=("log", 1, 16384), phrase="answer {}")
    ] = Field(500, description="Tokens of an answer.", ge=1, le=10**8)
    concurrency: Annotated[
        Whole | None,
        Ui(
            "batch",
            "Concurrent requests",
            slider=("log", 1, 1024),
            empty="as many as fit",
            hint="Left empty: as many as fit at full length.",
            phrase="{} users",
            empty_is_null=True,
        ),
    ] = Field(
        64, description="Requests served at a time; null: as many as fit at full length.", ge=1, le=MOST_CONCURRENT
    )
    answer_shape: Annotated[Shape, Ui("spread", "Lengths of answers", group="batches", choices=SHAPES)] = Field(
        Shape.FIXED, description="How answers are spread about their length; a static batch waits for the longest."
    )
    longest_answer: Annotated[Whole | None, Ui("longest", "Cut off at", "tokens", group="batches", empty="no cut")] = (
        Field(None, description="Where answers of exponential lengths are cut off, tokens.", ge=1, le=10**8)
    )
    prefix_hit_rate: Annotated[
        Real, Ui("hit", "Prompt found in the prefix cache", group="prefix", slider=("linear", 0, 1))
    ] = Field(0.0, description="Share of the prompt found in the prefix cache.", ge=0, le=1)
    shared_prefix_tokens: Annotated[
        Whole, Ui("shared", "The same in every prompt, kept once", "tokens", group="prefix")
    ] = Field(0, description="Tokens of every prompt that are the same and stand in the cache once.", ge=0, le=10**8)
    slo_ttft_s: Annotated[Real | None, Ui("ttft", "First token within", "s", group="targets", empty="no target")] = (
        Field(None, description="Target: time to first token, s.", gt=0, le=1e6)
    )
    slo_tpot_s: Annotated[Real | None, Ui("tpot", "Each token within", "s", group="targets", empty="no target")] = (
        Field(None, description="Target: time per output token, s.", gt=0, le=1e6)
    )


class Scenario(Part):
    """What is asked: a model on an accelerator, in a precision, under an engine and a workload."""

    schema_version: Annotated[Whole, Ui("v", "Version of the scenario’s form")] = Field(
        1, description="Version of this form.", ge=1, le=1
    )
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
    memory_basis: Annotated[
        MemoryBasis,
        Ui(
            "basis",
            "Memory of the card",
            group="engine",
            choices=(("reported", "as the driver reports it"), ("marketed", "as on the box")),
        ),
    ] = Field(MemoryBasis.REPORTED, description="Memory as the driver reports it, or as it is marketed.")

    def document(self) -> dict[str, Any]:
        """The JSON form with every field written out, so that a default that changes later changes no link."""
        return self.model_dump(mode="json")


DEFAULT_MODEL, DEFAULT_HARDWARE = "llama-3.1-8b", "h100-sxm-80gb"


def default_scenario() -> Scenario:
    """What the workbench shows before anything is asked."""
    return Scenario.model_validate({"model": {"id": DEFAULT_MODEL}, "hardware": {"id": DEFAULT_HARDWARE}})
