"""Multi-token prediction: layers after the last that guess further tokens, and what joins them to the model."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from app.calc.architecture import LayerGroup, MultiTokenPrediction
from app.catalog.importing import limits, spellings
from app.catalog.importing.frame import Frame
from app.catalog.importing.keys import Keys
from app.catalog.importing.recipe import Mtp

Pick = Callable[[Sequence[LayerGroup]], LayerGroup]
"""Which layer of the model the predicting layers are like."""
Duplicates = Callable[[Keys, Frame], int | None]
"""Copies of embedding and head that the published files carry."""


def last_layer(each: Sequence[LayerGroup]) -> LayerGroup:
    """They are like the last one."""
    return each[-1]


def first_layer(each: Sequence[LayerGroup]) -> LayerGroup:
    """They are like the first, dense one."""
    return each[0]


def no_duplicates(keys: Keys, frame: Frame) -> int | None:
    """The files hold embedding and head once."""
    return None


def joint_params(hidden_size: int, norms: int = 3) -> int:
    """The projection that joins embedding and hidden state, 2·h², and `norms` of h. DeepSeek-V3: 102,782,464."""
    return 2 * hidden_size * hidden_size + norms * hidden_size


def read_count(keys: Keys, names: Sequence[str] = spellings.MTP_LAYERS, assumed: int = 0, why: str = "") -> int:
    """How many predicting layers the files carry; `assumed` where no key says so, with the reason."""
    count = keys.maybe_whole("mtp_layers", names, limits.LAYERS, least=0)
    if count is None:
        if assumed:
            keys.ledger.assume("mtp_layers", assumed, why)
        return assumed
    return count


def predicting(
    *,
    names: Sequence[str] = spellings.MTP_LAYERS,
    pick: Pick = last_layer,
    norms: int = 3,
    duplicates: Duplicates = no_duplicates,
    assumed: int = 0,
    why: str = "",
) -> Mtp:
    """A reader of predicting layers that are each one layer of the model and a joint projection."""

    def read(keys: Keys, frame: Frame, each: Sequence[LayerGroup]) -> MultiTokenPrediction | None:
        count = read_count(keys, names, assumed, why)
        if not count:
            return None
        layer = replace(pick(each), count=count)
        joint = count * joint_params(frame.hidden_size, norms)
        return MultiTokenPrediction((layer,), joint, duplicates(keys, frame))

    return read


def embedding_and_head(keys: Keys, frame: Frame) -> int | None:
    """Embedding and head once more, as DeepSeek's own files have them."""
    copies = 2 * frame.vocab_size * frame.hidden_size
    keys.ledger.assume(
        "mtp_duplicates", copies, "the published files repeat embedding and head beside the predicting layer"
    )
    return copies


def early_glm(keys: Keys, frame: Frame) -> int | None:
    """GLM-4.5 repeats embedding and head, GLM-4.6 with its longer context does not."""
    if frame.max_position is not None and frame.max_position > 131_072:
        return None
    return embedding_and_head(keys, frame)


def advertised(keys: Keys, frame: Frame, each: Sequence[LayerGroup]) -> MultiTokenPrediction | None:
    """Keys that speak of predicting layers, of which the published files have none (MiniMax M2)."""
    names = ("use_mtp", "num_mtp_modules", "mtp_transformer_layers", "num_nextn_predict_layers")
    if keys.any_of(names):
        keys.ledger.notice("The keys speak of multi-token prediction, but the published files carry no such layers.")
    keys.passed_over(*names)
    return None
