"""Settings: every field described, read from its own variable, and kept within its bounds."""

from pathlib import Path

import pytest
from pydantic import SecretStr, ValidationError

from app.settings import ROOT, Settings

PREFIX = "TOKENROOF_"
_SERVERS = ("a=http://127.0.0.1:8000", "b=http://b.example:9000/metrics")
GIVEN = {
    "host": ("0.0.0.0", "0.0.0.0"),
    "port": ("81", 81),
    "workers": ("3", 3),
    "data_dir": ("/somewhere/data", Path("/somewhere/data")),
    "assets_dir": ("/somewhere/assets", Path("/somewhere/assets")),
    "allowed_hosts": ("roof.example, www.roof.example,,", ("roof.example", "www.roof.example")),
    "public_url": ("https://roof.example", "https://roof.example"),
    "hsts": ("true", True),
    "max_body_bytes": ("2048", 2048),
    "max_batch_body_bytes": ("4096", 4096),
    "link_expiry_days": ("7", 7),
    "allow_unexpiring_links": ("1", True),
    "probe_interval_s": ("0.5", 0.5),
    "probe_max_streams": ("2", 2),
    "probe_stream_max_s": ("60", 60.0),
    "servers": ("a=http://127.0.0.1:8000, b=http://b.example:9000/metrics", _SERVERS),
    "server_tokens": ("b=secret", (SecretStr("b=secret"),)),
    "server_interval_s": ("5", 5.0),
    "server_max_bytes": ("4096", 4096),
    "typed_servers": ("lan", "lan"),
    "recording": ("true", True),
    "record_every_s": ("2", 2.0),
    "record_keep_hours": ("12", 12.0),
    "microbenchmark": ("true", True),
    "operator_token": ("0123456789abcdef", SecretStr("0123456789abcdef")),
    "hub_import": ("true", True),
    "hub_host": ("hub.example", "hub.example"),
    "hub_redirect_hosts": ("files.hub.example, cdn.example,", ("files.hub.example", "cdn.example")),
    "hub_timeout_s": ("8", 8.0),
    "hub_connect_timeout_s": ("1.5", 1.5),
    "hub_max_bytes": ("2048", 2048),
    "hub_max_parallel": ("2", 2),
    "hub_cache_s": ("0", 0.0),
}


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No .env file and no variable of the machine reaches these tests."""
    monkeypatch.chdir(tmp_path)
    for name in Settings.model_fields:
        monkeypatch.delenv(f"{PREFIX}{name.upper()}", raising=False)


def test_every_field_has_a_description() -> None:
    for name, field in Settings.model_fields.items():
        assert field.description, name
        assert field.description.endswith("."), name


def test_every_field_is_a_variable_of_the_same_name(monkeypatch: pytest.MonkeyPatch) -> None:
    assert set(GIVEN) == set(Settings.model_fields)
    for name, (text, _) in GIVEN.items():
        monkeypatch.setenv(f"{PREFIX}{name.upper()}", text)
    settings = Settings()
    assert {name: getattr(settings, name) for name in GIVEN} == {name: value for name, (_, value) in GIVEN.items()}


def test_nothing_set_is_safe() -> None:
    settings = Settings()
    assert settings.host == "127.0.0.1"
    assert settings.allowed_hosts == ()
    assert settings.hsts is False
    assert settings.allow_unexpiring_links is False
    assert settings.public_url is None
    assert settings.hub_import is False
    assert settings.servers == ()
    assert settings.typed_servers == "off"
    assert settings.recording is False
    assert settings.microbenchmark is False
    assert settings.operator_token is None
    assert settings.hub_redirect_hosts == ()
    assert settings.link_expiry_days == 90
    assert settings.database_path == Path("var/data/tokenroof.sqlite3")


def test_a_dotenv_file_is_read_and_the_environment_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".env").write_text(f"{PREFIX}PORT=9001\n{PREFIX}HSTS=yes\nOTHER=1\n{PREFIX}UNKNOWN=1\n")
    monkeypatch.setenv(f"{PREFIX}PORT", "9002")
    assert (Settings().port, Settings().hsts) == (9002, True)


@pytest.mark.parametrize(
    ("text", "hosts"),
    [
        ("", ()),
        (" , ", ()),
        ("*", ("*",)),
        ("a.example", ("a.example",)),
        (" a.example ,b.example ", ("a.example", "b.example")),
    ],
)
def test_hosts_are_separated_by_commas(monkeypatch: pytest.MonkeyPatch, text: str, hosts: tuple[str, ...]) -> None:
    monkeypatch.setenv(f"{PREFIX}ALLOWED_HOSTS", text)
    assert Settings().allowed_hosts == hosts


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("port", "65536"),
        ("port", "-1"),
        ("port", "web"),
        ("workers", "0"),
        ("workers", "33"),
        ("max_body_bytes", "1023"),
        ("max_batch_body_bytes", "0"),
        ("link_expiry_days", "0"),
        ("link_expiry_days", "3651"),
        ("probe_interval_s", "0.1"),
        ("probe_interval_s", "nan"),
        ("probe_max_streams", "0"),
        ("probe_stream_max_s", "0"),
        ("probe_stream_max_s", "nan"),
        ("hsts", "perhaps"),
        ("hub_import", "perhaps"),
        ("hub_host", "https://hub.example"),
        ("hub_host", "hub.example:8443"),
        ("hub_host", "hub.example."),
        ("hub_host", "Hub.example"),
        ("hub_host", "localhost"),
        ("hub_host", "93.184.216.34"),
        ("hub_host", "someone@hub.example"),
        ("hub_host", "hüb.example"),
        ("hub_host", "hub.example\n"),
        ("hub_timeout_s", "61"),
        ("hub_timeout_s", "nan"),
        ("hub_connect_timeout_s", "0"),
        ("hub_max_bytes", "1023"),
        ("hub_max_parallel", "0"),
        ("hub_cache_s", "-1"),
        ("hub_cache_s", "inf"),
    ],
)
def test_what_is_out_of_bounds_is_refused_by_name(monkeypatch: pytest.MonkeyPatch, name: str, text: str) -> None:
    monkeypatch.setenv(f"{PREFIX}{name.upper()}", text)
    with pytest.raises(ValidationError) as refused:
        Settings()
    assert [error["loc"] for error in refused.value.errors()] == [(name,)]


@pytest.mark.parametrize("text", ["127.0.0.1", "a.example,http://b.example", "*", "*.example"])
def test_a_redirect_host_is_a_name(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv(f"{PREFIX}HUB_REDIRECT_HOSTS", text)
    with pytest.raises(ValidationError, match="hub_redirect_hosts"):
        Settings()


def test_settings_are_frozen() -> None:
    with pytest.raises(ValidationError):
        Settings().port = 1  # type: ignore[misc]


def test_root_is_that_of_the_repository() -> None:
    assert (ROOT / "pyproject.toml").is_file()
    assert not ROOT.is_relative_to(Path.cwd())
