"""The size check itself, on a small repository."""

import runpy
import subprocess
from pathlib import Path

import pytest

from app.settings import ROOT

check_sizes = runpy.run_path(str(ROOT / "scripts/check_sizes.py"))["main"]


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    subprocess.run(["git", "init", "--quiet", tmp_path], check=True)
    (tmp_path / ".gitignore").write_text("built/\n")
    for folder in ("app/web", "templates", "built"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "app/web/__init__.py").write_text('"""The web."""\n')
    return tmp_path


def test_a_tidy_repository_passes(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (repository / "app/web/database.py").write_text("x = 1\n" * 400)
    (repository / "built/big.js").write_text("1;\n" * 500)
    assert check_sizes(repository) == 0
    assert capsys.readouterr().out == ""


def test_every_offender_is_named(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (repository / "app/web/long.py").write_text("x = 1\n" * 401)
    (repository / "app/web/utils.py").write_text("")
    (repository / "app/helpers").mkdir()
    (repository / "app/helpers/text.py").write_text("")
    (repository / "app/web/__init__.py").write_text('"""The web."""\nfrom app.web import long\n')
    (repository / "templates/page.html").write_text("<p>\n" * 151)
    assert check_sizes(repository) == 1
    assert capsys.readouterr().out.splitlines() == [
        "warning: templates/page.html has 151 lines; a template over 150 wants to be split",
        "error: app/helpers/text.py is named after no subject",
        "error: app/web/__init__.py holds more than a docstring",
        "error: app/web/long.py has 401 lines; at most 400 are allowed",
        "error: app/web/utils.py is named after no subject",
    ]
