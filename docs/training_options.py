"""The options of the trainers as a table, from the dataclasses that declare them."""

from __future__ import annotations

import dataclasses
from typing import Any

from markdown_text import table

from baselines import run
from gpuzoo.tools.commands.train import TRAINERS

KINDS = {trainer.__name__: args for trainer, args in map(run.algorithm, TRAINERS)}


def default(field: dataclasses.Field[Any]) -> str:
    """A default as one writes it on the command line."""
    value = field.default if field.default is not dataclasses.MISSING else ""
    if isinstance(value, bool):
        return "on" if value else "off"
    text = ",".join(map(str, value)) if isinstance(value, tuple) else str(value)
    return f"`{text}`" if text else ""


def options_table() -> str:
    """A Markdown table of all options of the trainers, with what they have otherwise than the first that has them."""
    rows = []
    for name in dict.fromkeys(field.name for kind in KINDS.values() for field in dataclasses.fields(kind)):
        having = {
            who: kind.__dataclass_fields__[name] for who, kind in KINDS.items() if name in kind.__dataclass_fields__
        }
        field, *others = having.values()
        text, mine = field.metadata.get("doc"), default(field)
        if not text:
            continue
        only = "" if len(having) == len(KINDS) else f"{' and '.join(having)}{' only' * (not others)}: "
        unlike = [f"; {who}: {theirs}" for who, other in having.items() if (theirs := default(other)) != mine]
        rows.append(
            [
                f"`--{name.replace('_', '-')}`",
                mine + "".join(unlike),
                "yes" if field.metadata.get("sweep") else "",
                only + text.replace("<", "&lt;"),
            ]
        )
    return table(["option", "default", "in sweeps", "meaning"], rows)


if __name__ == "__main__":
    print(options_table())
