"""What the class that a file names says of the head over the vocabulary, and of models that are none of their own."""

import re
from collections.abc import Mapping
from dataclasses import replace

from app.calc.architecture import SidePath
from app.catalog.importing import limits
from app.catalog.importing.errors import ConfigError, quoted
from app.catalog.importing.keys import Keys
from app.catalog.importing.nesting import Located
from app.catalog.importing.recipe import Body

DRAFT = re.compile(r"Eagle(?!2)|Medusa|Speculator|Draft|NextN|MTP(Model)?$")
"""Classes of heads that guess tokens for another model. Eagle 2 and 2.5 are vision models of the same name."""
DRAFT_KEYS = ("draft_vocab_size", "eagle_config", "medusa_num_heads", "medusa_num_layers", "speculators_model_type")
DRAFT_TYPES = ("eagle", "eagle3", "medusa", "mlp_speculator", "speculators")
CLASSIFIERS = re.compile(r"For(Sequence|Token)Classification$")
HEADED = ("chatglm",)
"""Model types whose class has a head, although it is called a bare model."""
LABELS = ("num_labels", "id2label")


def named_class(whole: Keys) -> str:
    """The first of the classes that the file names; empty where it names none."""
    names = whole.values.get("architectures")
    first = names[0] if isinstance(names, list) and names else None
    return first if isinstance(first, str) else ""


def refuse_drafts(whole: Keys) -> None:
    """Raise for a head that guesses tokens for another model.

    Raises:
        ConfigError: the class or a key says so.
    """
    name = named_class(whole)
    says = "a head that guesses tokens for another model, and no model of its own: it is not computed."
    if DRAFT.search(name):
        raise ConfigError("architectures", f"{quoted(name)} is {says}")
    if whole.values.get("model_type") in DRAFT_TYPES:
        raise ConfigError("model_type", f"{quoted(whole.values['model_type'])} is {says}")
    for key in DRAFT_KEYS:
        if whole.has(key):
            raise whole.refused(key, f"belongs to {says}")


def without_head(located: Located, body: Body) -> Body:
    """The body as the class named has it: one without a head over the vocabulary may have a classifier instead."""
    name = named_class(located.whole)
    classifies = CLASSIFIERS.search(name)
    if not classifies and not _is_bare(name, located):
        return body
    says = f"{quoted(name)} has no head over the vocabulary: none is counted among the weights"
    located.whole.ledger.notice(f"{says}, and times are those of a head that reads the embedding.")
    paths = body.side_paths
    if classifies:
        paths = (*paths, *_classifier(located, body.frame.hidden_size, bias=classifies[1] == "Token"))
    return replace(body, frame=replace(body.frame, tied_embeddings=True), head_bias=False, side_paths=paths)


def _is_bare(name: str, located: Located) -> bool:
    """Whether it is the class of the model type, called a model and nothing else."""
    if not name.endswith("Model"):
        return False
    types = {located.model_type, located.whole.values.get("model_type")} - set(HEADED)
    return _plain(name.removesuffix("Model")) in {_plain(kind) for kind in types if isinstance(kind, str)}


def _plain(name: str) -> str:
    return name.replace("_", "").replace("-", "").lower()


def _classifier(located: Located, hidden_size: int, *, bias: bool) -> tuple[SidePath, ...]:
    """One matrix from hidden size to labels, of which there are two where no key says how many."""
    whole = located.whole
    count, names = whole.values.get(LABELS[0]), whole.values.get(LABELS[1])
    whole.passed_over(*LABELS)
    if count is None:
        count = len(names) if isinstance(names, Mapping) else 2
    if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= limits.COUNT:
        whole.ledger.notice("How many labels its classifier tells apart is unclear: the classifier is not counted.")
        return ()
    whole.ledger.derive("classifier", count * hidden_size, "labels × hidden size")
    return (SidePath("classifier", count * hidden_size, vectors=count if bias else 0),)
