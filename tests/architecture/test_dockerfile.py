"""What the container image promises, read off the Dockerfile: there is no engine to build it with here."""

import json
import re
from dataclasses import dataclass, field

import pytest

from app.settings import ROOT


@dataclass
class Stage:
    base: str
    name: str
    steps: list[tuple[str, str]] = field(default_factory=list)

    def arguments(self, instruction: str) -> list[str]:
        return [argument for word, argument in self.steps if word == instruction]


def read_stages() -> list[Stage]:
    text = re.sub(r"^\s*#.*\n", "", (ROOT / "Dockerfile").read_text(), flags=re.MULTILINE)
    stages: list[Stage] = []
    for line in re.sub(r"\\\n", " ", text).splitlines():
        word, _, argument = line.partition(" ")
        if word == "FROM":
            base, _, name = argument.partition(" AS ")
            stages.append(Stage(base, name))
        elif word and stages:
            stages[-1].steps.append((word, argument.strip()))
    return stages


@pytest.fixture
def stages() -> list[Stage]:
    return read_stages()


@pytest.fixture
def final(stages: list[Stage]) -> Stage:
    return stages[-1]


def environment(stage: Stage) -> dict[str, str]:
    return dict(pair.split("=", 1) for argument in stage.arguments("ENV") for pair in argument.split())


def test_two_stages_from_one_slim_base(stages: list[Stage]) -> None:
    assert [stage.base for stage in stages] == ["${PYTHON_IMAGE}"] * 2
    assert re.search(r"^ARG PYTHON_IMAGE=python:3\.\d+-slim$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)


def test_every_install_is_pinned_by_hash(stages: list[Stage]) -> None:
    installs = re.findall(r"install [^&]*-r \S+", " ".join(stages[0].arguments("RUN")))
    assert len(installs) == 2
    assert all("--require-hashes" in install for install in installs)


def test_the_final_stage_takes_the_environment_and_the_program_only(final: Stage) -> None:
    assert final.arguments("COPY") == [
        "--from=build /opt/venv /opt/venv",
        "--from=build /srv/tokenroof /srv/tokenroof",
    ]
    assert not final.arguments("ADD")
    assert not re.search(r"node|npm|pip|apt", json.dumps(final.steps))


def test_the_final_stage_runs_as_a_numeric_user_that_is_not_root(final: Stage) -> None:
    assert final.arguments("USER") == ["10001:10001"]
    after = [word for word, _ in final.steps[final.steps.index(("USER", "10001:10001")) :]]
    assert "RUN" not in after
    assert "COPY" not in after


def test_nothing_needs_to_be_written_outside_the_volume(final: Stage) -> None:
    assert final.arguments("VOLUME") == ["/data"]
    settings = environment(final)
    assert settings["TOKENROOF_DATA_DIR"] == settings["SQLITE_TMPDIR"] == "/data"
    assert settings["PYTHONDONTWRITEBYTECODE"] == "1"


def test_it_listens_where_a_container_is_reached(final: Stage) -> None:
    settings = environment(final)
    assert settings["TOKENROOF_HOST"] == "0.0.0.0"
    assert final.arguments("EXPOSE") == [settings["TOKENROOF_PORT"]] == ["8000"]


def test_python_is_process_one_and_is_asked_to_stop(final: Stage) -> None:
    assert [json.loads(command) for command in final.arguments("CMD")] == [["python", "-m", "app.cli", "serve"]]
    assert final.arguments("STOPSIGNAL") == ["SIGTERM"]


def test_the_health_check_is_python_that_compiles(final: Stage) -> None:
    (check,) = final.arguments("HEALTHCHECK")
    program, flag, code = json.loads(check.partition("CMD ")[2])
    assert (program, flag) == ("python", "-c")
    compile(code, "HEALTHCHECK", "exec")
    assert "/healthz" in code


@pytest.mark.parametrize("private", [".git", ".env", ".venv", "var", "node_modules", "tests"])
def test_the_build_context_leaves_out(private: str) -> None:
    rules = (ROOT / ".dockerignore").read_text().splitlines()
    assert "*" in rules
    assert not any(rule.startswith(f"!{private}") for rule in rules)


def test_what_the_build_copies_is_in_the_build_context(stages: list[Stage]) -> None:
    rules = {rule for rule in (ROOT / ".dockerignore").read_text().splitlines() if rule.startswith("!")}
    named = [path for argument in stages[0].arguments("COPY") for path in argument.split()[:-1]]
    files = [path for path in named if path not in (".", "requirements/")]
    taken = re.findall(r"requirements/\w+\.txt", " ".join(stages[0].arguments("RUN")))
    chosen = [f"requirements/{name}.txt" for name in ("runtime", "nvidia", "amd")]
    assert '-r "requirements/${REQUIREMENTS}.txt"' in " ".join(stages[0].arguments("RUN"))
    assert {f"!{path}" for path in files + taken + chosen} <= rules


def test_the_composed_service_is_confined() -> None:
    text = (ROOT / "compose.yaml").read_text()
    for line in ("read_only: true", "- ALL", "- no-new-privileges:true", "- data:/data"):
        assert re.search(rf"^\s+{re.escape(line)}$", text, re.MULTILINE), line
    assert re.search(r"^\s+mem_limit: \d+", text, re.MULTILINE)
    assert re.search(r"^\s+pids_limit: \d+$", text, re.MULTILINE)
    gpu = text.partition("  tokenroof-gpu:\n")[2]
    assert "<<: *server" in gpu, "confined in the same way"
    assert "profiles: [gpu]" in gpu
    assert "REQUIREMENTS: nvidia" in gpu
    assert "capabilities: [utility]" in gpu
