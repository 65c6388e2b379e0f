from collections.abc import Callable
from contextlib import closing
from dataclasses import FrozenInstanceError, fields
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from sqlalchemy import Engine, event

from app.store import links as module
from app.store.configurations import Configurations
from app.store.engine import connect
from app.store.errors import ExpiredError, NotFoundError, WrongEditTokenError
from app.store.links import utc_now
from app.store.records import Contents, Created, Gone, Saved
from app.store.tokens import new_token

Make = Callable[..., Contents]
At = Callable[[datetime], Configurations]
DAY = timedelta(days=1)


def test_saved_link_shows_what_was_saved(configurations: Configurations, contents: Make, now: datetime) -> None:
    created = configurations.create(contents(expires_at=now + DAY))
    saved = configurations.get(created.slug)
    assert isinstance(saved, Saved)
    assert {field.name: getattr(saved, field.name) for field in fields(Contents)} == {
        field.name: getattr(contents(expires_at=now + DAY), field.name) for field in fields(Contents)
    }
    assert saved.created_at == saved.updated_at == created.created_at == now


def test_no_record_tells_the_number_of_a_row_or_prints_a_secret(configurations: Configurations, contents: Make) -> None:
    created = configurations.create(contents())
    assert not {"id", "slug_sha256", "edit_token_sha256"} & {field.name for field in (*fields(Saved), *fields(Created))}
    assert created.slug not in repr(created)
    assert created.edit_token not in repr(created)


def test_records_are_frozen(configurations: Configurations, contents: Make) -> None:
    created = configurations.create(contents())
    with pytest.raises(FrozenInstanceError):
        created.slug = "other"  # type: ignore[misc]


def test_moments_come_back_in_utc_to_the_microsecond(at: At, contents: Make, now: datetime) -> None:
    east = timezone(timedelta(hours=14))
    moment = now.replace(microsecond=7).astimezone(east)
    created = at(moment).create(contents(expires_at=moment + DAY))
    saved = at(moment).get(created.slug)
    assert isinstance(saved, Saved)
    assert (saved.created_at, saved.expires_at) == (moment, moment + DAY)
    assert saved.created_at.tzinfo == UTC
    assert created.expires_at is not None
    assert created.expires_at.tzinfo == UTC


def test_repository_tells_real_time_unless_told(engine: Engine, contents: Make) -> None:
    created = Configurations(engine).create(contents())
    assert abs(created.created_at - utc_now()) < timedelta(minutes=1)


def test_wrong_malformed_and_revoked_slugs_are_alike(configurations: Configurations, contents: Make) -> None:
    created = configurations.create(contents())
    configurations.revoke(created.slug, created.edit_token)
    strangers = [created.slug, new_token(), created.edit_token, created.slug.upper(), "..", ":slug", "%2e%2e", "\0", ""]
    for slug in strangers:
        assert configurations.get(slug) is None
        with pytest.raises(NotFoundError) as caught:
            configurations.replace(slug, created.edit_token, contents())
        assert not isinstance(caught.value, ExpiredError)
        with pytest.raises(NotFoundError) as again:
            configurations.revoke(slug, created.edit_token)
        assert str(again.value) == str(caught.value)


def test_malformed_slug_never_reaches_the_database(engine: Engine, configurations: Configurations) -> None:
    said: list[str] = []

    @event.listens_for(engine, "before_cursor_execute")
    def listen(_connection: object, _cursor: object, statement: str, *_rest: object) -> None:
        said.append(statement)

    for slug in ("", "..", "A" * 26, "a" * 1_048_576, "\0" * 26):
        assert configurations.get(slug) is None
    assert said == []


def test_expired_link_is_gone_and_says_when(at: At, contents: Make, now: datetime) -> None:
    created = at(now).create(contents(expires_at=now + DAY))
    assert isinstance(at(now + DAY - timedelta(microseconds=1)).get(created.slug), Saved)
    assert at(now + DAY).get(created.slug) == Gone(now + DAY)
    with pytest.raises(ExpiredError) as caught:
        at(now + DAY).replace(created.slug, created.edit_token, contents())
    assert caught.value.expired_at == now + DAY


