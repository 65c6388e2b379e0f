"""What a secret link shows at the edge, whichever kind it is of."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine

from app.features.links.links import KINDS, LinkKind, ShareTexts, living, store_problems
from app.store.database import create_store_engine
from app.store.links import Contents, Links
from app.store.schema import migrate
from app.web.problem import ProblemError

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
DAY = timedelta(days=1)
DOCUMENT = {"scenario": {}, "notes": "", "headline": {}}


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    migrate(tmp_path / "tokenroof.sqlite3")
    engine = create_store_engine(tmp_path / "tokenroof.sqlite3")
    yield engine
    engine.dispose()


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_each_kind_is_shown_gone_or_not_found_in_its_own_words(engine: Engine, kind: LinkKind[Any]) -> None:
    made = Links(engine, kind.name, lambda: NOW).create(
        Contents(title="Kept", document=DOCUMENT, formula_version="1", catalog_version="1", expires_at=NOW + DAY)
    )
    saved = living(Links(engine, kind.name, lambda: NOW), made.slug, kind.not_found)
    assert saved.title == "Kept"
    assert kind.payload_of(saved).model_dump().items() <= {**DOCUMENT, "probes": [], "live": None, "view": None}.items()
    with pytest.raises(ProblemError) as found:
        living(Links(engine, kind.name, lambda: NOW + DAY), made.slug, kind.not_found)
    assert (found.value.status, found.value.detail) == (410, "This link expired on 2026-12-01.")
    for other in KINDS:
        if other is kind:
            continue
        with pytest.raises(ProblemError) as found:
            living(Links(engine, other.name), made.slug, other.not_found)
        assert (found.value.status, found.value.detail) == (404, f"There is no {other.noun} at this address.")
        with pytest.raises(ProblemError) as found, store_problems(other.not_found):
            Links(engine, other.name).revoke(made.slug, made.edit_token)
        assert (found.value.status, found.value.detail) == (404, other.not_found)


def test_texts_of_what_is_shared_are_cleaned_and_have_no_notes() -> None:
    assert ShareTexts(title=" a\u202eb ").model_dump() == {"title": "ab", "expires_in_days": None}
