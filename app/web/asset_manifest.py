"""What a build of the browser assets writes down and a server reads: each file, its name and its sizes."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from types import MappingProxyType

FILE_NAME = "manifest.json"
CONTENT_TYPES = MappingProxyType(
    {
        ".css": "text/css; charset=utf-8",
        ".js": "text/javascript; charset=utf-8",
        ".svg": "image/svg+xml; charset=utf-8",
        ".txt": "text/plain; charset=utf-8",
        ".webmanifest": "application/manifest+json; charset=utf-8",
        ".ico": "image/x-icon",
        ".png": "image/png",
        ".woff2": "font/woff2",
    }
)
"""Every file type that may lie in static/."""
TEXT_TYPES = frozenset(suffix for suffix, content_type in CONTENT_TYPES.items() if "charset" in content_type)
"""File types stored compressed as well; the others are compressed in themselves."""
ENCODINGS = MappingProxyType({"br": ".br", "gzip": ".gz", "identity": ""})
"""Suffix of the stored file for each content coding, best first."""


class AssetsMissingError(RuntimeError):
    """There is no complete asset build in the folder."""

    def __init__(self, missing: Path) -> None:
        super().__init__(f"The browser assets are not built ({missing} is missing): run make assets.")


@dataclass(frozen=True, slots=True)
class Asset:
    """One built file: its fingerprinted name, checksum for the integrity attribute, and sizes as stored."""

    file: str
    integrity: str
    bytes: int
    br_bytes: int | None = None
    gz_bytes: int | None = None

    @property
    def content_type(self) -> str:
        """Value of the Content-Type header."""
        return CONTENT_TYPES[Path(self.file).suffix]

    @property
    def stored_files(self) -> Mapping[str, str]:
        """Name of the stored file for each content coding there is, best first."""
        encodings = ENCODINGS if Path(self.file).suffix in TEXT_TYPES else {"identity": ""}
        return {encoding: self.file + suffix for encoding, suffix in encodings.items()}


@dataclass(frozen=True, slots=True)
class Manifest:
    """One build: a digest of all that went in, and the assets by their path in static/ (or vendor/)."""

    inputs: str
    assets: Mapping[str, Asset]

    @classmethod
    def read(cls, folder: Path) -> "Manifest":
        """The build in the folder. Raises AssetsMissingError, also for a manifest that is not whole."""
        path = folder / FILE_NAME
        try:
            stored = json.loads(path.read_bytes())
            return cls(stored["inputs"], {logical: Asset(**entry) for logical, entry in stored["assets"].items()})
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            raise AssetsMissingError(path) from None

    def as_json(self) -> bytes:
        """The stored form."""
        entries = {logical: asdict(asset) for logical, asset in sorted(self.assets.items())}
        return json.dumps({"inputs": self.inputs, "assets": entries}, indent=1).encode() + b"\n"

    def stored_files(self) -> frozenset[str]:
        """Names of all files of this build but the manifest."""
        return frozenset(name for asset in self.assets.values() for name in asset.stored_files.values())
