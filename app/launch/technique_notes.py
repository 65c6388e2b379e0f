"""Techniques that no flag of any server says: what the notes of a launch text tell of them."""

from app.scenario_techniques import Techniques


def what_ifs(techniques: Techniques) -> list[str]:
    """A note on each technique that is asked for to compare, and that no server of today runs."""
    found = []
    if techniques.static_batching:
        found.append("A static batch is a what-if: the server that this starts batches continuously.")
    if techniques.reserved_tokens is not None:
        found.append(
            f"Setting {techniques.reserved_tokens:,} tokens of cache aside for each sequence is a what-if: "
            "the server that this starts gives cache out as sequences grow."
        )
    if techniques.attention is not None:
        found.append(
            f"The model with {techniques.attention.upper()} is a what-if that nobody trained: "
            "the server that this starts loads the model as it is."
        )
    return found
