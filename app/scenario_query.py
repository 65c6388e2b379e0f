"""The short flat names of a page's query string, and the way between them and a Scenario.

One table says it all: name, path in the scenario, and how the text is read. Forms, addresses and API queries use it.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from app.calc.dtypes import Dtype
from app.refusal import Refusal, ScenarioError
from app.scenario import Scenario
from app.strict_json import StrictJsonError, loads

CUSTOM = "custom"
MAX_VALUE = 400
MAX_CONFIG = 20_000
_FLAGS: Mapping[str, bool] = {"1": True, "0": False, "true": True, "false": False}
_WHOLE = re.compile(r"[+-]?[0-9]{1,30}")
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
    """One name of the query. An empty value means null where `empty_is_null`, else the field's default."""

    name: str
    path: str
    kind: Kind
    empty_is_null: bool = False


FIELDS: tuple[QueryField, ...] = (
    QueryField("v", "schema_version", Kind.WHOLE),
    QueryField("model", "model.id", Kind.TEXT),
    QueryField("model_name", "model.name", Kind.TEXT),
    QueryField("config", "model.config", Kind.JSON),
    QueryField("quant", "model.quantization", Kind.JSON),
    QueryField("read_as", "model.read_as", Kind.TEXT),
    QueryField("arch", "model.architecture", Kind.JSON),
    QueryField("mtp", "model.mtp", Kind.FLAG),
    QueryField("hw", "hardware.id", Kind.TEXT),
    QueryField("hw_name", "hardware.custom.name", Kind.TEXT),
    QueryField("hw_mem", "hardware.custom.memory_gb", Kind.REAL),
    QueryField("hw_mib", "hardware.custom.memory_reported_mib", Kind.WHOLE),
    QueryField("hw_bw", "hardware.custom.bandwidth_gb_per_s", Kind.REAL),
    *(QueryField(f"hw_{dtype}", f"hardware.custom.dense_tflops.{dtype}", Kind.REAL) for dtype in Dtype),
    QueryField("hw_tdp", "hardware.custom.tdp_w", Kind.REAL),
    QueryField("hw_usd", "hardware.custom.usd_per_hour", Kind.REAL),
    QueryField("hw_link", "hardware.custom.link_one_way_gb_per_s", Kind.REAL),
    QueryField("count", "hardware.count", Kind.WHOLE, empty_is_null=True),
    QueryField("w", "precision.weights", Kind.TEXT, empty_is_null=True),
    QueryField("kv", "precision.kv_cache", Kind.TEXT),
    QueryField("compute", "precision.compute", Kind.TEXT, empty_is_null=True),
    QueryField("tp", "parallelism.tensor", Kind.WHOLE),
    QueryField("pp", "parallelism.pipeline", Kind.WHOLE),
    QueryField("ep", "parallelism.expert", Kind.WHOLE),
    QueryField("dp", "parallelism.data", Kind.WHOLE),
    QueryField("dcp", "parallelism.decode_context", Kind.WHOLE),
    QueryField("engine", "engine.id", Kind.TEXT),
    QueryField("under", "engine.underneath", Kind.TEXT, empty_is_null=True),
    QueryField("engine_version", "engine.version", Kind.TEXT, empty_is_null=True),
    QueryField("util", "engine.memory_utilization", Kind.REAL, empty_is_null=True),
    QueryField("max_len", "engine.max_model_len", Kind.WHOLE, empty_is_null=True),
    QueryField("max_seqs", "engine.max_num_seqs", Kind.WHOLE, empty_is_null=True),
    QueryField("max_batched", "engine.max_batched_tokens", Kind.WHOLE, empty_is_null=True),
    QueryField("block", "engine.block_size", Kind.WHOLE, empty_is_null=True),
    QueryField("prefix", "engine.prefix_caching", Kind.FLAG, empty_is_null=True),
    QueryField("eager", "engine.enforce_eager", Kind.FLAG),
    QueryField("seen", "engine.total_memory_bytes", Kind.BYTES, empty_is_null=True),
    QueryField("loaded", "engine.weights_bytes", Kind.BYTES, empty_is_null=True),
    QueryField("activation", "engine.activation_bytes", Kind.BYTES, empty_is_null=True),
    QueryField("non_framework", "engine.non_framework_bytes", Kind.BYTES, empty_is_null=True),
    QueryField("graphs", "engine.graph_bytes", Kind.BYTES, empty_is_null=True),
    QueryField("pool", "engine.kv_pool_bytes", Kind.BYTES, empty_is_null=True),
    QueryField("prompt", "workload.prompt_tokens", Kind.WHOLE),
    QueryField("out", "workload.output_tokens", Kind.WHOLE),
    QueryField("batch", "workload.concurrency", Kind.WHOLE, empty_is_null=True),
    QueryField("spread", "workload.answer_shape", Kind.TEXT),
    QueryField("longest", "workload.longest_answer", Kind.WHOLE, empty_is_null=True),
    QueryField("hit", "workload.prefix_hit_rate", Kind.REAL),
    QueryField("shared", "workload.shared_prefix_tokens", Kind.WHOLE),
    QueryField("ttft", "workload.slo_ttft_s", Kind.REAL, empty_is_null=True),
    QueryField("tpot", "workload.slo_tpot_s", Kind.REAL, empty_is_null=True),
    QueryField("draft_tokens", "techniques.speculative.draft_tokens", Kind.WHOLE),
    QueryField("draft", "techniques.speculative.draft.id", Kind.TEXT),
    QueryField("draft_config", "techniques.speculative.draft.config", Kind.JSON),
    QueryField("method", "techniques.speculative.method", Kind.TEXT),
    QueryField("accept", "techniques.speculative.acceptance_rate", Kind.REAL),
    QueryField("accept_len", "techniques.speculative.acceptance_length", Kind.REAL),
    QueryField("pd_hw", "techniques.disaggregation.hardware.id", Kind.TEXT),
    QueryField("pd_custom", "techniques.disaggregation.hardware.custom", Kind.JSON),
    QueryField("pd_tp", "techniques.disaggregation.tensor", Kind.WHOLE),
    QueryField("pd_pp", "techniques.disaggregation.pipeline", Kind.WHOLE),
    QueryField("pd_dp", "techniques.disaggregation.data", Kind.WHOLE),
    QueryField("pd_ep", "techniques.disaggregation.expert", Kind.WHOLE),
    QueryField("pd_x", "techniques.disaggregation.instances", Kind.WHOLE),
    QueryField("pd_link", "techniques.disaggregation.link", Kind.TEXT),
    QueryField("pd_rate", "techniques.disaggregation.link_gb_per_s", Kind.REAL),
    QueryField("pd_overlap", "techniques.disaggregation.overlap", Kind.FLAG),
    QueryField("chunked", "techniques.chunked_prefill", Kind.FLAG),
    QueryField("static", "techniques.static_batching", Kind.FLAG),
    QueryField("reserved", "techniques.reserved_tokens", Kind.WHOLE, empty_is_null=True),
    QueryField("attention", "techniques.attention", Kind.TEXT, empty_is_null=True),
    QueryField("log_tokens", "observed.kv_tokens", Kind.WHOLE, empty_is_null=True),
    QueryField("log_blocks", "observed.gpu_blocks", Kind.WHOLE, empty_is_null=True),
    QueryField("log_concurrency", "observed.max_concurrency", Kind.REAL, empty_is_null=True),
    QueryField("basis", "memory_basis", Kind.TEXT),
    QueryField("cal_name", "calibration.name", Kind.TEXT),
    QueryField("cal_decode", "calibration.decode.factor", Kind.REAL),
    QueryField("cal_decode_low", "calibration.decode.low", Kind.REAL),
    QueryField("cal_decode_high", "calibration.decode.high", Kind.REAL),
    QueryField("cal_decode_n", "calibration.decode.points", Kind.WHOLE),
    QueryField("cal_prefill", "calibration.prefill.factor", Kind.REAL),
    QueryField("cal_prefill_low", "calibration.prefill.low", Kind.REAL),
    QueryField("cal_prefill_high", "calibration.prefill.high", Kind.REAL),
    QueryField("cal_prefill_n", "calibration.prefill.points", Kind.WHOLE),
)
BY_NAME: Mapping[str, QueryField] = {field.name: field for field in FIELDS}
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
_NAME_BY_PATH = {field.path: field.name for field in FIELDS} | _NAME_OF_PART


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
        items.append((field.name, _write(value)))
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


def _write(value: Any) -> str:
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
    return _write(size)


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
