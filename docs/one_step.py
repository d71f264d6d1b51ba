"""The files that ``one_step.md`` names in its tables, from which its counts and a test of its truth are made."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = Path(__file__).with_suffix(".md")
PACKAGE = PAGE.parents[1] / "gpuzoo"


def tables() -> list[list[list[str]]]:
    """By table and row, the files of a row: one, or one for each kind of device (the CPU's first)."""
    found: list[list[list[str]]] = []
    inside = False
    for line in PAGE.read_text().splitlines():
        if not line.startswith("|"):
            inside = False
            continue
        if not inside:
            found.append([])
        inside = True
        files = re.findall(r"`([\w/]+\.\w+)`", line)
        if files:
            found[-1].append(files)
    return [rows for rows in found if rows]


def substitutions() -> dict[str, str]:
    """``files_of_a_step``, and ``lines_FOLDER_NAME`` for each file."""
    step, *others = tables()
    files = [file for rows in (step, *others) for row in rows for file in row]
    lines = {
        f"lines_{'_'.join(Path(file).with_suffix('').parts[-2:])}": str(len((PACKAGE / file).read_text().splitlines()))
        for file in files
    }
    return {"files_of_a_step": str(len(step)), **lines}
