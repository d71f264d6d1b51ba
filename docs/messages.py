"""The sentences of all errors that the package raises, as its source says them."""

from __future__ import annotations

import ast
import re
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "gpuzoo"
#: headings, and the folders or files whose errors stand below them
PLACES = {
    "Making and using envs": (
        "interfaces",
        "registry.py",
        "tensors.py",
        "render.py",
        "notebook.py",
        "trajectory.py",
        "__init__.py",
    ),
    "The simulator, devices and parameters": ("core",),
    "Libraries": ("wrappers", "jax"),
    "Search": ("search",),
    "Games": ("envs", "physics"),
    "Training": ("baselines",),
    "Commands": ("tools",),
    "Checks of a game": ("testing",),
}
GAP = "…"


def _text(node: ast.expr) -> str:
    """What a message says, with a gap for what is only known when it is raised."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(value) if isinstance(value, ast.Constant) else GAP for value in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _text(node.left) + _text(node.right)
    if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "unknown":
        return f"{_text(node.args[0])} '{GAP}'; did you mean '{GAP}'?"
    return GAP


def sentences(place: Path) -> dict[str, str]:
    """Sentence -> the name of the exception, of all errors that a file or folder raises."""
    found: dict[str, str] = {}
    for path in sorted(place.rglob("*.py")) if place.is_dir() else [place]:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and node.exc.args:
                text = " ".join(_text(node.exc.args[0]).split())
                if len(re.sub(rf"[{GAP}\W]", "", text)) > 12:
                    found[text] = getattr(node.exc.func, "id", "")
    return found


def lists() -> str:
    """All sentences by place, as Markdown."""
    parts = []
    for title, places in PLACES.items():
        found: dict[str, str] = {}
        for place in places:
            found |= sentences(PACKAGE / place)
        rows = "\n".join(
            f"- {kind}: `` {text} ``" for text, kind in sorted(found.items(), key=lambda x: x[0].lstrip(GAP))
        )
        parts.append(f"<details>\n<summary>{title} ({len(found)})</summary>\n\n{rows}\n\n</details>")
    return "\n\n".join(parts)
