"""Every setting of the server, read once from TOKENROOF_ variables (or a .env file)."""

from functools import cached_property
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, SecretStr, field_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

HOST_NAME = r"^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z]([a-z0-9-]{0,61}[a-z0-9])?$"
"""A name with a dot, in small letters; its last part starts with a letter, so that no IP address fits."""

ROOT = Path(__file__).resolve().parent.parent


class Settings(BaseSettings):
    """Frozen; built by the caller of `create_app`, never at import. Each field is a variable of the same name."""

    model_config = SettingsConfigDict(env_prefix="TOKENROOF_", env_file=".env", frozen=True, extra="ignore")

    host: str = Field("127.0.0.1", description="Address that `serve` listens on. The Makefile's HOST sets it too.")
    port: int = Field(
        8000, ge=0, le=65535, description="Port that `serve` listens on. The Makefile's PORT sets it too."
    )
    workers: int = Field(1, ge=1, le=32, description="Server processes; they share the SQLite file.")
    data_dir: Path = Field(
        Path("var/data"), description="Folder of the SQLite file and its backups. Must be a local disk: WAL needs one."
    )
    assets_dir: Path = Field(Path("var/assets"), description="Folder of the built browser assets (`make assets`).")
    allowed_hosts: Annotated[tuple[str, ...], NoDecode] = Field(
        (),
        description="Host names with a dot that may be used to reach the server, comma-separated, or `*`. "
        "IP addresses, single-label names and *.localhost always may.",
    )
    public_url: str | None = Field(
        None, description="Base of the links the server hands out, e.g. https://roof.example; else that of the request."
    )
    hsts: bool = Field(False, description="Send Strict-Transport-Security. Only behind TLS.")
    max_body_bytes: int = Field(262_144, ge=1_024, description="Largest request body, counted while it streams.")
    max_batch_body_bytes: int = Field(
        2_097_152, ge=1_024, description="The same for /api/v1/evaluate/batch and imports."
    )
    link_expiry_days: int = Field(90, ge=1, le=3650, description="Life of a saved link when none is chosen.")
    allow_unexpiring_links: bool = Field(False, description="Let a saved link be kept without an expiry date.")
    probe_interval_s: float = Field(1.0, ge=0.2, le=60, description="Seconds between two readings of the live probes.")
    servers: Annotated[tuple[str, ...], NoDecode] = Field(
        (),
        description="Inference servers to read, comma-separated, each like `main=http://127.0.0.1:8001`; a path is "
        "taken as it is. They may be on this machine and in its network.",
    )
    server_tokens: Annotated[tuple[SecretStr, ...], NoDecode] = Field(
        (), description="Bearer tokens for servers that want one, comma-separated, each `name=token`."
    )
    server_interval_s: float = Field(2.0, ge=0.5, le=60, description="Seconds between two readings of a server.")
    server_max_bytes: int = Field(
        2_097_152, ge=1_024, le=16_777_216, description="Largest metrics text that is read, counted while it streams."
    )
    typed_servers: Literal["off", "local", "lan", "public"] = Field(
        "off",
        description="Which servers people may name on the live page: none; `local`, those of this machine; `lan`, "
        "those of its network too; `public`, those on the public internet and no others.",
    )
    recording: bool = Field(False, description="Record the live readings from the start, not only when asked to.")
    record_every_s: float = Field(10.0, ge=1, le=3600, description="Seconds between two recorded readings.")
    record_keep_hours: float = Field(48.0, gt=0, le=8760, description="Hours for which recorded readings are kept.")
    microbenchmark: bool = Field(
        False, description="Let the operator measure this machine's roofs from the live page; the command always may."
    )
    operator_token: SecretStr | None = Field(
        None,
        min_length=16,
        description="Lets its bearer do what only the operator may (record, measure roofs) from another machine. "
        "On this machine, at a loopback address, no token is needed.",
    )
    probe_max_streams: int = Field(64, ge=1, le=1024, description="Viewers of the live stream at one time.")
    probe_stream_max_s: float = Field(3600, ge=1, description="Life of one live stream; the browser reconnects.")
    hub_import: bool = Field(
        False,
        description="Let people import a model's configuration by its name: the server then fetches it from the hub. "
        "Off, the hub is never asked for anything.",
    )
    hub_host: str = Field(
        "huggingface.co",
        pattern=HOST_NAME,
        description="Host name of the hub, reached by https on port 443 and at public addresses only.",
    )
    hub_redirect_hosts: Annotated[tuple[Annotated[str, Field(pattern=HOST_NAME)], ...], NoDecode] = Field(
        (), description="Other host names that the hub may redirect to, comma-separated; else it may not leave itself."
    )
    hub_timeout_s: float = Field(5.0, ge=0.1, le=60, description="Seconds that one import may take, all files of it.")
    hub_connect_timeout_s: float = Field(
        2.0, ge=0.1, le=60, description="Seconds that the hub may take to accept a connection."
    )
    hub_max_bytes: int = Field(
        1_048_576, ge=1_024, le=16_777_216, description="Largest file that is imported, counted while it streams."
    )
    hub_max_parallel: int = Field(
        4, ge=1, le=64, description="Imports under way at one time; while there are as many, others are turned away."
    )
    hub_cache_s: float = Field(
        900.0, ge=0, le=86_400, description="Seconds for which an imported configuration is remembered."
    )

    @field_validator("allowed_hosts", "hub_redirect_hosts", "servers", "server_tokens", mode="before")
    @classmethod
    def _split_on_commas(cls, value: object) -> object:
        return tuple(part.strip() for part in value.split(",") if part.strip()) if isinstance(value, str) else value

    @cached_property
    def database_path(self) -> Path:
        return self.data_dir / "tokenroof.sqlite3"
