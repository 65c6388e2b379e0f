"""Which model a llama.cpp log loads, and the format of its file."""

import re
from collections.abc import Iterator, Mapping

from app.calc.dtypes import WeightFormat
from app.startup_log.log_format import Heard
from app.startup_log.model_names import find_model
from app.startup_log.number_formats import stated_weights

_MOST_NAMES = 16
_NAME = re.compile(r"[ ]{0,20}(?:str)?[ ]{0,40}= ([^\n]{1,120})")
_PLACES = (
    ("general.name", _NAME),
    ("general.basename", _NAME),
    ("tensors from ", re.compile(r"([^\n]{1,300}?) \(version")),
    ("loading model ", re.compile(r"'([^'\n]{1,300})'")),
)
_FILE_TYPES = (
    ("print_info: file type", re.compile(r"[ ]{0,20}= ([A-Za-z0-9_]{2,12})")),
    ("model ftype", re.compile(r"[ ]{0,20}= ([A-Za-z0-9_]{2,12})")),
)
_FORMATS: Mapping[str, WeightFormat] = {
    "F32": WeightFormat.FP32,
    "all": WeightFormat.FP32,
    "F16": WeightFormat.FP16,
    "BF16": WeightFormat.BF16,
    "Q8_0": WeightFormat.INT8,
    "Q4_0": WeightFormat.INT4,
    "Q4_1": WeightFormat.INT4,
    "Q4_K": WeightFormat.INT4,
    "IQ4_NL": WeightFormat.INT4,
    "IQ4_XS": WeightFormat.INT4,
    "MXFP4": WeightFormat.MXFP4,
    "NVFP4": WeightFormat.NVFP4,
}
_EXACT = frozenset({"F32", "all", "F16", "BF16", "MXFP4", "NVFP4"})


def tell_names(heard: Heard, text: str) -> None:
    """Fill in the model and the weight format of one model's part of the log."""
    models = heard.catalog.models
    found = [model for name in _after(text, _PLACES) if (model := find_model(name, models))]
    ids = {model.id for model in found}
    record = None
    if len(ids) == 1:
        record = models[found[0].id]
        heard.findings.tell("model.id", record.id)
    elif ids:
        heard.findings.note("The log names more than one model of the catalog, so none is taken.")
    for file_type in _after(text, _FILE_TYPES):
        said = _FORMATS.get(file_type)
        if said is None:
            heard.findings.note(
                "The file's weight format has no name in a scenario; the measured weights stand for it."
            )
            return
        heard.findings.tell("precision.weights", stated_weights(record, said))
        if file_type not in _EXACT:
            heard.findings.note(f"The file's weights are read as {said}; the measured weights include its own scales.")
        return


def _after(text: str, places: tuple[tuple[str, re.Pattern[str]], ...]) -> Iterator[str]:
    for literal, behind in places:
        at, found = text.find(literal), 0
        while at >= 0 and found < _MOST_NAMES:
            found += 1
            if matched := behind.match(text, at + len(literal)):
                yield matched[1].strip()
            at = text.find(literal, at + len(literal))
