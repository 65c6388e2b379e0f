"""The fake and the product against the binding itself: names and arguments, read from its source without running it."""

import ast
import importlib.util
import inspect
from importlib import import_module
from pathlib import Path

import pytest

fake = import_module("tests.machine.probes.fake_amdsmi")


@pytest.fixture(scope="module")
def binding() -> dict[str, ast.stmt]:
    """Every function and class of the binding by name."""
    found = importlib.util.find_spec("amdsmi")  # Finds it, and does not import it: that needs ROCm's library.
    if found is None or found.origin is None:
        pytest.skip("amdsmi (the amd extra) is not installed")
    source = Path(found.origin).with_name("amdsmi_interface.py").read_text(encoding="utf-8")
    return {each.name: each for each in ast.parse(source).body if isinstance(each, ast.FunctionDef | ast.ClassDef)}


def test_a_function_of_the_fake_is_one_of_the_binding(binding: dict[str, ast.stmt]) -> None:
    for name, given in fake.FakeAmdSmi().parameters.items():
        function = binding[name]
        assert isinstance(function, ast.FunctionDef), name
        required = len(function.args.args) - len(function.args.defaults)
        assert required <= given <= len(function.args.args), name


def test_the_members_of_an_enumeration_are_those_of_the_binding(binding: dict[str, ast.stmt]) -> None:
    for kind in fake.ENUMERATIONS:
        enumeration = binding[kind.__name__]
        assert isinstance(enumeration, ast.ClassDef)
        assigned = [target for each in enumeration.body if isinstance(each, ast.Assign) for target in each.targets]
        members = {target.id for target in assigned if isinstance(target, ast.Name)}
        assert set(kind.__members__) <= members, kind


def test_the_product_calls_nothing_that_the_fake_does_not_have() -> None:
    called = {
        node.value
        for name in ("amd", "amd_card", "amd_smi")
        for node in ast.walk(ast.parse(inspect.getsource(import_module(f"app.machine.probes.{name}"))))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith("amdsmi_")
    }
    assert called - {"amdsmi_get_gpu_memory_"} <= set(fake.FakeAmdSmi().parameters)
    assert len(called) > 15