def test_replaced_link_keeps_its_slug_and_shows_only_the_new(at: At, contents: Make, now: datetime) -> None:
    created = at(now).create(contents(expires_at=now + DAY))
    replaced = at(now + DAY / 2).replace(
        created.slug, created.edit_token, contents(title="Other", scenario={"a": [1, 2.5, None]}, expires_at=None)
    )
    assert at(now + 2 * DAY).get(created.slug) == replaced
    assert (replaced.title, replaced.scenario, replaced.expires_at) == ("Other", {"a": [1, 2.5, None]}, None)
    assert (replaced.created_at, replaced.updated_at) == (now, now + DAY / 2)


@pytest.mark.parametrize(
    "token_of", [lambda c: new_token(), lambda c: c.slug, lambda c: "", lambda c: c.edit_token[:-1]]
)
def test_only_the_edit_token_edits(
    configurations: Configurations, contents: Make, token_of: Callable[[Created], str]
) -> None:
    created, other = configurations.create(contents()), configurations.create(contents())
    for token in (token_of(created), other.edit_token):
        with pytest.raises(WrongEditTokenError):
            configurations.replace(created.slug, token, contents(title="Mine now"))
        with pytest.raises(WrongEditTokenError):
            configurations.revoke(created.slug, token)
    saved = configurations.get(created.slug)
    assert isinstance(saved, Saved)
    assert saved.title == contents().title


def test_revoked_row_holds_nothing_of_its_contents(configurations: Configurations, contents: Make, path: Path) -> None:
    canary = "canary-8d1f"
    created = configurations.create(
        contents(title=canary, notes=canary * 300, scenario={canary: canary}, headline={canary: 1})
    )
    bystander = configurations.create(contents())
    configurations.revoke(created.slug, created.edit_token)
    assert canary.encode() not in file_bytes(path)
    assert isinstance(configurations.get(bystander.slug), Saved)


def test_expired_link_may_still_be_revoked(at: At, contents: Make, now: datetime) -> None:
    created = at(now).create(contents(expires_at=now + DAY))
    at(now + 2 * DAY).revoke(created.slug, created.edit_token)
    assert at(now + 2 * DAY).get(created.slug) is None


def test_slug_and_edit_token_are_never_stored(configurations: Configurations, contents: Make, path: Path) -> None:
    created = configurations.create(contents(title="needle in clear"))
    configurations.replace(created.slug, created.edit_token, contents(title="needle in clear"))
    stored = file_bytes(path)
    assert b"needle in clear" in stored
    for secret in (created.slug, created.edit_token):
        assert secret.encode() not in stored


def test_purge_takes_the_dead_of_before_and_no_other(at: At, contents: Make, now: datetime) -> None:
    expired = at(now).create(contents(expires_at=now + DAY))
    fresh = at(now).create(contents(expires_at=now + 9 * DAY))
    eternal = at(now).create(contents())
    revoked = at(now).create(contents())
    at(now + DAY).revoke(revoked.slug, revoked.edit_token)
    later = at(now + 5 * DAY)
    assert later.purge(now + DAY) == 0
    assert later.get(expired.slug) == Gone(now + DAY)
    assert later.purge(now + 2 * DAY) == 2
    assert later.get(expired.slug) is None
    assert isinstance(later.get(fresh.slug), Saved)
    assert isinstance(later.get(eternal.slug), Saved)


def test_purge_goes_on_until_the_last_batch(
    at: At, contents: Make, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PURGE_BATCH_ROWS", 2)
    for _ in range(4):
        at(now).create(contents(expires_at=now + DAY))
    assert at(now).purge(now + 2 * DAY) == 4


def file_bytes(path: Path) -> bytes:
    with closing(connect(path)) as connection:
        busy, *_ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        assert busy == 0
        assert connection.execute("SELECT count(*) FROM configurations").fetchone()[0] > 0
    return b"".join(file.read_bytes() for file in path.parent.glob(f"{path.name}*"))
