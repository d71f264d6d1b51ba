"""A toy whose planes and masks are bits of words: for `lanes_of_bits` and `bits_where`."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

from gymnasium import spaces

from gpuzoo.core.definition import Config, EnvDef, Field, param


@dataclasses.dataclass(frozen=True)
class BitboardConfig(Config):
    width: int = param(36, low=1, high=256, doc="bits of a row")


class Bitboard(EnvDef):
    """Three rows of random bits in each step."""

    id = "Bitboard-v0"
    Config = BitboardConfig
    action_mask = True
    dtype = "float32"
    exempt: ClassVar = {"reference": "a toy of the tests"}

    def lanes(self, cfg: BitboardConfig) -> int:
        return 8

    def constants(self, cfg: BitboardConfig) -> dict[str, int]:
        return {"ROWS": 3, "BITS": cfg.width, "WORDS": -(-cfg.width // 64), "COUNTED": min(cfg.width, 64)}

    def observation_space(self, cfg: BitboardConfig, group: str) -> spaces.Box:
        return spaces.Box(0, 4, (3, cfg.width), self.dtype)

    def action_space(self, cfg: BitboardConfig, group: str) -> spaces.Discrete:
        return spaces.Discrete(3 * cfg.width)

    def fields(self, cfg: BitboardConfig) -> dict[str, Field]:
        return {
            "word": Field("uint64", ("ROWS", "WORDS"), "the bits"),
            "again": Field("uint64", ("ROWS",), "of each row the first word, found by `bits_where`"),
        }


class ByteBitboard(Bitboard):
    """The same in bytes."""

    id = "ByteBitboard-v0"
    dtype = "uint8"
