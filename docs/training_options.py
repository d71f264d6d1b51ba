"""The options of the trainers as a table, from the dataclasses that declare them."""

from __future__ import annotations

import dataclasses
from typing import Any

from markdown_text import table

from baselines import a2c, ppo


def default(field: dataclasses.Field[Any]) -> str:
    """A default as one writes it on the command line."""
    value = field.default if field.default is not dataclasses.MISSING else ""
    if isinstance(value, bool):
        return "on" if value else "off"
    text = ",".join(map(str, value)) if isinstance(value, tuple) else str(value)
    return f"`{text}`" if text else ""


def options_table() -> str:
    """A Markdown table of all options of PPO, and of what A2C has otherwise."""
    others = {field.name: field for field in dataclasses.fields(a2c.Args)}
    rows = []
    for field in dataclasses.fields(ppo.Args):
        text, mine = field.metadata.get("doc"), default(field)
        if not text:
            continue
        only = "PPO only: " * (field.name not in others)
        theirs = default(others[field.name]) if not only else mine
        rows.append(
            [
                f"`--{field.name.replace('_', '-')}`",
                mine if mine == theirs else f"{mine}; A2C: {theirs}",
                "yes" if field.metadata.get("sweep") else "",
                only + text.replace("<", "&lt;"),
            ]
        )
    return table(["option", "default", "in sweeps", "meaning"], rows)


if __name__ == "__main__":
    print(options_table())
