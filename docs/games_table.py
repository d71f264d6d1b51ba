"""Prints the README's table of games; ``--write`` puts it into the README, between its markers."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from gen_games import families_table

README = Path(__file__).parents[1] / "README.md"
BEGIN, END = "<!-- games: written by docs/games_table.py -->", "<!-- end of games -->"


def filled(text: str) -> str:
    """The README's text with the current table.

    Raises:
        ValueError: the markers are missing.
    """
    new, count = re.subn(
        f"{re.escape(BEGIN)}.*?{re.escape(END)}", lambda _: f"{BEGIN}\n{families_table()}\n{END}", text, flags=re.S
    )
    if count != 1:
        raise ValueError(f"README.md must have the markers {BEGIN} and {END} once.")
    return new


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        README.write_text(filled(README.read_text()))
    else:
        print(families_table())
