"""The same command in a shell, in a container and as a Kubernetes manifest."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from app.engine_io.launch.shell import command_lines, quote

TAB = "  "
_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_./-]*")
_READ_OTHERWISE = ("null", "true", "false", "yes", "no", "on", "off", "y", "n")
MOST_GPUS_OF_A_NODE = 8
ANY_INTERFACE = "0.0.0.0"  # noqa: S104  # inside a container, whose port is opened by name


@dataclass(frozen=True, slots=True)
class Frame:
    """What the frames need beside the flags.

    `serve` are the words that start the server, `model` the pair or word that names the model. `file` is the name and
    text of a file of options. `own_start` says that the image starts the server by itself and takes flags alone;
    `serve_in_image` is where its program lies if not on the path. `listen` opens a container's server to the outside.
    """

    engine: str
    image: str
    serve: tuple[str, ...]
    model: tuple[str, ...]
    pairs: tuple[tuple[str, ...], ...]
    port: int
    gpus: int
    replicas: int
    on_hub: bool
    own_start: bool
    listen: tuple[tuple[str, ...], ...] = ()
    serve_in_image: tuple[str, ...] = ()
    file: tuple[str, str] | None = None
    file_flag: str = ""

    def arguments(self, folder: str) -> list[tuple[str, ...]]:
        """Flags with values, the file in `folder` behind them; a folder means that it is a container."""
        last = [(self.file_flag, folder + self.file[0])] if self.file else []
        return [*self.pairs, *last, *(self.listen if folder else ())]


def shell(frame: Frame, comment: str) -> str:
    """Lines for a shell on the machine itself."""
    return _lines(comment, _document(frame), command_lines(_head(frame.serve, frame.model), frame.arguments("")))


def container(frame: Frame, comment: str) -> str:
    """Lines that start the official image."""
    mounts: list[tuple[str, ...]] = [("-v", "~/.cache/huggingface:/root/.cache/huggingface")] if frame.on_hub else []
    if not frame.on_hub:
        mounts.append(("-v", "./models:/models"))
    if frame.file:
        mounts.append(("-v", f"./{frame.file[0]}:/config/{frame.file[0]}"))
    serve = () if frame.own_start else frame.serve
    model = ("--model", *frame.model) if frame.own_start and len(frame.model) == 1 else frame.model
    options = [("-p", f"{frame.port}:{frame.port}"), *mounts]
    start = " \\\n  ".join(
        [
            "docker run --gpus all --ipc=host",
            *(f"{flag} {value}" for flag, value in options),
            _head((frame.image, *serve), model),
            *(" ".join(quote(word) for word in pair) for pair in frame.arguments("/config/")),
        ]
    )
    return _lines(comment, _document(frame), start)


def kubernetes(frame: Frame, comment: str) -> str:
    """A Deployment and a Service, with a ConfigMap where the engine reads a file."""
    name = "tokenroof-" + frame.engine.replace(".", "-")
    words = [*frame.model, *(word for pair in frame.arguments("/config/") for word in pair)]
    volumes: list[Any] = [{"name": "shm", "emptyDir": {"medium": "Memory"}}]
    mounts = [{"name": "shm", "mountPath": "/dev/shm"}]  # noqa: S108 # a path inside the container
    if frame.file:
        volumes.append({"name": "config", "configMap": {"name": name}})
        mounts.append({"name": "config", "mountPath": "/config"})
    if not frame.on_hub:
        volumes.append({"name": "models", "persistentVolumeClaim": {"claimName": "models"}})
        mounts.append({"name": "models", "mountPath": "/models"})
    server = {
        "name": "server",
        "image": frame.image,
        "command": list(frame.serve_in_image or frame.serve),
        "args": words,
        "ports": [{"containerPort": frame.port}],
        "resources": {"limits": {"nvidia.com/gpu": frame.gpus}},
        "volumeMounts": mounts,
    }
    labels = {"app": name}
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": frame.replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [server], "volumes": volumes}},
        },
    }
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name},
        "spec": {"selector": labels, "ports": [{"port": frame.port}]},
    }
    parts = [write_yaml(deployment), write_yaml(service)]
    if frame.file:
        held = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": dict([frame.file])}
        parts.insert(0, write_yaml(held))
    return _lines(comment, "---\n".join(parts).rstrip("\n"))


def write_yaml(value: Mapping[str, Any], indent: str = "") -> str:
    """A mapping as YAML: texts in double quotes unless they are plain words, several lines as a literal block."""
    lines: list[str] = []
    for key, inner in value.items():
        head = f"{indent}{_word(key)}:"
        if isinstance(inner, dict):
            lines.append(f"{head}\n{write_yaml(inner, indent + TAB)}")
        elif isinstance(inner, list):
            lines.append(f"{head}\n" + "".join(_item(one, indent + TAB) for one in inner))
        elif isinstance(inner, str) and inner.endswith("\n"):
            block = "".join(f"{indent}{TAB}{line}\n" for line in inner.splitlines())
            lines.append(f"{head} |\n{block}")
        else:
            lines.append(f"{head} {_word(inner)}\n")
    return "".join(lines)


def _item(value: Any, indent: str) -> str:
    if not isinstance(value, dict):
        return f"{indent}- {json.dumps(value) if isinstance(value, str) else _word(value)}\n"
    inner = write_yaml(value, indent + TAB)
    return f"{indent}- {inner[len(indent) + len(TAB) :]}"


def _word(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    text = str(value)
    is_plain = _PLAIN.fullmatch(text) is not None and text.lower() not in _READ_OTHERWISE
    return text if not isinstance(value, str) or is_plain else json.dumps(text)


def _document(frame: Frame) -> str:
    return f"cat > {frame.file[0]} <<'EOF'\n{frame.file[1]}EOF" if frame.file else ""


def _head(serve: tuple[str, ...], model: tuple[str, ...]) -> str:
    return " ".join(quote(word) for word in (*serve, *model))


def _lines(*parts: str) -> str:
    return "\n".join(part for part in parts if part) + "\n"
