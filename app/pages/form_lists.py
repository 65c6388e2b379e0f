"""The choices of the workbench's form: one list for each field that has them, made once for a catalog."""

from dataclasses import dataclass

from app.calc.dtypes import Dtype, WeightFormat
from app.calc.notation import quantity
from app.calc.units import GB
from app.catalog.catalog import Catalog
from app.catalog.engines import EngineRecord
from app.holding import ENGINE
from app.model_facts import ModelFacts
from app.pages.model_rows import size_words
from app.resolve_engine import MAY_RUN_UNDERNEATH
from app.resolve_techniques import CARD_LINK
from app.scenario_query import CUSTOM

Choice = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Group:
    """Choices under one heading; each is a value, a label, and words to search by."""

    label: str
    choices: tuple[tuple[str, str, str], ...]


@dataclass(frozen=True, slots=True)
class FormLists:
    """Every list of choices the form offers; made once for a catalog."""

    models: tuple[Group, ...]
    drafts: tuple[Group, ...]
    pools: tuple[Group, ...]
    accelerators: tuple[Group, ...]
    engines: tuple[Choice, ...]
    underneath: tuple[Choice, ...]
    weights: tuple[Choice, ...]
    cache: tuple[Choice, ...]
    links: tuple[Choice, ...]


def form_lists(catalog: Catalog) -> FormLists:
    """The choices that `catalog` gives."""
    models = _model_groups(catalog)
    names = {e.id: _engine_label(e, catalog) for e in catalog.engines.values()}
    return FormLists(
        models=models,
        drafts=(Group("None", (("", "No draft model", "none n-gram"),)), *models),
        pools=(Group("None", (("", "None: prompts share the GPUs", "none together"),)), *_accelerators(catalog)),
        accelerators=(*_accelerators(catalog), _OWN_ACCELERATOR),
        engines=tuple(names.items()),
        underneath=tuple((id_, names[id_]) for id_ in MAY_RUN_UNDERNEATH),
        weights=tuple((fmt.value, f"{fmt.value} · {fmt.layout.bits_per_weight:.4g} bits a weight") for fmt in _WEIGHTS),
        cache=tuple((dtype.value, f"{dtype.value} · {dtype.bits} bits") for dtype in _CACHES),
        links=(
            ("", "InfiniBand NDR or RoCE, as usual"),
            (CARD_LINK, "the card’s own link"),
            *((link.id, link.name) for link in catalog.links.values()),
        ),
    )


def _engine_label(engine: EngineRecord, catalog: Catalog) -> str:
    return engine.name if engine.treated_as is None else f"{engine.name} · as {catalog.engines[engine.treated_as].name}"


# The usual choices first.
_WEIGHTS = (
    WeightFormat.BF16,
    WeightFormat.FP16,
    WeightFormat.FP8,
    WeightFormat.INT8,
    WeightFormat.INT4,
    WeightFormat.MXFP4,
    WeightFormat.NVFP4,
    WeightFormat.FP32,
)
_CACHES = (Dtype.BF16, Dtype.FP16, Dtype.FP8, Dtype.INT8, Dtype.FP4, Dtype.INT4, Dtype.FP32)


def _model_groups(catalog: Catalog) -> tuple[Group, ...]:
    """Models by family, with their size and what of it is active; the custom one last."""
    families: dict[str, list[tuple[str, str, str]]] = {}
    for record in catalog.models.values():
        words = " ".join((record.hub_id, record.family, *record.same_shape))
        row = (record.id, f"{record.name} · {size_words(ModelFacts(record, catalog.engines[ENGINE]))}", words)
        families.setdefault(record.family, []).append(row)
    groups = [Group(family, tuple(rows)) for family, rows in families.items()]
    return (*groups, Group("Your own", ((CUSTOM, "Custom model…", "custom own config.json"),)))


def _accelerators(catalog: Catalog) -> tuple[Group, ...]:
    """Accelerators by maker, with memory and bandwidth."""
    makers: dict[str, list[tuple[str, str, str]]] = {}
    for record in catalog.accelerators.values():
        bandwidth = quantity(record.memory.bandwidth_gb_per_s * GB, "B/s", 3)
        label = f"{record.name} · {record.memory.marketed_gb:g} GB · {bandwidth}"
        row = (record.id, label, f"{record.vendor} {record.architecture}")
        makers.setdefault(record.vendor, []).append(row)
    return tuple(Group(maker, tuple(rows)) for maker, rows in makers.items())


_OWN_ACCELERATOR = Group("Your own", ((CUSTOM, "Custom accelerator…", "custom own"),))
