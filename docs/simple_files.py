"""The files of `baselines/simple` as a table, from their docstrings."""

from __future__ import annotations

import ast
from pathlib import Path

from markdown_text import table

FOLDER = Path(__file__).parents[1] / "baselines/simple"


def files_table() -> str:
    """A Markdown table: what a file is, in the first paragraph of its docstring, and its length."""
    rows = []
    for path in sorted(FOLDER.glob("[!_]*.py")):
        text = path.read_text()
        first = (ast.get_docstring(ast.parse(text)) or "").split("\n\n")[0]
        rows.append([f"`{path.name}`", " ".join(first.split()).replace("<", "&lt;"), str(len(text.splitlines()))])
    return table(["file", "what it is", "lines"], rows)


if __name__ == "__main__":
    print(files_table())
