"""Published configurations as test data: structural keys and values, and what is known of each model from elsewhere.

`basis` says where the keys are from: a file in the repository `source`, the published dimensions, or the default sizes
of a model class. `text_params` is the published total of the language model; where `total_from` says so, it was counted
on an instance of the model's own class instead. `mixers` and `expert_layers` are the published layer pattern, and
`kv_bytes_at_4096` the cache of one sequence of 4,096 tokens in 16 bits, from the published entries of that cache.
`correction_biases` are counted in the total beside what the class calls parameters.
"""

import re
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[1] / "data" / "configs"
_RUN = re.compile(r"\(([^()]*)\)(?:\*(\d+))?|(\S+)")


@cache
def entries() -> dict[str, dict[str, Any]]:
    """Every entry by its id; configurations ready to be read."""
    found: dict[str, dict[str, Any]] = {}
    for file in sorted(FOLDER.glob("*.toml")):
        for name, entry in tomllib.loads(file.read_text(encoding="utf-8")).items():
            assert name not in found, name
            found[name] = entry | {"keys": _unrolled(entry["keys"])}
    return found


def config(name: str, **changes: Any) -> dict[str, Any]:
    """The keys of one entry, with changes; `...` takes a key away."""
    keys = entries()[name]["keys"] | changes
    return {key: value for key, value in keys.items() if value is not ...}


def nested(name: str, block: str = "text_config", **changes: Any) -> dict[str, Any]:
    """The same with changes inside a block."""
    keys: dict[str, Any] = entries()[name]["keys"]
    inner = {key: value for key, value in (keys[block] | changes).items() if value is not ...}
    return {**keys, block: inner}


def unroll(text: str) -> list[Any]:
    """The list that runs stand for: a*2 b is [a, a, b], and (a b)*2 is [a, b, a, b]."""
    found: list[Any] = []
    for inside, times, word in _RUN.findall(text):
        if word:
            name, _, count = word.partition("*")
            found += [int(name) if name.isdigit() else name] * int(count or 1)
        else:
            found += unroll(inside) * int(times or 1)
    return found


def _unrolled(value: Any) -> Any:
    if isinstance(value, dict):
        made = {key: _unrolled(inner) for key, inner in value.items()}
        if "block_configs" in made:
            made["block_configs"] = [_block(*run[1:]) for run in made["block_configs"] for _ in range(run[0])]
        return made
    if value == "@null":  # TOML has no word for it
        return None
    return unroll(value[1:]) if isinstance(value, str) and value.startswith("@") else value


def _block(group: int, factor: float) -> dict[str, Any]:
    """A block of a pruned model: heads in a group and the factor of its width, 0 where the part is left out."""
    attention = {"no_op": group == 0, "n_heads_in_group": group or None, "replace_with_linear": False}
    return {"attention": attention, "ffn": {"no_op": factor == 0, "ffn_mult": factor or None}}
