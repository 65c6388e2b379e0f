"""The query as the lesson reads it: that of the workbench, with a usual model and card for who brings none."""

from app.web.urls import Items

USUAL = (("model", "llama-3.1-8b"), ("hw", "h100-sxm-80gb"))
"""The reference case of the story."""


def with_usual(items: Items) -> list[tuple[str, str]]:
    """The items, with the usual model and accelerator where they name none."""
    named = {name for name, _ in items}
    return [*(item for item in USUAL if item[0] not in named), *items]
