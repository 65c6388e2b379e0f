"""The short flat names of a page's query string, and the way between them and a Scenario.

The fields of the Scenario declare the names (`Ui`); how a text is read follows from the type of the field. Forms,
addresses and API queries use them.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, get_args

from app.calc.dtypes import Dtype
from app.checkpoint.text import StrictJsonError, loads
from app.scenario.parts import Part, Ui
from app.scenario.refusal import Refusal, ScenarioError
from app.scenario.scenario import Scenario

CUSTOM = "custom"
MAX_VALUE = 400
MAX_CONFIG = 20_000
_FLAGS: Mapping[str, bool] = {"1": True, "0": False, "true": True, "false": False}
_WHOLE = re.compile(r"[+-]?[0-9]{1,30}")
SIZE_PATTERN = r"^\s*[+-]?[0-9.]+([eE][+-]?[0-9]{1,3})?\s*([kmgtKMGT]i?)?[bB]?\s*$"
"""Bytes with their unit, for the documentation; `_read_bytes` is the judge."""
_SIZE = re.compile(r"(.*?)\s*([kmgt]i?)?b?", re.IGNORECASE)
_STEPS = ("", "k", "m", "g", "t")
_REAL = re.compile(r"[+-]?([0-9]{1,60}(\.[0-9]{0,60})?|\.[0-9]{1,60})([eE][+-]?[0-9]{1,3})?")


class Kind(Enum):
    """How the text of a field is read."""

    TEXT = "text"
    WHOLE = "whole"
    REAL = "real"
    JSON = "json"
    FLAG = "flag"
    BYTES = "bytes"


@dataclass(frozen=True, slots=True)
class QueryField:
    """One name of the query: a leaf of the Scenario. An empty value means null where `empty_is_null`, else the field's
    default.

    `schema` is the JSON schema of its value: type, bounds, values, default.
    """

    name: str
    path: str
    kind: Kind
    empty_is_null: bool
    label: str
    unit: str
    description: str
    ui: Ui
    schema: Mapping[str, Any]

    @property
    def usual(self) -> str:
        """The text of the query that says the same as an empty one; empty where that is null, or refused."""
        default = self.schema.get("default")
        return "" if self.empty_is_null or default is None else written(default)

    @property
    def choices(self) -> tuple[tuple[str, str], ...]:
        """Texts of the query with their words, where only some are allowed; first what an empty one means."""
        named = self.ui.choices or tuple((value, value) for value in self.schema.get("enum", ()))
        return ((("", self.ui.empty),) if named and self.ui.empty else ()) + named

    def with_unit(self, number: str) -> str:
        """A number of this field, with its unit where it has one."""
        return f"${number}" if self.unit == "$" else f"{number} {self.unit}".rstrip()

    @property
    def range_words(self) -> str:
        """The bounds of a share, such as "0 to 1"; empty for what is none."""
        low, high = self.schema.get("minimum"), self.schema.get("maximum")
        return f"{low:g} to {high:g}" if self.kind is Kind.REAL and low is not None and high == 1 else ""


_KINDS = {"integer": Kind.WHOLE, "number": Kind.REAL, "boolean": Kind.FLAG, "object": Kind.JSON, "string": Kind.TEXT}
# Rates that most cards publish; the others fold away.
_USUAL_RATES = (Dtype.BF16, Dtype.FP8)


def _leaves(part: type[Part], definitions: Mapping[str, Any], above: str, always: bool) -> Iterator[QueryField]:
    """The fields of a part that stands at the path `above`, in their order; `always`: in every scenario, of itself."""
    properties = (definitions.get(part.__name__) or definitions)["properties"]
    for key, info in part.model_fields.items():
        path, schema = f"{above}.{key}".removeprefix("."), _plain(properties[key], definitions)
        ui = next((datum for datum in info.metadata if isinstance(datum, Ui)), None)
        if ui is None:
            below = next(one for one in (info.annotation, *get_args(info.annotation)) if _is_part(one))
            yield from _leaves(below, definitions, path, always and info.default_factory is not None)
        elif "{}" in ui.name and schema["type"] == "object":
            for dtype in Dtype:
                unit = ui.unit.replace("FLOP", "OP") if dtype.value.startswith("int") else ui.unit
                rate = replace(ui, unit=unit, group="" if dtype in _USUAL_RATES else ui.group)
                yield _leaf(
                    f"{path}.{dtype}", dtype, rate, schema["additionalProperties"], info.description, null=False
                )
        else:
            null = (always and info.default is None) if ui.empty_is_null is None else ui.empty_is_null
            yield _leaf(path, above.rpartition(".")[2], ui, schema, info.description, null=null)


def _leaf(path: str, above: str, ui: Ui, schema: Mapping[str, Any], told: str | None, *, null: bool) -> QueryField:
    kind = Kind.BYTES if ui.unit == "B" else _KINDS[schema["type"]]
    label = ui.label.format(above)
    return QueryField(ui.name.format(above), path, kind, null, label, ui.unit, told or f"{label}.", ui, schema)


def _is_part(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, Part)


_CONSTRAINTS = (
    *("type", "enum", "default", "minimum", "maximum", "exclusiveMinimum", "minLength", "maxLength", "pattern"),
    *("examples", "additionalProperties"),
)


def _plain(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> dict[str, Any]:
    """`schema` without null and references, as far as the text of a query has to do with it."""
    other: Mapping[str, Any] = next((one for one in schema.get("anyOf", ()) if one.get("type") != "null"), {})
    merged = {**other, **schema}
    if "$ref" in merged:
        merged = {**definitions[merged["$ref"].rpartition("/")[2]], **merged}
    found = {key: merged[key] for key in _CONSTRAINTS if key in merged}
    return {key: value for key, value in found.items() if key != "default" or value is not None}


def _fields() -> tuple[QueryField, ...]:
    document = Scenario.model_json_schema()
    return tuple(_leaves(Scenario, {**document["$defs"], Scenario.__name__: document}, "", always=True))


_LLM_D = "llm-d"
_DRAFT, _DRAFT_CONFIG = "techniques.speculative.draft.id", "techniques.speculative.draft.config"
_CALIBRATION = "calibration."
_OF_A_CUSTOM_MODEL = ("model.config", "model.name", "model.quantization", "model.read_as", "model.architecture")
# Where a refusal of a whole part is shown: at the field that opens it.
_NAME_OF_PART = {
    "model": "model",
    "hardware": "hw",
    "hardware.custom": "hw_name",
    "hardware.custom.dense_tflops": "hw_bf16",
    "techniques.speculative": "draft_tokens",
    "techniques.disaggregation": "pd_hw",
    "calibration": "cal_name",
    "calibration.decode": "cal_decode",
    "calibration.prefill": "cal_prefill",
}


def scenario_document(items: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """The scenario document that query items stand for, to be validated as any posted one.

    Names outside the table are left to the caller (`unknown_names`). `hw=custom`, `model=custom` and `draft=custom`
    choose the custom fields; beside a catalog id they are kept out, so that a form may send them all. So is `under`
    beside an engine that runs nothing underneath, and a calibration whose `cal_name` is sent empty.

    Raises:
        ScenarioError: a text that is no number or no JSON, or a name given twice; each at its path.
    """
    values: dict[str, str] = {}
    refusals = []
    for name, value in items:
        if name not in BY_NAME:
            continue
        if name in values and value != values[name]:
            refusals.append(Refusal(BY_NAME[name].path, "is given twice."))
        values[name] = value
    document: dict[str, Any] = {}
    for name, text in values.items():
        field = BY_NAME[name]
        if _is_set_aside(field, values):
            continue
        if text == "":
            if field.empty_is_null:
                _put(document, field.path, None)
            continue
        try:
            _put(document, field.path, _read(field, text))
        except ValueError as error:
            refusals.append(Refusal(field.path, str(error)))
    if values.get("hw") == CUSTOM:
        document.setdefault("hardware", {}).setdefault("custom", {})  # so that each missing figure is asked for by name
    if values.get("model") == CUSTOM and not values.get("config") and not values.get("arch"):
        refusals.append(Refusal("model.config", "Paste the config.json of your model here."))
    if values.get("draft") == CUSTOM and not values.get("draft_config"):
        refusals.append(Refusal(_DRAFT_CONFIG, "Paste the config.json of the draft model here."))
    if refusals:
        raise ScenarioError(refusals)
    return document


def query_items(scenario: Scenario) -> list[tuple[str, str]]:
    """The query items that give `scenario` back, every field written out; the inverse of `scenario_document`."""
    document = scenario.document()
    items = []
    for field in FIELDS:
        value = _get(document, field.path)
        if field.path == "model.id" and value is None:
            value = CUSTOM
        if field.path == "hardware.id" and value is None:
            value = CUSTOM
        if field.path == _DRAFT and value is None and _get(document, _DRAFT_CONFIG) is not None:
            value = CUSTOM
        if value is None:
            if field.empty_is_null:
                items.append((field.name, ""))
            continue
        items.append((field.name, written(value)))
    return items


def name_of(path: str) -> str | None:
    """The query name of the field at a scenario path, or of the nearest field above it; None where there is none."""
    while path:
        if path in _NAME_BY_PATH:
            return _NAME_BY_PATH[path]
        path = path.rpartition(".")[0]
    return None


def unknown_names(names: Iterable[str], besides: Sequence[str] = ()) -> list[str]:
    """Names that are neither fields of a scenario nor among `besides`, in order, once each."""
    return list(dict.fromkeys(name for name in names if name not in BY_NAME and name not in besides))


def names_set_aside(items: Iterable[tuple[str, str]]) -> list[str]:
    """Names with a value that another choice in the query leaves unread, in order; what chooses is none of them.

    A calibration that is set aside by its empty name is set aside on purpose.
    """
    values = dict(items)
    fields = (BY_NAME[name] for name, value in values.items() if name in BY_NAME and value not in ("", CUSTOM))
    return [f.name for f in fields if not f.path.startswith(_CALIBRATION) and _is_set_aside(f, values)]


def _is_set_aside(field: QueryField, values: Mapping[str, str]) -> bool:
    """True for the id "custom" itself, and for what belongs to another choice than the one that was made."""
    if field.path in ("model.id", "hardware.id", _DRAFT):
        return values[field.name] == CUSTOM
    if field.path == _DRAFT_CONFIG:
        return values.get("draft", CUSTOM) != CUSTOM
    if field.path == "engine.underneath":
        return values[field.name] != "" and values.get("engine", _LLM_D) != _LLM_D
    if field.path in _OF_A_CUSTOM_MODEL:
        return values.get("model", CUSTOM) != CUSTOM
    if field.path.startswith(_CALIBRATION):
        return values.get("cal_name") == ""
    if field.path.startswith("hardware.custom."):
        return values.get("hw", CUSTOM) != CUSTOM
    return False


def _read(field: QueryField, text: str) -> Any:
    if len(text) > (MAX_CONFIG if field.kind is Kind.JSON else MAX_VALUE):
        raise ValueError("is too long.")
    if field.kind is Kind.TEXT:
        return text
    if field.kind is Kind.JSON:
        return _read_json(text)
    trimmed = text.strip()
    if field.kind is Kind.FLAG:
        if trimmed not in _FLAGS:
            raise ValueError("must be 1 or 0.")
        return _FLAGS[trimmed]
    if field.kind is Kind.WHOLE:
        if not _WHOLE.fullmatch(trimmed):
            raise ValueError("must be a whole number, written in digits.")
        return int(trimmed)
    if field.kind is Kind.BYTES:
        return _read_bytes(trimmed)
    if not _REAL.fullmatch(trimmed):
        raise ValueError("must be a number, such as 0.9 or 1e9.")
    return float(trimmed)


def _read_bytes(text: str) -> float:
    """Bytes, or a number with its unit: 46.8 GiB, 500 MB. Steps are of 1,024 where it has an i, else of 1,000."""
    found = _SIZE.fullmatch(text)
    number, unit = (found[1], (found[2] or "").lower()) if found else (text, "")
    if not _REAL.fullmatch(number):
        raise ValueError("must be bytes, such as 5e10, or a number with its unit, such as 46.8 GiB or 50 GB.")
    base = 1024 if unit.endswith("i") else 1000
    return float(number) * float(base ** _STEPS.index(unit[:1]))


def _read_json(text: str) -> Any:
    try:
        return loads(text, constants_are_text=True)
    except StrictJsonError as error:
        raise ValueError(f"is no JSON that is read here: {error}") from error


def written(value: Any) -> str:
    """A value of the scenario's document as the text of a query."""
    if isinstance(value, bool):
        return "1" if value else "0"
    if isinstance(value, dict):
        return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    if isinstance(value, float):
        return repr(value) if value != int(value) or abs(value) >= 1e16 else str(int(value))
    return str(value)


def written_bytes(size: float) -> str:
    """`size` as a person would type it: in GiB, MiB or GB where that gives back the very same bytes, else in bytes."""
    for unit, scale in (("GiB", 2.0**30), ("MiB", 2.0**20), ("GB", 1e9)):
        number = f"{size / scale:.6g}"
        if size >= scale / 100 and "e" not in number and float(number) * scale == size:
            return f"{number} {unit}"
    return written(size)


def _put(document: dict[str, Any], path: str, value: Any) -> None:
    *parents, last = path.split(".")
    for key in parents:
        document = document.setdefault(key, {})
    document[last] = value


def _get(document: Mapping[str, Any], path: str) -> Any:
    value: Any = document
    for key in path.split("."):
        value = value.get(key) if isinstance(value, dict) else None
    return value


FIELDS = _fields()
"""Every name of the query, in the order in which an address is written."""
BY_NAME: Mapping[str, QueryField] = {field.name: field for field in FIELDS}
BY_PATH: Mapping[str, QueryField] = {field.path: field for field in FIELDS}
_NAME_BY_PATH = {field.path: field.name for field in FIELDS} | _NAME_OF_PART
