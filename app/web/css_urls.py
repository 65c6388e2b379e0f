"""References from our style sheets to other assets, rewritten to the fingerprinted names of the build."""

import posixpath
import re
from collections.abc import Callable, Collection

_URL = re.compile(r"""\burl\(\s*(["']?)(?!data:|#)([^"')]+?)\1\s*\)""", re.IGNORECASE)


class CssUrlError(ValueError):
    """A style sheet refers to a file that is not among the assets."""

    def __init__(self, sheet: str, reference: str) -> None:
        super().__init__(
            f"{sheet} refers to {reference}, which is no asset; fragments, queries and hosts are not either."
        )


def rewrite_urls(sheet: str, text: str, known: Collection[str], built_name: Callable[[str], str]) -> str:
    """`text` with every `url(file)` naming the built file, which lies in the same flat folder.

    Args:
        sheet: path of the style sheet among the assets, from which relative references start.
        text: its content.
        known: paths of all assets.
        built_name: the name of the built file of an asset.

    Raises:
        CssUrlError: a reference to anything that is not an asset.
    """

    def replaced(match: re.Match[str]) -> str:
        reference = match.group(2).strip()
        target = posixpath.normpath(posixpath.join(posixpath.dirname(sheet), reference))
        if target not in known:
            raise CssUrlError(sheet, reference)
        return f'url("{built_name(target)}")'

    return _URL.sub(replaced, text)
