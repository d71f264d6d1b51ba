"""Pieces of Markdown that the generated pages are made of."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

Row = Sequence[str]


def table(head: Row, rows: Iterable[Row]) -> str:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def number(value: float) -> str:
    """A number for readers: at most six digits."""
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def write(path: Path, text: str) -> None:
    """Writes a page unless it has this text already: Sphinx reads again only what changed."""
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def by_group(values: Mapping[str, str]) -> str:
    """One text per group, or one for all if they agree."""
    if len(set(values.values())) == 1:
        return f"`{next(iter(values.values()))}`"
    return "; ".join(f"{group}: `{text}`" for group, text in values.items())


def raw(html: str) -> str:
    """HTML that stands in a page as it is."""
    return "```{raw} html\n" + html.strip() + "\n```"
