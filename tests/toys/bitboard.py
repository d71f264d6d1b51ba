"""A toy whose planes and masks are bits of words: for `lanes_of_bits`, `rows_of_bits` and `bits_where`."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

from gymnasium import spaces

from gpuzoo.core.definition import Config, EnvDef, Field, param


@dataclasses.dataclass(frozen=True)
class BitboardConfig(Config):
    width: int = param(36, low=1, high=256, doc="bits of a row")
    rows: int = param(3, low=3, high=64, doc="rows; of more than 3 the numbers are 0 or 1")
    gap: int = param(0, low=0, high=8, doc="zeros behind every few rows")
    at_once: bool = param(False, doc="whether `rows_of_bits` writes the numbers; of more than 3 rows")
    together: int = param(1, low=1, high=64, doc="how many rows are without a gap; a divisor of `rows`")


class Bitboard(EnvDef):
    """Rows of random bits in each step."""

    id = "Bitboard-v0"
    Config = BitboardConfig
    action_mask = True
    dtype = "float32"
    exempt: ClassVar = {"reference": "a toy of the tests"}

    def lanes(self, cfg: BitboardConfig) -> int:
        return 8

    def constants(self, cfg: BitboardConfig) -> dict[str, int]:
        words, counted = -(-cfg.width // 64), min(cfg.width, 64)
        sizes = {"ROWS": cfg.rows, "BITS": cfg.width, "WORDS": words, "COUNTED": counted}
        return {**sizes, "TOGETHER": cfg.together, "GAP": cfg.gap}

    def observation_space(self, cfg: BitboardConfig, group: str) -> spaces.Box:
        return spaces.Box(0, 4, (cfg.rows // cfg.together, cfg.together * cfg.width + cfg.gap), self.dtype)

    def action_space(self, cfg: BitboardConfig, group: str) -> spaces.Discrete:
        return spaces.Discrete(cfg.rows * cfg.width)

    def fields(self, cfg: BitboardConfig) -> dict[str, Field]:
        return {
            "word": Field("uint64", ("ROWS", "WORDS"), "the bits"),
            "again": Field("uint64", ("ROWS",), "of each row the first word, found by `bits_where`"),
        }


class ByteBitboard(Bitboard):
    """The same in bytes."""

    id = "ByteBitboard-v0"
    dtype = "uint8"
