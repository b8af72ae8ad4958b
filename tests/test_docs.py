"""What the README promises is what the command has."""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from gpucost_tui.cli import WORDS, group

README = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")
TABLE = README[README.index("## Words") :]


@pytest.mark.parametrize("word", WORDS)
def test_every_word_stands_in_the_readme_and_explains_itself(word: str) -> None:
    assert re.search(rf"`(?:gpucost )?{word}\b", TABLE), f"README's table of words lacks {word}"
    told = CliRunner().invoke(group, [word, "--help"])
    assert told.exit_code == 0, told.output
    assert "Usage:" in told.output


@pytest.mark.parametrize("word", WORDS)
def test_every_option_has_a_help(word: str) -> None:
    command = group.get_command(click.Context(group), word)
    assert command is not None
    commands = [command]
    if isinstance(command, click.Group):
        commands += list(command.commands.values())
    for one in commands:
        assert one.help, f"{one.name} says nothing of itself"
        lacking = [
            option.opts[0]
            for option in one.params
            if isinstance(option, click.Option) and not option.hidden and not option.help
        ]
        assert not lacking, f"{word} {one.name}: no help for {lacking}"


def test_the_two_commands_are_one_line_each() -> None:
    assert "    python3 -m pip install . && gpucost demo\n" in README
    assert "    python3 -m pip install -e '.[test]' && python3 -m pytest\n" in README


def test_words_in_the_readme_exist() -> None:
    named = set(re.findall(r"`gpucost ([a-z]+)\b", README))
    unknown = named - set(WORDS)
    assert not unknown, f"the README names words that do not exist: {unknown}"
