"""Links of every kind: what goes in comes out, only the token changes it, and what was taken back is nowhere."""

from collections.abc import Callable
from contextlib import closing
from dataclasses import FrozenInstanceError, fields
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import Engine, event

from app.store import links as module
from app.store.database import connect
from app.store.errors import ExpiredError, NotFoundError, UnstorableError, WrongEditTokenError
from app.store.links import Contents, Created, Gone, LinkName, Links, Saved, columns_of, new_token, utc_now
from app.store.tables import DOCUMENT_MAX_CHARS, KINDS, NOTES_MAX_CHARS, SCENARIO_MAX_CHARS, TITLE_MAX_CHARS

Make = Callable[..., Contents]
At = Callable[..., Links]
DAY = timedelta(days=1)
NAMES: tuple[LinkName, ...] = get_args(LinkName)
SHARED = "shared"  # the part of the document in which a value is put, of kinds that are stored whole


@pytest.fixture(params=NAMES)
def kind(request: pytest.FixtureRequest) -> LinkName:
    name: LinkName = request.param
    return name


@pytest.fixture
def links_at(engine: Engine, kind: LinkName, now: datetime) -> At:
    """The links of the kind, or of another, seen at some moment."""
    return lambda moment=now, of=kind: Links(engine, of, lambda: moment)


@pytest.fixture
def links(links_at: At) -> Links:
    return links_at()


@pytest.fixture
def make(contents: Make, kind: LinkName) -> Make:
    return lambda **changes: contents(**{"kind": kind, **changes})


def test_every_kind_has_a_place() -> None:
    assert {"configuration", *KINDS} == set(NAMES)


def test_a_link_shows_what_was_saved(links: Links, make: Make, now: datetime) -> None:
    created = links.create(make(expires_at=now + DAY))
    saved = links.get(created.slug)
    assert isinstance(saved, Saved)
    for field in fields(Contents):
        assert getattr(saved, field.name) == getattr(make(expires_at=now + DAY), field.name)
    assert saved.created_at == saved.updated_at == created.created_at == now
    assert created.expires_at == now + DAY


def test_no_record_tells_the_number_of_a_row_or_prints_a_secret(links: Links, make: Make) -> None:
    created = links.create(make())
    assert not {"id", "slug_sha256", "edit_token_sha256"} & {field.name for field in (*fields(Saved), *fields(Created))}
    assert created.slug not in repr(created)
    assert created.edit_token not in repr(created)
    with pytest.raises(FrozenInstanceError):
        created.slug = "other"  # type: ignore[misc]


def test_moments_come_back_in_utc_to_the_microsecond(links_at: At, make: Make, now: datetime) -> None:
    moment = now.replace(microsecond=7).astimezone(timezone(timedelta(hours=14)))
    created = links_at(moment).create(make(expires_at=moment + DAY))
    saved = links_at(moment).get(created.slug)
    assert isinstance(saved, Saved)
    assert (saved.created_at, saved.expires_at) == (moment, moment + DAY)
    assert saved.created_at.tzinfo == UTC
    assert created.expires_at is not None
    assert created.expires_at.tzinfo == UTC


def test_real_time_is_told_unless_another_is(engine: Engine, kind: LinkName, make: Make) -> None:
    created = Links(engine, kind).create(make())
    assert abs(created.created_at - utc_now()) < timedelta(minutes=1)


def test_a_link_of_one_kind_is_none_of_another(links_at: At, kind: LinkName, make: Make, now: datetime) -> None:
    created = links_at().create(make(expires_at=now + DAY))
    for other in set(NAMES) - {kind}:
        assert links_at(of=other).get(created.slug) is None
        assert links_at(now + 2 * DAY, other).get(created.slug) is None  # nor is it "gone" there
        with pytest.raises(NotFoundError):
            links_at(of=other).revoke(created.slug, created.edit_token)
    assert isinstance(links_at().get(created.slug), Saved)


def test_wrong_malformed_and_revoked_slugs_are_alike(links: Links, make: Make) -> None:
    created = links.create(make())
    links.revoke(created.slug, created.edit_token)
    strangers = [created.slug, new_token(), created.edit_token, created.slug.upper(), "..", ":slug", "%2e%2e", "\0", ""]
    for slug in strangers:
        assert links.get(slug) is None
        with pytest.raises(NotFoundError) as caught:
            links.replace(slug, created.edit_token, make())
        assert not isinstance(caught.value, ExpiredError)
        with pytest.raises(NotFoundError) as again:
            links.revoke(slug, created.edit_token)
        assert str(again.value) == str(caught.value)


