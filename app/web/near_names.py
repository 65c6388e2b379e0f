"""What somebody may have meant who asked for an item that is not there."""

from collections.abc import Mapping
from difflib import get_close_matches

MOST_CHARACTERS = 60
MOST_NAMES = 5


def near_ids(given: str, names: Mapping[str, str]) -> list[str]:
    """At most five ids of `names` (name by id) that hold what was given, else those that look most like it."""
    wanted = given[:MOST_CHARACTERS].casefold().replace("_", "-").replace(" ", "-").strip("-")
    if not wanted:
        return []
    spelled = {id_: f"{id_} {name.casefold().replace(' ', '-')}" for id_, name in names.items()}
    holding = [id_ for id_, text in spelled.items() if wanted in text]
    if holding:
        return holding[:MOST_NAMES]
    near = get_close_matches(wanted, list(names), n=MOST_NAMES, cutoff=0.5)
    by_name = {name.casefold().replace(" ", "-"): id_ for id_, name in names.items()}
    near += [by_name[name] for name in get_close_matches(wanted, list(by_name), n=MOST_NAMES, cutoff=0.6)]
    return list(dict.fromkeys(near))[:MOST_NAMES]
