"""The optimizations of a Scenario: guesses, a prefill pool, batches, pages, other attention."""

from typing import Annotated, Any, Self

from pydantic import Field, Strict, field_validator, model_validator

from app.calc.model.attention_variants import AttentionVariant
from app.calc.time.speculation import Method
from app.scenario.parts import CustomAccelerator, Identifier, Part, Real, Ui, Whole, plain_json

METHODS = (
    (Method.DRAFT_MODEL.value, "a draft model"),
    (Method.EAGLE.value, "an EAGLE-3 head"),
    (Method.MTP.value, "the model’s MTP layers"),
    (Method.NGRAM.value, "n-grams"),
)
ATTENTIONS = tuple((variant.value, variant.upper()) for variant in AttentionVariant)


class DraftModel(Part):
    """The small model that guesses, by catalog `id` or by its `config`."""

    id: Annotated[Identifier | None, Ui("draft", "Draft", group="speculation", empty="none")] = Field(
        None, description="Catalog id."
    )
    config: Annotated[
        dict[str, Any] | None,
        Ui("draft_config", "The draft’s config.json", hint="A Hugging Face configuration.", group="speculation"),
    ] = Field(None, description="A Hugging Face config.json, as an object.", max_length=400)

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

    method: Annotated[
        Method | None, Ui("method", "Who guesses", group="speculation", empty="as the rest says", choices=METHODS)
    ] = Field(None, description="Who guesses; follows from the rest where it is left out.")
    draft_tokens: Annotated[Whole, Ui("draft_tokens", "Guesses a step", group="speculation", empty="none")] = Field(
        description="Tokens guessed in each step.", ge=1, le=64
    )
    draft: DraftModel | None = Field(None, description="A draft model beside the model.")
    acceptance_rate: Annotated[Real | None, Ui("accept", "Each accepted", group="speculation", empty="unknown")] = (
        Field(
            None,
            description="Share of the guesses that are accepted, each given that those before it were.",
            ge=0,
            le=1,
        )
    )
    acceptance_length: Annotated[
        Real | None, Ui("accept_len", "Or tokens a step", group="speculation", empty="unknown")
    ] = Field(None, description="Tokens that a step gives, as measured: from 1 to the guesses and one.", ge=1, le=65)

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

    id: Annotated[Identifier | None, Ui("pd_hw", "Accelerator of the prefill pool", group="pool", empty="none")] = (
        Field(None, description="Catalog id.")
    )
    custom: Annotated[
        CustomAccelerator | None,
        Ui(
            "pd_custom",
            "Or a card of your own",
            hint="As JSON, in the terms of hardware.custom in the API.",
            group="pool",
        ),
    ] = Field(None, description="An accelerator of your own.")

    @model_validator(mode="after")
    def _one_of(self) -> Self:
        if (self.id is None) == (self.custom is None):
            raise ValueError("Give a catalog id, or a custom accelerator.")
        return self


class Disaggregation(Part):
    """A prefill pool beside the hardware of the scenario, which then only decodes."""

    hardware: PoolHardware = Field(description="The accelerator of the prefill pool.")
    tensor: Annotated[Whole, Ui("pd_tp", "Tensor parallelism", group="pool")] = Field(
        1, description="Tensor parallelism of an instance of the pool.", ge=1, le=1024
    )
    pipeline: Annotated[Whole, Ui("pd_pp", "Pipeline stages", group="pool")] = Field(
        1, description="Pipeline stages of an instance.", ge=1, le=1024
    )
    data: Annotated[Whole, Ui("pd_dp", "Data ranks", group="pool")] = Field(
        1, description="Data-parallel ranks of an instance.", ge=1, le=4096
    )
    expert: Annotated[Whole, Ui("pd_ep", "Expert groups", group="pool")] = Field(
        1, description="Expert groups of an instance.", ge=1, le=4096
    )
    instances: Annotated[Whole, Ui("pd_x", "Instances", group="pool")] = Field(
        1, description="Instances of the model that prefill.", ge=1, le=10**5
    )
    link: Annotated[Identifier, Ui("pd_link", "Link for the cache", group="pool")] = Field(
        "ib-ndr", description="What a cache travels over: an id of the links, or `card` for the card's own link."
    )
    link_gb_per_s: Annotated[
        Real | None,
        Ui("pd_rate", "Its rate, where it is another", "GB/s a GPU, one way", group="pool", empty="the link’s own"),
    ] = Field(
        None,
        description="Its rate from one GPU in one direction, GB/s, where it is not the link's own.",
        ge=1e-3,
        le=1e6,
    )
    overlap: Annotated[
        Annotated[bool, Strict()],
        Ui(
            "pd_overlap",
            "Sent layer by layer",
            group="pool",
            empty="yes, as usual",
            choices=(("1", "yes"), ("0", "no, at the end")),
        ),
    ] = Field(True, description="The cache of a layer is sent while the next one is computed.")


class Techniques(Part):
    """Optimizations, each left out or null where it is not used."""

    speculative: Speculative | None = Field(None, description="Speculative decoding.")
    disaggregation: Disaggregation | None = Field(None, description="Prefill and decode on different accelerators.")
    chunked_prefill: Annotated[
        Annotated[bool, Strict()],
        Ui("chunked", "Prompts", group="batches", choices=(("1", "in steps"), ("0", "whole"))),
    ] = Field(
        True, description="Prompts are prefilled in steps of engine.max_batched_tokens; false prefills each whole."
    )
    static_batching: Annotated[
        Annotated[bool, Strict()],
        Ui("static", "Batches", group="batches", choices=(("0", "continuous"), ("1", "static, as of old"))),
    ] = Field(False, description="A batch starts together and ends with its longest answer.")
    reserved_tokens: Annotated[
        Whole | None,
        Ui(
            "reserved",
            "Cache reserved for each sequence",
            "tokens",
            hint="Left empty: pages, as today’s engines have them.",
            group="batches",
            empty="pages",
        ),
    ] = Field(
        None,
        description="Cache that is set aside for each sequence when it starts, tokens; null: pages as it grows.",
        ge=1,
        le=10**8,
    )
    attention: Annotated[
        AttentionVariant | None,
        Ui(
            "attention",
            "Attention",
            hint="Another than its own is a what-if: nobody trained that model.",
            group="batches",
            empty="its own",
            choices=ATTENTIONS,
        ),
    ] = Field(None, description="The same model with another attention; nobody trained it. Left out: its own.")

    @field_validator("chunked_prefill", mode="before")
    @classmethod
    def _null_is_the_default(cls, given: Any) -> Any:
        """Links that were saved before it was computed hold a null there."""
        return True if given is None else given
