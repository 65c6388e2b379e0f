"""Names for plans: the shortest phrases that tell them apart."""

from collections.abc import Sequence
from itertools import combinations

from app.answer import Answer
from app.compare.differences import Difference, differences
from app.compare.field_words import phrase_of

MOST_PARTS = 3
MOST_FIELDS = 10
# What a person would name a plan by comes first; fields that only follow from these come last.
_FIRST = (
    "model.id",
    "hardware.id",
    "precision.weights",
    "precision.kv_cache",
    "parallelism.tensor",
    "parallelism.pipeline",
    "parallelism.data",
    "parallelism.expert",
    "hardware.count",
    "engine.id",
    "workload.prompt_tokens",
    "workload.output_tokens",
    "workload.concurrency",
)


def names(answers: Sequence[Answer], titles: Sequence[str | None], letters: Sequence[str]) -> list[str]:
    """A name for each answer, no two alike: its title, else what sets it apart, else "Plan A"."""
    if len(answers) == 1 and titles[0] is None:
        deployment = answers[0].evaluation.deployment
        return [f"{deployment.architecture.name} on {deployment.accelerator.name}"]
    phrases = _phrases(answers)
    found = [
        title or phrase or f"Plan {letter}" for title, phrase, letter in zip(titles, phrases, letters, strict=True)
    ]
    return [
        f"{name} ({letter})" if found.count(name) > 1 else name for name, letter in zip(found, letters, strict=True)
    ]


def _phrases(answers: Sequence[Answer]) -> list[str]:
    """The same few fields for all, so that the names can be read across; empty where nothing differs."""
    found = sorted(differences(answers), key=_rank)[:MOST_FIELDS]
    wanted = len({answer.scenario.model_dump_json() for answer in answers})
    best: tuple[int, list[str]] = (1, [""] * len(answers))
    for count in range(1, MOST_PARTS + 1):
        for chosen in combinations(found, count):
            told = [", ".join(_parts(chosen, index, answers)) for index in range(len(answers))]
            if len(set(told)) > best[0]:
                best = len(set(told)), told
            if best[0] == wanted:
                return best[1]
    return best[1]


def _rank(difference: Difference) -> int:
    return _FIRST.index(difference.path) if difference.path in _FIRST else len(_FIRST)


def _parts(chosen: Sequence[Difference], index: int, answers: Sequence[Answer]) -> list[str]:
    found = []
    for one in chosen:
        value = one.values[index]
        if isinstance(value, (dict, list)):
            found.append(f"{one.label}: {one.words(answers, binary=False)[index]}")
        else:
            found.append(phrase_of(one.path, value, answers[index]))
    return found
