import threading
import time
from pathlib import Path

import pytest

from app.store.disk import Seat, exclusive, lock_path, recorder_lock_path
from app.store.errors import StoreBusyError, StoreUnavailableError


def test_second_holder_waits_for_the_first(tmp_path: Path) -> None:
    lock, entered = tmp_path / "lock", threading.Event()
    order: list[str] = []

    def hold() -> None:
        with exclusive(lock, 1):
            entered.set()
            time.sleep(0.1)
            order.append("first")

    thread = threading.Thread(target=hold)
    thread.start()
    assert entered.wait(5)
    with exclusive(lock, 5):
        order.append("second")
    thread.join()
    assert order == ["first", "second"]


def test_wait_is_capped(tmp_path: Path) -> None:
    with exclusive(tmp_path / "lock", 1), pytest.raises(StoreBusyError), exclusive(tmp_path / "lock", 0.05):
        pytest.fail("the body must not run")


def test_exception_frees_the_lock(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), exclusive(tmp_path / "lock", 1):
        raise ZeroDivisionError
    with exclusive(tmp_path / "lock", 0):
        pass


def test_lock_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailableError), exclusive(tmp_path / "absent" / "lock", 0):
        pytest.fail("the body must not run")


def test_seat_is_kept_by_the_first_and_nobody_waits(tmp_path: Path) -> None:
    first, second = Seat(tmp_path / "lock"), Seat(tmp_path / "lock")
    assert first.take()
    assert first.take()
    assert not second.take()
    second.leave()
    assert not second.take()
    first.leave()
    assert second.take()
    assert not first.take()
    second.leave()


def test_seat_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailableError):
        Seat(tmp_path / "absent" / "lock").take()


def test_recorder_holds_up_no_writer(tmp_path: Path) -> None:
    database = tmp_path / "tokenroof.sqlite3"
    assert recorder_lock_path(database).parent == tmp_path
    assert recorder_lock_path(database) not in (database, lock_path(database))
