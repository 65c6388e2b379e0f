"""The lesson as a schema of the API."""

from pydantic import BaseModel, Field


class LessonNumber(BaseModel):
    """One number of a chapter."""

    id: str = Field(description="Chapter and name.")
    label: str = Field(description="What it is, in words.")
    value: float = Field(description="Unrounded, in `unit`.")
    unit: str = Field(description="SI or a word; 1 for a pure number or a share.")
    text: str = Field(description="As the page writes it.")
    source: str = Field(
        description="A path into the evaluation of its case, a term of one of its workings, ids of other numbers with "
        "the signs between them, or a publication."
    )
    case: str | None = Field(description="Key of the case it is read from; null where it is worked out of others.")


class PublishedNumber(LessonNumber):
    """A figure that others measured."""

    url: str | None = Field(description="Where it is published.")


class LessonChapter(BaseModel):
    """A chapter with its numbers."""

    id: str = Field(description="Its anchor on the page.")
    title: str = Field(description="Its heading.")
    workbench: str = Field(description="Address of the workbench with the chapter's scenario.")
    numbers: list[LessonNumber] = Field(description="In the order in which they are worked out.")


class LessonCase(BaseModel):
    """One of the scenarios that the lesson compares."""

    words: str = Field(description="What it is, in words.")
    evaluate: str = Field(description="Address of its evaluation.")


class LessonWord(BaseModel):
    """A word of the glossary."""

    id: str = Field(description="Its key.")
    word: str = Field(description="As it is written.")
    short: str | None = Field(description="What its letters stand for.")
    meaning: str = Field(description="The definition.")


class LessonAnswer(BaseModel):
    """The story of the memory wall for one scenario."""

    formula_version: str = Field(description="Version of the formulas.")
    catalog_version: str = Field(description="Version of the catalog.")
    chat_tokens: int = Field(description="Tokens of a conversation in the chapter of the cache.")
    cases: dict[str, LessonCase] = Field(description="Scenarios by key.")
    chapters: list[LessonChapter] = Field(description="In the order of the page.")
    published: list[PublishedNumber] = Field(description="Figures that are quoted.")
    words: list[LessonWord] = Field(description="The glossary.")
