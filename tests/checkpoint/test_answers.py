"""Kinds of layers that no model of the catalog has, from the configuration to an answer whose working adds up."""

import pytest

from app.calc.model.parameters import count_parameters
from app.catalog.architecture_document import architecture_document, read_architecture
from app.checkpoint.reading import read_config
from app.scenario.answer import answer
from app.scenario.scenario import Scenario
from tests.calc.test_explanations import check_formula
from tests.checkpoint.published import config
from tests.factories import shipped_catalog

names = pytest.mark.parametrize(
    "name", ["lfm2-1.2b", "lfm2-8b-a1b", "falcon-h1-0.5b", "recurrentgemma-2b", "rwkv6-1.6b", "rwkv7-1.5b"]
)


@names
@pytest.mark.parametrize("ranks", [1, 2])
@pytest.mark.parametrize("weights", ["bf16", "int4"])
def test_every_number_of_an_answer_has_a_working_that_gives_it(name: str, ranks: int, weights: str) -> None:
    given = {
        "model": {"config": config(name), "name": name},
        "hardware": {"id": "h100-sxm-80gb"},
        "precision": {"weights": weights},
        "parallelism": {"tensor": ranks},
    }
    evaluation = answer(Scenario.model_validate(given), shipped_catalog()).evaluation
    for explanation in evaluation.explanations:
        check_formula(explanation)
    if (ranks, weights) == (1, "bf16"):
        params = count_parameters(read_config(config(name), name).architecture).total
        assert evaluation.measures.memory.per_gpu.weights_bytes == 2 * params


@names
def test_a_document_of_the_editor_is_the_same_model(name: str) -> None:
    architecture = read_config(config(name), name).architecture
    assert read_architecture(architecture_document(architecture), name) == architecture
