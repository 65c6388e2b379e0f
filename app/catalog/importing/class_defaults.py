"""What the classes of nested blocks take for keys that a file leaves out."""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

CLASS_DEFAULTS: Mapping[str, Mapping[str, int]] = MappingProxyType(
    tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
)
