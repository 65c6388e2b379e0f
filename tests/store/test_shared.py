from collections.abc import Callable
from contextlib import closing
from dataclasses import fields
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, get_args

import pytest
from sqlalchemy import Engine

from app.store import links as module
from app.store.configurations import Configurations
from app.store.engine import connect
from app.store.errors import NotFoundError, UnstorableError, WrongEditTokenError
from app.store.records import Contents, Created, Gone
from app.store.shared import Kind, SharedContents, SharedDocument, SharedDocuments
from app.store.tables import DOCUMENT_MAX_CHARS, KINDS, TITLE_MAX_CHARS
from app.store.tokens import TOKEN_CHARS, new_token

At = Callable[..., SharedDocuments]
DAY = timedelta(days=1)


@pytest.fixture
def shared_at(engine: Engine, now: datetime) -> At:
    """The documents of a kind, seen at some moment."""
    return lambda kind="snapshot", moment=now: SharedDocuments(engine, kind, lambda: moment)


@pytest.fixture
def snapshots(shared_at: At) -> SharedDocuments:
    return shared_at()


def shared_contents(**changes: Any) -> SharedContents:
    values: dict[str, Any] = {
        "title": "Eight streams on one card",
        "document": {"schema_version": 1, "figures": [{"id": "ttft", "measured": 0.12, "predicted": None}]},
        "formula_version": "1",
        "catalog_version": "2026-11-29",
        "expires_at": None,
    }
    return SharedContents(**{**values, **changes})


def test_every_kind_has_a_repository() -> None:
    assert get_args(Kind) == KINDS


def test_link_shows_what_was_shared(snapshots: SharedDocuments, now: datetime) -> None:
    created = snapshots.create(shared_contents(expires_at=now + DAY))
    found = snapshots.get(created.slug)
    assert isinstance(found, SharedDocument)
    for field in fields(SharedContents):
        assert getattr(found, field.name) == getattr(shared_contents(expires_at=now + DAY), field.name)
    assert found.created_at == created.created_at == now
    assert (created.expires_at, len(created.slug)) == (now + DAY, TOKEN_CHARS)
    assert not {"id", "slug_sha256", "edit_token_sha256"} & {field.name for field in fields(SharedDocument)}


def test_link_of_one_kind_is_none_of_another_and_no_configuration(
    shared_at: At, configurations: Configurations, contents: Callable[..., Contents], now: datetime
) -> None:
    created = {kind: shared_at(kind).create(shared_contents(title=kind, expires_at=now + DAY)) for kind in KINDS}
    saved = configurations.create(contents())
    for kind, link in created.items():
        found = shared_at(kind).get(link.slug)
        assert isinstance(found, SharedDocument)
        assert found.title == kind
        for other in set(KINDS) - {kind}:
            assert shared_at(other).get(link.slug) is None
            assert shared_at(other, now + 2 * DAY).get(link.slug) is None  # nor is it "gone" there
            with pytest.raises(NotFoundError):
                shared_at(other).revoke(link.slug, link.edit_token)
        assert configurations.get(link.slug) is None
        assert shared_at(kind).get(saved.slug) is None


def test_wrong_malformed_and_revoked_slugs_are_alike(snapshots: SharedDocuments) -> None:
    created = snapshots.create(shared_contents())
    snapshots.revoke(created.slug, created.edit_token)
    for slug in (
        created.slug,
        created.edit_token,
        new_token(),
        created.slug.upper(),
        "..",
        ":slug",
        "\0",
        "",
        "a" * 999,
    ):
        assert snapshots.get(slug) is None
        with pytest.raises(NotFoundError):
            snapshots.revoke(slug, created.edit_token)


def test_expired_link_is_gone_says_when_and_may_still_be_revoked(shared_at: At, now: datetime) -> None:
    created = shared_at().create(shared_contents(expires_at=now + DAY))
    late = shared_at("snapshot", now + DAY)
    assert late.get(created.slug) == Gone(now + DAY)
    late.revoke(created.slug, created.edit_token)
    assert late.get(created.slug) is None


@pytest.mark.parametrize(
    "token_of", [lambda link: new_token(), lambda link: link.slug, lambda link: ""], ids=["strange", "slug", "empty"]
)
def test_only_the_edit_token_revokes(snapshots: SharedDocuments, token_of: Callable[[Created], str]) -> None:
    created = snapshots.create(shared_contents())
    with pytest.raises(WrongEditTokenError):
        snapshots.revoke(created.slug, token_of(created))
    assert isinstance(snapshots.get(created.slug), SharedDocument)


def test_secrets_and_what_was_taken_back_are_nowhere_in_the_file(snapshots: SharedDocuments, path: Path) -> None:
    kept = snapshots.create(shared_contents(title="needle in clear"))
    taken = snapshots.create(shared_contents(title="canary-8d1f", document={"canary-8d1f": "canary-8d1f" * 500}))
    snapshots.revoke(taken.slug, taken.edit_token)
    with closing(connect(path)) as connection:
        assert connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0
    stored = b"".join(file.read_bytes() for file in path.parent.glob(f"{path.name}*"))
    assert b"needle in clear" in stored
    for secret in ("canary-8d1f", kept.slug, kept.edit_token, taken.slug):
        assert secret.encode() not in stored


@pytest.mark.parametrize(
    "changes",
    [
        {"title": "t" * (TITLE_MAX_CHARS + 1)},
        {"title": "half \ud83d"},
        {"document": {"x": "d" * DOCUMENT_MAX_CHARS}},
        {"document": {"x": float("nan")}},
        {"document": {"x": object()}},
        {"document": {"x": "before\ud83dbehind"}},
        {"formula_version": "1" * 65},
        {"expires_at": datetime(2099, 1, 1)},  # no zone
        {"expires_at": datetime.fromisoformat("2026-11-29T12:00:00Z")},  # this very moment
    ],
    ids=["long title", "half title", "long", "NaN", "no JSON", "half", "version", "no zone", "expired"],
)
def test_bad_contents_are_refused_by_name(snapshots: SharedDocuments, changes: dict[str, Any]) -> None:
    with pytest.raises(UnstorableError, match=next(iter(changes))):
        snapshots.create(shared_contents(**changes))


def test_deep_nesting_is_refused_and_not_a_crash(snapshots: SharedDocuments) -> None:
    nest: dict[str, Any] = {}
    for _ in range(100_000):
        nest = {"x": nest}
    with pytest.raises(UnstorableError, match="document"):
        snapshots.create(shared_contents(document=nest))
    while nest:  # taken apart by hand, for the interpreter would do that by recursion too
        nest = nest.get("x", {})


def test_purge_takes_the_dead_of_its_kind(shared_at: At, now: datetime, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PURGE_BATCH_ROWS", 2)
    for _ in range(3):
        shared_at().create(shared_contents(expires_at=now + DAY))
    revoked, eternal = shared_at().create(shared_contents()), shared_at().create(shared_contents())
    shared_at().revoke(revoked.slug, revoked.edit_token)
    other = shared_at("calibration").create(shared_contents(expires_at=now + DAY))
    assert shared_at().purge(now) == 0
    assert shared_at().purge(now + 2 * DAY) == 4
    assert isinstance(shared_at().get(eternal.slug), SharedDocument)
    assert isinstance(shared_at("calibration").get(other.slug), SharedDocument)
    assert shared_at("calibration").purge(now + 2 * DAY) == 1
