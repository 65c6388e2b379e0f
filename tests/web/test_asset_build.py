"""The asset build, on small source trees; nothing here starts npm or reads node_modules."""

import gzip
import posixpath
import re
from pathlib import Path

import brotli
import pytest

from app.settings import ROOT
from app.web.asset_build import LIBRARY_FILES, AssetSourceError, collect_sources, write_assets
from app.web.assets import current_build

SOURCES = {
    "css/app.css": b"body{margin:0}",
    "favicon.svg": b"<svg/>",
    "icon.png": b"\x89PNG",
    "js/app.js": b'import "./theme.js";\n',
    "js/theme.js": b"export const palette = 1;\n",
}
REFERENCE = re.compile(r"""(?:\bfrom|\bimport|\bimport\(|\burl\()\s*(["'])(?!data:|#)([^"'\n]+)\1""")


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "var" / "assets"


def built(out: Path) -> Path:
    digest = current_build(out)
    assert digest is not None
    return out / digest


def test_files_keep_their_paths_under_the_digest_of_all(out: Path) -> None:
    assert write_assets(out, SOURCES) is True
    first = built(out)
    for name, content in SOURCES.items():
        assert (first / name).read_bytes() == content
    write_assets(out, SOURCES | {"js/theme.js": b"export const palette = 2;\n"})
    assert built(out) != first


def test_text_is_stored_compressed_too_and_pictures_are_not(out: Path) -> None:
    write_assets(out, SOURCES)
    css = built(out) / "css/app.css"
    compressed_br, compressed_gz = Path(f"{css}.br").read_bytes(), Path(f"{css}.gz").read_bytes()
    assert brotli.decompress(compressed_br) == gzip.decompress(compressed_gz) == SOURCES["css/app.css"]
    assert not (built(out) / "icon.png.br").exists()


def test_a_second_build_of_the_same_does_nothing(out: Path) -> None:
    write_assets(out, SOURCES)
    before = (built(out) / "css/app.css").stat().st_mtime_ns
    assert write_assets(out, SOURCES) is False
    assert (built(out) / "css/app.css").stat().st_mtime_ns == before


@pytest.mark.parametrize("spoilt", ["current", "css/app.css", "css/app.css.br"])
def test_a_build_that_is_not_whole_is_made_again(out: Path, spoilt: str) -> None:
    write_assets(out, SOURCES)
    path = out / spoilt if spoilt == "current" else built(out) / spoilt
    path.unlink()
    assert write_assets(out, SOURCES) is True
    assert path.is_file()


def test_one_earlier_build_stays_and_foreign_files_are_left_alone(out: Path) -> None:
    out.mkdir(parents=True)
    (out / "NOTES.txt").write_text("the operator's")
    builds = []
    for number in range(3):
        write_assets(out, SOURCES | {"js/theme.js": f"{number};\n".encode()})
        builds.append(built(out).name)
    assert {path.name for path in out.iterdir()} == {"NOTES.txt", "current", *builds[1:]}


def test_sources_are_the_static_files_the_libraries_and_the_chart_stylesheet(tmp_path: Path) -> None:
    static, node_modules = tmp_path / "static", tmp_path / "node_modules"
    pairs = "".join(f'"X .r{number}":"top:0;",' for number in range(60))
    loop = 'for(k in R)s=k.replace(/^,/," ,").replace(/X/g,".plot").replace(/Y/g,".note")'
    for logical, path in LIBRARY_FILES.items():
        (node_modules / path).parent.mkdir(parents=True, exist_ok=True)
        (node_modules / path).write_text(f"R={{{pairs}}};{loop}" if "plotly" in logical else logical)
    (static / "js").mkdir(parents=True)
    (static / "js/app.js").write_text("1")
    (static / "js/.app.js.swp").write_text("an editor's")
    sources = collect_sources(static, node_modules)
    assert set(sources) == {"js/app.js", "vendor/plotly.css", *LIBRARY_FILES}
    assert sources["vendor/plotly.css"].count(b".plot .r") == 60

    (static / "notes.doc").write_text("")
    with pytest.raises(AssetSourceError, match=r"static/notes\.doc: unknown file type"):
        collect_sources(static, node_modules)
    (static / "notes.doc").unlink()
    (node_modules / LIBRARY_FILES["vendor/htmx.min.js"]).unlink()
    with pytest.raises(AssetSourceError, match=r"lacks .*htmx\.min\.js"):
        collect_sources(static, node_modules)


def test_what_our_modules_and_sheets_refer_to_is_among_the_assets() -> None:
    static = ROOT / "static"
    known = {path.relative_to(static).as_posix() for path in static.rglob("*") if path.is_file()} | set(LIBRARY_FILES)
    found = {
        (name, posixpath.normpath(posixpath.join(posixpath.dirname(name), reference[2])))
        for name in known
        if name.endswith((".css", ".js")) and not name.startswith("vendor/")
        for reference in REFERENCE.finditer((static / name).read_text())
    }
    assert ("css/base.css", "vendor/inter.woff2") in found
    assert {(name, target) for name, target in found if target not in known} == set()
