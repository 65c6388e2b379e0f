"""The techniques of a scenario: another attention, guesses and their acceptance, and a prefill pool."""

from dataclasses import replace

from app.calc import deployment as calc
from app.calc.accelerator import Accelerator, UnknownPeakError
from app.calc.architecture import Architecture
from app.calc.attention_variants import VariantError, as_variant
from app.calc.engines.parts import Draft
from app.calc.split import Split, SplitError, stage_sizes
from app.calc.techniques.drafters import eagle_head, mtp_drafter
from app.calc.techniques.pools import PrefillPool
from app.calc.techniques.speculation import Method, Speculation, speculation_of
from app.calc.units import GB
from app.catalog.catalog import Catalog
from app.refusal import Refusal, ScenarioError, unknown
from app.resolve_model import ResolvedModel
from app.scenario import Scenario
from app.scenario_techniques import Disaggregation

CARD_LINK = "card"
"""The link of a prefill pool that is the card's own."""


def with_attention(model: ResolvedModel, scenario: Scenario) -> ResolvedModel:
    """The model with the attention that the scenario asks for.

    Raises:
        ScenarioError: it has none, or one that cannot be told as another.
    """
    variant = scenario.techniques.attention
    if variant is None:
        return model
    try:
        return replace(model, architecture=as_variant(model.architecture, variant))
    except VariantError as error:
        raise ScenarioError([Refusal("techniques.attention", str(error))]) from error


def method_of(scenario: Scenario) -> Method | None:
    """Who guesses: as asked, or what follows from the rest; None where nobody does.

    Raises:
        ScenarioError: the method has nothing to guess with.
    """
    asked, path = scenario.techniques.speculative, "techniques.speculative.method"
    if asked is None:
        return None
    if asked.method is None:
        if asked.draft is not None:
            return Method.DRAFT_MODEL
        return Method.MTP if scenario.model.mtp else Method.NGRAM
    if asked.method is Method.DRAFT_MODEL and asked.draft is None:
        raise ScenarioError([Refusal("techniques.speculative.draft", "Name the draft model.")])
    if asked.method is Method.MTP and not scenario.model.mtp:
        raise ScenarioError([Refusal(path, "mtp needs the model's own layers loaded (model.mtp).")])
    if asked.method in (Method.EAGLE, Method.NGRAM) and scenario.model.mtp:
        raise ScenarioError([Refusal(path, "The model's own layers are loaded to guess (model.mtp): leave one out.")])
    return asked.method


def drafter_of(method: Method | None, architecture: Architecture, draft: Draft | None) -> Draft | None:
    """What is loaded beside the model to guess: a draft model or a head."""
    return eagle_head(architecture) if method is Method.EAGLE else draft


def resolve_speculation(
    scenario: Scenario,
    method: Method | None,
    architecture: Architecture,
    precision: calc.Precision,
    draft: Draft | None,
) -> Speculation | None:
    """Speculation with what guesses; None where nobody does, or where no acceptance is known: it is not timed then."""
    asked = scenario.techniques.speculative
    if asked is None or method is None:
        return None
    drafter = mtp_drafter(architecture, precision.weights) if method is Method.MTP else draft
    return speculation_of(method, asked.draft_tokens, asked.acceptance_rate, asked.acceptance_length, drafter)


def resolve_pool(
    asked: Disaggregation,
    accelerator: Accelerator,
    architecture: Architecture,
    precision: calc.Precision,
    catalog: Catalog,
) -> PrefillPool:
    """The prefill pool on `accelerator`.

    Raises:
        ScenarioError: it does not divide, publishes no rate for what is computed, or the link is unknown.
    """
    path = "techniques.disaggregation"
    split, refusals = Split(asked.tensor, asked.pipeline, asked.data, asked.expert), []
    if split.expert > 1 and not architecture.has_experts:
        refusals.append(Refusal(f"{path}.expert", f"{architecture.name} has no experts to share out."))
    try:
        split.check()
        stage_sizes(architecture.n_layers, split.pipeline)
        architecture.split(split)
    except SplitError as error:
        refusals.append(Refusal(f"{path}.tensor", str(error)))
    try:
        accelerator.peak(precision.compute)
    except UnknownPeakError as error:
        refusals.append(Refusal(f"{path}.hardware.id", str(error)))
    if refusals:
        raise ScenarioError(refusals)
    name, rate = _link(asked, accelerator, catalog)
    return PrefillPool(accelerator, split, asked.instances, name, rate, asked.overlap)


def _link(asked: Disaggregation, accelerator: Accelerator, catalog: Catalog) -> tuple[str, float]:
    path = "techniques.disaggregation.link"
    if asked.link == CARD_LINK:
        name, rate = f"{accelerator.name}'s own link", accelerator.link_bytes_per_s_one_way
        if rate is None and asked.link_gb_per_s is None:
            raise ScenarioError([Refusal(path, f"No link between cards is known for {accelerator.name}.")])
    else:
        link = catalog.links.get(asked.link)
        if link is None:
            known = {CARD_LINK: None, **catalog.links}
            raise ScenarioError([unknown(path, "link", asked.link, known)])
        name, rate = link.name, link.bytes_per_s
    if asked.link_gb_per_s is not None:
        rate = asked.link_gb_per_s * GB
    return name, rate or 0.0
