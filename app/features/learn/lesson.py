"""The lesson: every chapter for one scenario, in the order in which one leads to the next."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from app.calc.memory.engines.parts import MOST_TOKENS
from app.catalog.catalog import Catalog
from app.features.learn.case import Case, Cases, Chapter, cases_of
from app.features.learn.doorways import doorways
from app.features.learn.hardware import beliefs, cards, engines
from app.features.learn.measuring import measuring
from app.features.learn.number import LiveNumber
from app.features.learn.phases import decode, prefill, request, ridge
from app.features.learn.published import Published, Word, load_glossary, load_published
from app.features.learn.sharing import batching, cache
from app.scenario.answer import Answer
from app.web.figure import Chart

CHAT = "chat"
"""The query's name for the length of a conversation in the chapter of the cache."""
USUAL_CHAT_TOKENS = 4096
LEAST_CHAT_TOKENS = 2
GLOSSARY = "words"


@dataclass(frozen=True, slots=True)
class Lesson:
    """All chapters but the glossary, which is `words`. `cases` are the scenarios behind the numbers, by key."""

    cases: Cases
    behind: Mapping[str, Case]
    chapters: tuple[Chapter, ...]
    words: Mapping[str, Word]
    published: Published

    def __getitem__(self, id_: str) -> Chapter:
        """The chapter of an id."""
        return next(chapter for chapter in self.chapters if chapter.id == id_)

    @property
    def charts(self) -> list[Chart]:
        """Every chart, in the order of the page."""
        return [chart for chapter in self.chapters for chart in chapter.charts.values()]

    def numbers(self) -> Iterator[LiveNumber]:
        """Every number, chapter after chapter."""
        for chapter in self.chapters:
            yield from chapter.numbers.values()

    def chart_data(self, caption: str) -> list[dict[str, Any]]:
        """The figures, for the script that draws them, with the words an exported picture carries."""
        return [
            {"id": chart.id, "title": chart.title, "caption": caption, "figure": chart.figure} for chart in self.charts
        ]


def lesson(answered: Answer, chat_tokens: int, catalog: Catalog) -> Lesson:
    """The lesson for an answer, with conversations of `chat_tokens` tokens in the chapter of the cache."""
    published = load_published()
    targets = published.value("targets.ttft_s"), published.value("targets.tpot_s")
    found = cases_of(answered, chat_tokens, targets, catalog)
    wall = ridge(found)
    numbers = wall.numbers
    of_engines, engine_cases = engines(found, catalog)
    of_cards, card_cases = cards(found, catalog)
    chapters = (
        request(found, published),
        prefill(found),
        decode(found),
        wall,
        batching(found),
        cache(found),
        measuring(found, published),
        doorways(found),
        of_engines,
        of_cards,
        beliefs(found, numbers["of_decode"], numbers["of_prefill"], numbers["ridge"]),
    )
    behind = {case.key: case for case in (*found, *engine_cases, *card_cases)}
    return Lesson(found, behind, chapters, load_glossary(), published)


def chat_refusal(text: str) -> str | None:
    """What is wrong with the length of a conversation as it was typed; None where it is a length, or left out."""
    if text == "":
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= len(str(MOST_TOKENS))):
        return "Must be a whole number."
    if not LEAST_CHAT_TOKENS <= int(text) <= MOST_TOKENS:
        return f"Must be from {LEAST_CHAT_TOKENS} to {MOST_TOKENS:,} tokens."
    return None
