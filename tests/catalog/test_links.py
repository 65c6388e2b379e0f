"""Links between groups of GPUs: rates by their standards, and rows that are not to be trusted."""

from pathlib import Path

import pytest

from app.catalog.links import load_links
from app.catalog.rows import CatalogError
from tests.factories import shipped_catalog

ROW = '[[link]]\nid = "a"\nname = "A"\ngbit_per_s = 100\nsource = "a standard"\n'


@pytest.mark.parametrize(
    ("id_", "bytes_per_s"),
    [
        ("ethernet-100g", 12.5e9),
        ("ib-hdr", 25e9),
        ("ib-ndr", 50e9),
        ("ib-xdr", 100e9),
        ("pcie-5", 32e9 * 128 / 130 * 16 / 8),
    ],
)
def test_rates_in_one_direction(id_: str, bytes_per_s: float) -> None:
    link = load_links()[id_]
    assert link.bytes_per_s == pytest.approx(bytes_per_s, rel=1e-3)
    assert link.id == id_
    assert link.source


def test_the_catalog_has_all_of_them_in_the_order_of_the_file() -> None:
    assert list(shipped_catalog().links) == ["ethernet-100g", "ib-hdr", "ib-ndr", "ib-xdr", "pcie-5"]
    assert shipped_catalog().links == load_links()


@pytest.mark.parametrize(
    "text",
    [
        "",
        'link = "a"',
        ROW + ROW,
        ROW.replace("100", "0"),
        ROW.replace("100", "-1"),
        ROW.replace("100", "nan"),
        ROW.replace("100", '"fast"'),
        ROW.replace("a standard", " "),
        ROW.replace('id = "a"\n', ""),
        ROW.replace("source", "sauce"),
        ROW + 'colour = "red"\n',
        "[[link]\n",
    ],
)
def test_a_row_that_is_not_to_be_trusted_is_refused(text: str, tmp_path: Path) -> None:
    file = tmp_path / "links.toml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(CatalogError):
        load_links(file)


def test_links_cannot_be_changed() -> None:
    with pytest.raises(TypeError):
        load_links()["a"] = None  # type: ignore[index]
