"""Arguments found by their names, in the several ways that engines print them."""

from app.engine_io.logs.findings import Settings


def test_the_list_in_force_goes_before_the_list_asked_for() -> None:
    text = "args: {'tp': 1, 'seqs': 8}\nwith config: tp=2, other_tp=3\nwith config: tp=4\n"
    settings = Settings.find(text, ("with config: ", "args: "))
    assert settings.whole("tp") == 4
    assert settings.whole("seqs") == 8
    assert settings.whole("missing") is None


def test_values_of_every_kind() -> None:
    text = """args: Namespace(a='x y', b="z", c=True, d=None, e=0.9, f=[1, 2], g=<Kind.ONE: 'one'>, h=-1, max_e=3)"""
    settings = Settings.find(text, ("args: Namespace(",))
    assert settings.text("a") == "x y"
    assert settings.text("b") == "z"
    assert settings.flag("c") is True
    assert settings.text("d") == "None"
    assert settings.real("e") == 0.9
    assert settings.text("f") is None
    assert settings.text("g") == "one"
    assert settings.whole("h") == -1
    assert settings.whole("c") is None


def test_an_object_inside() -> None:
    settings = Settings.find("args: config={'method': 'mtp', 'n': 3}, n=7", ("args: ",))
    inner = settings.inside("config")
    assert inner is not None
    assert inner.whole("n") == 3
    assert Settings.find("args: config=None, n=7", ("args: ",)).inside("config") is None
    assert Settings.find("args: config=Some(n=4)", ("args: ",)).inside("config") == Settings(("n=4",))