def test_malformed_slug_never_reaches_the_database(engine: Engine, links: Links) -> None:
    said: list[str] = []

    @event.listens_for(engine, "before_cursor_execute")
    def listen(_connection: object, _cursor: object, statement: str, *_rest: object) -> None:
        said.append(statement)

    for slug in ("", "..", "A" * 26, "a" * 1_048_576, "\0" * 26):
        assert links.get(slug) is None
    assert said == []


def test_expired_link_is_gone_says_when_and_may_still_be_revoked(links_at: At, make: Make, now: datetime) -> None:
    created = links_at().create(make(expires_at=now + DAY))
    assert isinstance(links_at(now + DAY - timedelta(microseconds=1)).get(created.slug), Saved)
    late = links_at(now + DAY)
    assert late.get(created.slug) == Gone(now + DAY)
    with pytest.raises(ExpiredError) as caught:
        late.replace(created.slug, created.edit_token, make())
    assert caught.value.expired_at == now + DAY
    late.revoke(created.slug, created.edit_token)
    assert late.get(created.slug) is None


def test_replaced_link_keeps_its_slug_and_shows_only_the_new(
    at: At, configurations: Links, contents: Make, now: datetime
) -> None:
    created = configurations.create(contents(expires_at=now + DAY))
    replaced = at(now + DAY / 2).replace(
        created.slug, created.edit_token, contents(title="Other", scenario={"a": [1, 2.5, None]}, expires_at=None)
    )
    assert at(now + 2 * DAY).get(created.slug) == replaced
    assert (replaced.title, replaced.document["scenario"]) == ("Other", {"a": [1, 2.5, None]})
    assert (replaced.created_at, replaced.updated_at, replaced.expires_at) == (now, now + DAY / 2, None)


@pytest.mark.parametrize(
    "token_of", [lambda c: new_token(), lambda c: c.slug, lambda c: "", lambda c: c.edit_token[:-1]]
)
def test_only_the_edit_token_edits(links: Links, make: Make, token_of: Callable[[Created], str]) -> None:
    created, other = links.create(make()), links.create(make())
    for token in (token_of(created), other.edit_token):
        with pytest.raises(WrongEditTokenError):
            links.replace(created.slug, token, make(title="Mine now"))
        with pytest.raises(WrongEditTokenError):
            links.revoke(created.slug, token)
    saved = links.get(created.slug)
    assert isinstance(saved, Saved)
    assert saved.title == make().title


def test_secrets_and_what_was_taken_back_are_nowhere_in_the_file(
    links: Links, kind: LinkName, make: Make, path: Path
) -> None:
    canary = "canary-8d1f"
    parts: dict[str, Any] = {"filling": {canary: canary * 300}}
    if kind == "configuration":
        parts = {"notes": canary * 300, "scenario": {canary: canary}, "headline": {canary: 1}}
    taken = links.create(make(title=canary, **parts))
    kept = links.create(make(title="needle in clear"))
    links.replace(kept.slug, kept.edit_token, make(title="needle in clear"))
    links.revoke(taken.slug, taken.edit_token)
    with closing(connect(path)) as connection:
        assert connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0
    stored = b"".join(file.read_bytes() for file in path.parent.glob(f"{path.name}*"))
    assert b"needle in clear" in stored
    for secret in (canary, kept.slug, kept.edit_token, taken.slug):
        assert secret.encode() not in stored
    assert isinstance(links.get(kept.slug), Saved)


def test_json_is_stored_in_one_spelling(contents: Make, now: datetime) -> None:
    one, other = contents(scenario={"b": 1, "a": "ü"}), contents(scenario={"a": "ü", "b": 1})
    spelt = [columns_of("configuration", each, now)["scenario"] for each in (one, other)]
    assert spelt == ['{"a":"ü","b":1}'] * 2


def test_longest_values_are_stored(configurations: Links, contents: Make) -> None:
    created = configurations.create(contents(title="×" * TITLE_MAX_CHARS, notes="n" * NOTES_MAX_CHARS))
    saved = configurations.get(created.slug)
    assert isinstance(saved, Saved)
    assert (len(saved.title), len(saved.document["notes"])) == (TITLE_MAX_CHARS, NOTES_MAX_CHARS)


