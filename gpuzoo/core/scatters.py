"""Cells that several iterations of a region change: what else happens to them there would depend on the order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gpuzoo.core.tokens import Token

#: what iterations of one region may do to the same cell
SCATTERS = frozenset("scatter_add scatter_min scatter_max scatter_or".split())
CELLS = ("int32", "uint32", "uint64")


def check_scatters(tokens: Sequence[Token], body: Sequence[int], env: str, dtypes: Mapping[str, str]) -> None:
    """Refuses that something else happens to the cells that a region, or a helper called in one, scatters into.

    Args:
        tokens: of the rules.
        body: indices of the region's, or the helper's.
        env: what the rules call their Env.
        dtypes: of the game's fields, by name.

    Raises:
        DialectError: the first one, with file and line.
    """

    def field(k: int) -> str:
        """Its name, where ``e.name`` begins at ``k``."""
        return tokens[k + 2].text if tokens[k].text == env and tokens[k + 1].text == "." else ""

    ways: dict[str, str] = {}
    targets = set()
    for k in body:
        way = tokens[k].text
        if way not in SCATTERS or tokens[k + 1].text != "(" or not field(k + 2):
            continue
        name = field(k + 2)
        targets.add(k + 2)
        if dtypes.get(name, CELLS[0]) not in CELLS:
            raise tokens[k].error(
                f"{way} into {env}.{name}, which is {dtypes[name]}: cells are fields of {', '.join(CELLS)}, whose bits "
                "do not depend on the order; for sums of floats there is lane_sum"
            )
        if ways.setdefault(name, way) != way:
            raise tokens[k].error(f"{way} into {env}.{name}, which this region also gives to {ways[name]}")
    for k in body:
        if k not in targets and field(k) in ways:
            raise tokens[k].error(
                f"{env}.{field(k)} beside {ways[field(k)]} in one region: read it or write it otherwise in another"
            )
