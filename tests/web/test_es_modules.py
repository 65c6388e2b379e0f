"""Import specifiers: found where they are code, replaced, ordered."""

import pytest

from app.web.es_modules import ModuleImportError, dependency_order, imported_paths, rewrite_imports

EVERY_FORM = """\
import first from "./first.js";
import * as second from './second.js';
import {
  a as b,
} from "./parts/third.js";
  export { c } from "../fourth.js";
export * from "./fifth.js";
import "./sixth.js";
const later = await import("./seventh.js");
"""
NO_IMPORT = r"""
// import x from "./commented.js";
/* import y from "./commented.js"
import z from "./commented.js";
 * @type {import("./commented.js").Shape} */
const accept = "*/*", text = "import('./quoted.js')", quote = '\'import("./quoted.js")';
const page = `
import x from "./templated.js";
`;
export const from = "./not-an-import.js";
export default function (from) { return "./not-an-import.js"; }
const important = "./x.js", { meta } = import.meta;
/* and */ const end = "/*";
"""


def test_every_form_of_import_is_found() -> None:
    assert list(imported_paths("js/app.js", EVERY_FORM)) == [
        "js/first.js",
        "js/second.js",
        "js/parts/third.js",
        "fourth.js",
        "js/fifth.js",
        "js/sixth.js",
        "js/seventh.js",
    ]


def test_comments_and_strings_hold_no_imports() -> None:
    assert list(imported_paths("js/app.js", NO_IMPORT)) == []


def test_only_the_specifiers_are_replaced() -> None:
    written = rewrite_imports("js/app.js", EVERY_FORM, lambda path: f"<{path}>")
    assert written.splitlines()[0] == 'import first from "<js/first.js>";'
    assert written.splitlines()[-1] == 'const later = await import("<js/seventh.js>");'
    assert rewrite_imports("js/app.js", NO_IMPORT, lambda path: "never") == NO_IMPORT


def test_modules_come_after_what_they_import() -> None:
    order = dependency_order({"js/a.js": 'import "./b.js";', "js/b.js": 'import "./c.js";', "js/c.js": ""})
    assert order == ("js/c.js", "js/b.js", "js/a.js")


@pytest.mark.parametrize(
    ("modules", "message"),
    [
        (
            {"js/a.js": 'import "./b.js";', "js/b.js": 'import "./a.js";'},
            r"in a circle: js/([ab])\.js → js/[ab]\.js → js/\1\.js\.$",
        ),
        ({"js/a.js": 'import "./b.js";'}, r"js/a\.js imports js/b\.js, which does not exist"),
        ({"js/a.js": 'import h from "htmx.org";'}, r"imports 'htmx\.org': only relative paths"),
        ({"js/a.js": 'import h from "/assets/x.js";'}, "only relative paths"),
    ],
)
def test_what_no_browser_could_follow_is_refused(modules: dict[str, str], message: str) -> None:
    with pytest.raises(ModuleImportError, match=message):
        dependency_order(modules)