@pytest.mark.parametrize(
    "changes",
    [
        {"title": "t" * (TITLE_MAX_CHARS + 1)},
        {"title": "before\0behind"},
        {"title": "half \ud83d"},
        {"formula_version": "1" * 65},
        {"expires_at": datetime(2099, 1, 1)},  # no zone
        {"expires_at": datetime.fromisoformat("2026-11-29T12:00:00Z")},  # this very moment
        {SHARED: "s" * SCENARIO_MAX_CHARS},
        {SHARED: "half \ud83d"},
        {SHARED: float("nan")},
        {SHARED: float("inf")},
        {SHARED: object()},
    ],
    ids=["long title", "NUL", "half title", "version", "no zone", "expired", "long", "half", "NaN", "inf", "no JSON"],
)
def test_value_that_breaks_a_rule_is_refused_by_name(
    links: Links, kind: LinkName, make: Make, changes: dict[str, Any]
) -> None:
    name = next(iter(changes))
    if name == SHARED:
        part, name = ("scenario",) * 2 if kind == "configuration" else ("filling", "document")
        changes = {part: {"x": changes[SHARED]}}
    with pytest.raises(UnstorableError, match=name):
        links.create(make(**changes))


@pytest.mark.parametrize(
    "changes",
    [{"notes": "n" * (NOTES_MAX_CHARS + 1)}, {"notes": "half \ud83d"}, {"headline": {"x": float("inf")}}],
    ids=["long notes", "half notes", "headline"],
)
def test_notes_and_headline_of_a_configuration_have_rules_too(
    configurations: Links, contents: Make, changes: dict[str, Any]
) -> None:
    with pytest.raises(UnstorableError, match=next(iter(changes))):
        configurations.create(contents(**changes))


def test_a_document_has_a_smaller_limit_than_a_scenario(links_at: At, contents: Make) -> None:
    longer = {"x": "d" * DOCUMENT_MAX_CHARS}
    assert links_at(of="configuration").create(contents(scenario=longer)).slug
    with pytest.raises(UnstorableError, match="document"):
        links_at(of="snapshot").create(contents("snapshot", filling=longer))


def test_deep_nesting_is_refused_and_not_a_crash(links: Links, kind: LinkName, make: Make) -> None:
    nest: dict[str, Any] = {}
    for _ in range(100_000):
        nest = {"x": nest}
    with pytest.raises(UnstorableError):
        links.create(make(**{"scenario" if kind == "configuration" else "filling": nest}))
    while nest:  # taken apart by hand, for the interpreter would do that by recursion too
        nest = nest.get("x", {})


@given(st.text(max_size=200), st.integers(min_value=-5, max_value=5), st.sampled_from(NAMES))
def test_text_is_stored_whole_or_not_at_all(text: str, hours: int, kind: LinkName) -> None:
    now = datetime.fromisoformat("2026-11-29T12:00:00Z")
    value = Contents(
        title=text,
        document={"scenario": {text: text}, "notes": text, "headline": {}},
        formula_version="1",
        catalog_version="1",
        expires_at=now + timedelta(hours=hours),
    )
    try:
        columns = columns_of(kind, value, now)
    except UnstorableError:
        assert hours <= 0 or len(text) > TITLE_MAX_CHARS or "\0" in text
    else:
        assert columns["title"] == text


def test_purge_takes_the_dead_of_its_kind_and_of_before(
    links_at: At, kind: LinkName, make: Make, contents: Make, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PURGE_BATCH_ROWS", 2)
    expired = [links_at().create(make(expires_at=now + DAY)) for _ in range(3)]
    fresh, eternal = links_at().create(make(expires_at=now + 9 * DAY)), links_at().create(make())
    revoked = links_at().create(make())
    links_at(now + DAY).revoke(revoked.slug, revoked.edit_token)
    others = [name for name in NAMES if name != kind]
    strangers = {other: links_at(of=other).create(contents(other, expires_at=now + DAY)) for other in others}
    later = links_at(now + 5 * DAY)
    assert later.purge(now + DAY) == 0
    assert later.get(expired[0].slug) == Gone(now + DAY)
    assert later.purge(now + 2 * DAY) == 4
    assert later.get(expired[0].slug) is None
    assert isinstance(later.get(fresh.slug), Saved)
    assert isinstance(later.get(eternal.slug), Saved)
    for other, link in strangers.items():
        assert links_at(now + 5 * DAY, other).get(link.slug) == Gone(now + DAY)
        assert links_at(of=other).purge(now + 2 * DAY) == 1
