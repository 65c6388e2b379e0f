"""Which models an accelerator holds, on its page: the answer that the page of each model gives for that card."""

import pytest
from starlette.testclient import TestClient

from app.calc.quantity import quantity
from app.catalog.facts import ModelShelf
from app.features.catalog.hardware_view import held_models
from tests.factories import shipped_catalog
from tests.features.asking import page

CATALOG = shipped_catalog()
SHELF = ModelShelf(CATALOG)


@pytest.mark.parametrize("id_", CATALOG.accelerators)
def test_each_row_is_the_widest_format_that_one_card_holds(id_: str) -> None:
    device = CATALOG.devices[id_]
    rows = {row.href.removeprefix("/models/"): row for row in held_models(device, SHELF)}
    for model, facts in SHELF.facts.items():
        held = [(load, load.on_one(device)) for load in facts.loads]
        fitting = [(load, holding) for load, holding in held if holding]
        assert (model in rows) == bool(fitting)
        if fitting:
            load, holding = fitting[0]
            row = rows[model]
            assert (row.weight_bytes, row.users, row.tokens) == (load.weight_bytes, holding.users, load.tokens)
            assert row.format.endswith("as shipped") == (load is facts.loads[0])
    sizes = [row.weight_bytes for row in rows.values()]
    assert sizes == sorted(sizes, reverse=True)


def test_the_page_lists_them_and_marks_a_shorter_limit(reader: TestClient) -> None:
    tree = page(reader, "/hardware/h100-sxm-80gb")
    section = tree.one("section", aria_labelledby="holds-title")
    rows = {row["Model"]: row for row in section.table()}
    held = held_models(CATALOG.devices["h100-sxm-80gb"], SHELF)
    assert len(rows) == len(held)
    (llama,) = [row for row in held if row.name == "Llama-3.1-8B"]
    assert rows["Llama-3.1-8B"] == {
        "Model": "Llama-3.1-8B",
        "Weights in": "bf16, as shipped",
        "Weights": quantity(16_060_522_496, "B", 4),
        "Users at 8,192 tokens": f"{llama.users:,}",
    }
    assert rows["falcon-7b"]["Users at 8,192 tokens"].startswith("at its limit of 2,048: ")
    assert "DeepSeek-V3" not in rows


def test_a_small_card_says_that_it_holds_little(reader: TestClient) -> None:
    counts = {id_: len(held_models(device, SHELF)) for id_, device in CATALOG.devices.items()}
    least = min(counts, key=lambda id_: counts[id_])
    section = page(reader, f"/hardware/{least}").one("section", aria_labelledby="holds-title")
    said = section.text
    assert ("None of the catalog" in said) if counts[least] == 0 else (f"{counts[least]} of the catalog" in said)
