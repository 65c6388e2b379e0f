"""HTML as a small tree, to look things up by id, tag, name and attribute instead of by how they look."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = frozenset(["area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"])


@dataclass
class Node:
    """An element with its attributes, in the order of the document."""

    tag: str
    attributes: dict[str, str] = field(default_factory=dict)
    children: list["Node | str"] = field(default_factory=list)

    def __getitem__(self, name: str) -> str:
        return self.attributes[name]

    def __iter__(self) -> Iterator["Node"]:
        """This element and all inside it."""
        yield self
        for child in self.children:
            if isinstance(child, Node):
                yield from child

    @property
    def raw(self) -> str:
        """All text, as it stands."""
        return "".join(child if isinstance(child, str) else child.raw for child in self.children)

    @property
    def text(self) -> str:
        """All text, each run of white space a single space."""
        return re.sub(r"\s+", " ", self.raw).strip()

    def all(self, tag: str | None = None, **attributes: str) -> list["Node"]:
        """Every element of that tag with those attributes; an underscore in a name stands for a dash."""
        wanted = {name.replace("_", "-"): value for name, value in attributes.items()}
        return [
            node
            for node in self
            if (tag is None or node.tag == tag) and all(node.attributes.get(n) == v for n, v in wanted.items())
        ]

    def one(self, tag: str | None = None, **attributes: str) -> "Node":
        """The only such element."""
        found = self.all(tag, **attributes)
        assert len(found) == 1, f"{len(found)} of {tag or 'any'} {attributes}"
        return found[0]

    def id(self, id_: str) -> "Node":
        """The element of that id; an id is there once."""
        return self.one(id=id_)

    def table(self) -> list[dict[str, str]]:
        """The rows of the table in this element, by the texts of its header."""
        header = [cell.text for cell in self.one("thead").all("th")]
        rows = [[cell.text for cell in row if cell.tag in ("th", "td")] for row in self.one("tbody").all("tr")]
        return [dict(zip(header, row, strict=True)) for row in rows]


class _Builder(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root = Node("document")
        self.open = [self.root]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        node = Node(tag, {name: value or "" for name, value in attrs})
        self.open[-1].children.append(node)
        if tag not in VOID:
            self.open.append(node)

    def handle_endtag(self, tag: str) -> None:
        if tag in VOID:
            return
        assert self.open[-1].tag == tag, f"</{tag}> closes <{self.open[-1].tag}>"
        self.open.pop()

    def handle_data(self, data: str) -> None:
        self.open[-1].children.append(data)


def parse(text: str) -> Node:
    """The tree of a document or a fragment. An element left open, or closed out of order, is refused."""
    builder = _Builder()
    builder.feed(text)
    builder.close()
    # The few elements that HTML lets stand open are closed by us, so an open one is a mistake.
    assert [node.tag for node in builder.open] == ["document"]
    return builder.root
