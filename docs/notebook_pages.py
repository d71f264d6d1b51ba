"""Pages from the notebooks in ``docs/notebooks``: their texts and code as they stand there, without outputs."""

from __future__ import annotations

import json
from pathlib import Path

from markdown_text import write

FOLDER = Path(__file__).with_name("notebooks")


def cells(notebook: Path) -> list[tuple[str, str]]:
    """The kind and the text of each cell."""
    found = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    return [(cell["cell_type"], "".join(cell["source"])) for cell in found]


def generate(folder: Path = FOLDER) -> None:
    """Writes a page beside each notebook, and removes the pages of others."""
    notebooks = sorted(folder.glob("*.ipynb"))
    for notebook in notebooks:
        parts = [text if kind == "markdown" else f"```python\n{text}\n```" for kind, text in cells(notebook)]
        title = parts[0].split("\n", 1)[0]
        rest = parts[0].removeprefix(title).strip()
        parts[0] = f"{title}\n\n{{download}}`Download the notebook <{notebook.name}>`\n\n{rest}"
        write(notebook.with_suffix(".md"), "\n\n".join(parts) + "\n")
    for page in {*folder.glob("*.md")} - {notebook.with_suffix(".md") for notebook in notebooks}:
        page.unlink()
