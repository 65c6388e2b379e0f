"""The optimizations of a Scenario: guesses, a prefill pool, batches, pages, other attention."""

from typing import Annotated, Any, Self

from pydantic import Field, Strict, field_validator, model_validator

from app.calc.attention_variants import AttentionVariant
from app.calc.techniques.speculation import Method
from app.scenario_parts import CustomAccelerator, Identifier, Part, Real, Whole, plain_json


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
