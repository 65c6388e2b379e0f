"""The asset build, on small source trees; nothing here starts npm or reads node_modules."""

import gzip
import hashlib
import json
from pathlib import Path

import brotli
import pytest

from app.web.asset_build import write_assets
from app.web.asset_manifest import AssetsMissingError, Manifest
from app.web.asset_sources import LIBRARY_FILES, AssetSourceError, collect_sources
from app.web.css_urls import CssUrlError
from app.web.es_modules import ModuleImportError

SOURCES = {
    "css/app.css": b"body{margin:0}",
    "favicon.svg": b"<svg/>",
    "icon.png": b"\x89PNG",
    "js/app.js": b'import { draw } from "./chart.js";\nimport "./theme.js";\ndraw();\n',
    "js/chart.js": b'import {\n  palette,\n} from "./theme.js";\nexport const draw = () => palette;\n',
    "js/theme.js": b"export const palette = 1;\n",
}


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "var" / "assets"


def built_text(out: Path, logical: str) -> str:
    return (out / Manifest.read(out).assets[logical].file).read_text()


def test_names_carry_the_digest_of_what_is_stored(out: Path) -> None:
    assert write_assets(out, SOURCES) is True
    for logical, asset in Manifest.read(out).assets.items():
        content = (out / asset.file).read_bytes()
        stem, digits, suffix = asset.file.rsplit(".", 2)
        assert f"{stem}.{suffix}" == Path(logical).name
        assert digits == hashlib.sha256(content).hexdigest()[:12]
        assert asset.bytes == len(content)


def test_text_is_stored_compressed_too_and_pictures_are_not(out: Path) -> None:
    write_assets(out, SOURCES)
    assets = Manifest.read(out).assets
    css = out / assets["css/app.css"].file
    compressed_br, compressed_gz = Path(f"{css}.br").read_bytes(), Path(f"{css}.gz").read_bytes()
    assert brotli.decompress(compressed_br) == gzip.decompress(compressed_gz) == SOURCES["css/app.css"]
    assert compressed_gz[4:8] == b"\0\0\0\0", "a time in the header would change the file at every build"
    assert (len(compressed_br), len(compressed_gz)) == (assets["css/app.css"].br_bytes, assets["css/app.css"].gz_bytes)
    assert assets["icon.png"].br_bytes is None
    assert not Path(f"{out / assets['icon.png'].file}.br").exists()


def test_imports_name_the_built_files(out: Path) -> None:
    write_assets(out, SOURCES)
    names = {logical: asset.file for logical, asset in Manifest.read(out).assets.items()}
    assert built_text(out, "js/app.js") == (
        f'import {{ draw }} from "./{names["js/chart.js"]}";\nimport "./{names["js/theme.js"]}";\ndraw();\n'
    )
    assert f'}} from "./{names["js/theme.js"]}"' in built_text(out, "js/chart.js")


def test_a_change_deep_down_renames_all_that_import_it(out: Path) -> None:
    write_assets(out, SOURCES)
    before = Manifest.read(out).assets
    assert write_assets(out, SOURCES | {"js/theme.js": b"export const palette = 2;\n"}) is True
    after = Manifest.read(out).assets
    changed = {logical for logical in before if before[logical].file != after[logical].file}
    assert changed == {"js/app.js", "js/chart.js", "js/theme.js"}


def test_a_second_build_of_the_same_does_nothing(out: Path) -> None:
    write_assets(out, SOURCES)
    stamps = {path: path.stat().st_mtime_ns for path in out.iterdir()}
    assert write_assets(out, dict(reversed(SOURCES.items()))) is False
    assert stamps == {path: path.stat().st_mtime_ns for path in out.iterdir()}


@pytest.mark.parametrize("spoilt", ["manifest.json", "css/app.css"])
def test_a_build_that_is_not_whole_is_made_again(out: Path, spoilt: str) -> None:
    write_assets(out, SOURCES)
    path = out / "manifest.json" if spoilt == "manifest.json" else out / Manifest.read(out).assets[spoilt].file
    path.unlink()
    assert write_assets(out, SOURCES) is True
    assert path.is_file()


def test_one_earlier_build_stays_and_foreign_files_are_left_alone(out: Path) -> None:
    names = []
    for colour in (b"red", b"green", b"blue"):
        write_assets(out, {"css/app.css": b"body{color:" + colour + b"}"})
        names.append(Manifest.read(out).assets["css/app.css"].file)
        (out / "NOTES.txt").write_text("mine")
    present = {path.name for path in out.iterdir()}
    assert present == {"manifest.json", "NOTES.txt"} | {
        name + suffix for name in names[1:] for suffix in ("", ".br", ".gz")
    }
    assert [path.name for path in out.parent.iterdir()] == ["assets"], "the scratch folder is gone"


def test_a_failed_build_leaves_the_one_before_in_force(out: Path) -> None:
    write_assets(out, SOURCES)
    before = (out / "manifest.json").read_bytes()
    with pytest.raises(ModuleImportError):
        write_assets(out, SOURCES | {"js/theme.js": b'import "./gone.js";\n'})
    assert (out / "manifest.json").read_bytes() == before


@pytest.mark.parametrize("text", ["", "{", "[]", '{"inputs": ""}', '{"inputs": "", "assets": {"a": {"size": 1}}}'])
def test_a_manifest_that_is_not_whole_counts_as_missing(out: Path, text: str) -> None:
    out.mkdir(parents=True)
    (out / "manifest.json").write_text(text)
    with pytest.raises(AssetsMissingError, match="run make assets"):
        Manifest.read(out)


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


def test_stylesheets_may_not_import_others(tmp_path: Path) -> None:
    (tmp_path / "static").mkdir()
    (tmp_path / "static/app.css").write_text('@import "tokens.css";')
    with pytest.raises(AssetSourceError, match="does not survive"):
        collect_sources(tmp_path / "static", tmp_path / "node_modules")


def test_a_url_in_a_stylesheet_names_the_fingerprinted_file(out: Path) -> None:
    write_assets(
        out, SOURCES | {"css/app.css": b'a{src:url("../vendor/x.woff2");mask:url(#m)}', "vendor/x.woff2": b"f"}
    )
    assets = Manifest.read(out).assets
    built = (out / assets["css/app.css"].file).read_text()
    assert built == f'a{{src:url("./{assets["vendor/x.woff2"].file}");mask:url(#m)}}'


@pytest.mark.parametrize("reference", ["../x.svg", "'nope.svg'", "//host/x", "https://host/x", "x.svg#part"])
def test_a_url_of_what_is_no_asset_is_refused(out: Path, reference: str) -> None:
    with pytest.raises(CssUrlError):
        write_assets(out, SOURCES | {"css/app.css": f"a{{background:url({reference})}}".encode()})


def test_the_manifest_is_plain_json(out: Path) -> None:
    write_assets(out, SOURCES)
    stored = json.loads((out / "manifest.json").read_bytes())
    assert list(stored) == ["inputs", "assets"]
    assert list(stored["assets"]) == sorted(SOURCES)
    assert stored["assets"]["favicon.svg"]["integrity"].startswith("sha384-")
