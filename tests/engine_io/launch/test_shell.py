"""Shell text taken apart."""

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.engine_io.launch.findings import CommandError
from app.engine_io.launch.shell import command_lines, quote, read_script

WORDS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=20)


@given(st.lists(WORDS, min_size=1, max_size=6))
def test_quoted_words_come_back(words: list[str]) -> None:
    text = command_lines(quote(words[0]), [(word,) for word in words[1:]])
    assert read_script(text).commands == [words]
    assert shlex.split(text.replace("\\\n", " ")) == words


@pytest.mark.parametrize(
    ("text", "commands"),
    [
        ("a b # c\nd", [["a", "b"], ["d"]]),
        ("a 'b c' \"d $e\" f\\ g", [["a", "b c", "d $e", "f g"]]),
        ("a;b&&c|d&", [["a"], ["b"], ["c"], ["d"]]),
        ("a \\\n  b", [["a", "b"]]),
        ("a > f 2>&1", [["a", ">f", "2", ">1"]]),
        ("a <model> --b=<x y>", [["a", "<>", "--b=<>"]]),
        ("a $(b c) ${d}", [["a", "$(b c", "${d}"]]),
        ('a "b\\"c" "d\\e"', [["a", 'b"c', "d\\e"]]),
        ("", []),
    ],
)
def test_a_text_and_its_words(text: str, commands: list[list[str]]) -> None:
    assert read_script(text).commands == commands


def test_here_documents_belong_to_their_files() -> None:
    script = read_script("cat > a.yml <<'EOF'\nx: 1\nEOF\ncat <<-END >>b\n\ty\n\tEND\nrun")
    assert script.files == {"a.yml": "x: 1\n", "b": "\ty\n"}
    assert script.commands[-1] == ["run"]


@pytest.mark.parametrize("text", ["a 'b", 'a "b', "a $(b", "cat <<EOF\nx", "cat <<\n", "a " * 9000])
def test_what_is_cut_off_is_refused(text: str) -> None:
    with pytest.raises(CommandError):
        read_script(text)
