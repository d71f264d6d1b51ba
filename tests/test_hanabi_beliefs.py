"""Hanabi's observation ``beliefs``, from the canonical one by counting physical cards.

The canonical observation is exact against the original (tests/integrations/hanabi).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import gpuzoo
from gpuzoo.core.simulator import Simulator
from gpuzoo.envs.hanabi.hanabi import GAMES, HanabiConfig, hand_size

COPIES = (3, 2, 2, 2, 1)
VARIANTS: dict[str, dict[str, Any]] = {
    "full": {},
    "3 players": {"players": 3},
    "5 players": {"players": 5},
    "small": dict(GAMES["Small"]),
    "other sizes": {"players": 3, "colors": 3, "ranks": 5, "hand_size": 3, "max_information_tokens": 4},
}
Card = tuple[int, int]
Numbers = list[float]


class View:
    """What one player sees, read from the canonical observation."""

    def __init__(self, sim: Simulator, env: int, player: int) -> None:
        self.cfg: HanabiConfig = sim.cfg
        self.bits = sim.arrays["observation"][env, player].astype(int)
        self.hand, self.at = hand_size(self.cfg), 0
        players, colors, ranks = self.cfg.players, self.cfg.colors, self.cfg.ranks
        self.hands = [[self.card() for _ in range(self.hand)] for _ in range(players - 1)]  # of the others
        self.missing = self.take(players)
        self.deck = sum(self.take(colors * sum(COPIES) - players * self.hand))
        fireworks = np.reshape(self.take(colors * ranks), (colors, ranks))
        self.heights = [int(row.argmax()) + 1 if row.any() else 0 for row in fireworks]
        self.tokens = self.take(self.cfg.max_information_tokens) + self.take(self.cfg.max_life_tokens)
        self.discards: list[Card] = []
        for color in range(colors):
            for rank in range(ranks):
                self.discards += [(color, rank)] * sum(self.take(COPIES[rank]))
        self.who, self.kind, self.whom = self.take(players), self.take(4), self.take(players)
        self.take(colors)
        self.hinted_rank, self.told, self.place = self.take(ranks), self.take(self.hand), self.take(self.hand)
        self.take(colors * ranks)
        self.outcome = self.take(2)
        self.known = [[self.knowledge() for _ in range(self.hand)] for _ in range(players)]
        self.all: list[Card] = [(c, r) for c in range(colors) for r in range(ranks) for _ in range(COPIES[r])]
        self.classes = {card: self.classes_of(card) for card in set(self.all)}
        assert self.at == len(self.bits)

    def take(self, n: int) -> list[int]:
        self.at += n
        return [int(bit) for bit in self.bits[self.at - n : self.at]]

    def card(self) -> Card | None:
        bits = self.take(self.cfg.colors * self.cfg.ranks)
        return divmod(bits.index(1), self.cfg.ranks) if any(bits) else None

    def knowledge(self) -> tuple[set[Card], bool, list[int]]:
        """Kinds that are possible, whether the color was told, and the rank told."""
        bits = self.take(self.cfg.colors * self.cfg.ranks)
        possible = {divmod(k, self.cfg.ranks) for k, bit in enumerate(bits) if bit}
        return possible, any(self.take(self.cfg.colors)), self.take(self.cfg.ranks)

    def classes_of(self, card: Card) -> list[bool]:
        """Whether a card is playable, playable after one more, later, useless, and the last copy of a useful one."""
        color, rank = card
        needed = [(color, r) for r in range(self.heights[color], rank + 1)]
        there = [COPIES[r] - self.discards.count((color, r)) for _, r in needed]
        useful = bool(needed) and all(there)
        return [*(useful and len(needed) == n for n in (1, 2)), useful and len(needed) > 2, not useful,
                useful and there[-1] == 1]  # fmt: skip

    def unseen(self, *hands: list[Card | None]) -> list[Card]:
        """Cards that are not in the fireworks, the discards, or these hands."""
        cards = list(self.all)
        played = [(c, r) for c, height in enumerate(self.heights) for r in range(height)]
        for card in [*played, *self.discards, *(card for hand in hands for card in hand if card)]:
            cards.remove(card)
        return cards

    def chances(self, unseen: list[Card], possible: set[Card]) -> Numbers:
        cards = [card for card in unseen if card in possible]
        if not cards:
            return [0.0] * 5
        return [sum(found) / len(cards) for found in zip(*(self.classes[card] for card in cards), strict=True)]

    def own(self) -> Iterator[Numbers]:
        unseen = self.unseen(*self.hands)
        told = [slot for slot, bit in enumerate(self.told) if bit and self.whom[0]]
        for slot, (possible, color, rank) in enumerate(self.known[0]):
            cards = [card for card in unseen if card in possible]
            likeliest = max(map(cards.count, cards)) / len(cards) if cards else 0.0
            last = [slot in told, slot in told and self.kind[2], told == [slot], slot in told and slot == max(told),
                    slot in told and slot == min(told)]  # fmt: skip
            yield [*self.chances(unseen, possible), likeliest, color, *last, *rank]

    def others(self) -> Iterator[Numbers]:
        for k, hand in enumerate(self.hands, 1):
            for slot, card in enumerate(hand):
                possible, color, rank = self.known[k][slot]
                chances = self.chances(self.unseen(), possible)
                classes = self.classes[card] if card else [False] * 5
                one_hot = [card is not None and card[1] == r for r in range(self.cfg.ranks)]
                yield [*classes, *chances, *one_hot, color, any(rank), self.whom[k] and self.told[slot]]

    def hints(self) -> Iterator[Numbers]:
        for part, values in enumerate((self.cfg.colors, self.cfg.ranks)):
            for k, hand in enumerate(self.hands, 1):
                for value in range(values):
                    yield self.hint(hand, [possible for possible, *_ in self.known[k]], part, value)

    def hint(self, hand: list[Card | None], known: list[set[Card]], part: int, value: int) -> Numbers:
        there = [(card, possible) for card, possible in zip(hand, known, strict=True) if card]
        after = [{c for c in possible if (c[part] == value) == (card[part] == value)} for card, possible in there]
        news = sum(new != old for new, (_, old) in zip(after, there, strict=True))
        told = [(self.classes[card], self.chances(self.unseen(), new))
                for (card, _), new in zip(there, after, strict=True) if card[part] == value]  # fmt: skip

        def largest(chances: Iterator[float]) -> float:
            return max(chances, default=0.0)

        shares = [len(told), news, *(sum(classes[k] for classes, _ in told) for k in (0, 3, 4))]
        return [
            *(n / self.hand for n in shares),
            bool(told) and told[-1][0][0],
            largest(chances[0] for classes, chances in told if classes[0]),
            largest(chances[0] for classes, chances in told if not classes[0]),
            largest(chances[3] for classes, chances in told if classes[3]),
        ]

    def table(self) -> Numbers:
        colors, ranks = self.cfg.colors, self.cfg.ranks
        most = len(self.all) - self.cfg.players * self.hand
        heights = [self.heights.count(height) / colors for height in range(ranks + 1)]
        return [self.deck / most, self.deck == 0, sum(self.heights) / (colors * ranks), *heights, *self.missing,
                *self.tokens, *self.who, *self.kind, *self.whom, *self.hinted_rank, *self.place,
                *self.outcome]  # fmt: skip

    def numbers(self) -> NDArray[np.float32]:
        rows = [*self.own(), *self.others(), *self.hints(), self.table()]
        return np.array([x for row in rows for x in row], np.float32)


def drawn_moves(sim: Simulator, rng: np.random.Generator) -> NDArray[np.int64]:
    """Legal moves. Half of the envs hardly play what does not fit, so their games are long."""
    s, hand, ranks = sim.arrays, hand_size(sim.cfg), sim.cfg.ranks
    every, mover = np.arange(sim.num_envs), s["to_move"]
    weights = s["action_mask"][every, mover] * (1 + rng.random(s["action_mask"].shape[::2]))
    color, rank = (
        np.log2(np.maximum(np.ascontiguousarray(s[name]).view(np.uint8).reshape(*s[name].shape, 8), 1)).astype(int)
        for name in ("color", "rank")
    )
    color, rank = color[every, mover, :hand], rank[every, mover, :hand]
    height = np.bitwise_count(s["fireworks"][:, None] >> (ranks * color).astype(np.uint32) & np.uint32(2**ranks - 1))
    weights[:, hand : 2 * hand] *= np.where((rank != height) & (every % 2 == 1)[:, None], 0.01, 1.0)
    return np.asarray(weights.argmax(1), np.int64)


@pytest.mark.parametrize("variant", VARIANTS)
def test_beliefs_are_what_counting_cards_gives(variant: str) -> None:
    """Within 1e-6, float32's rounding of a quotient."""
    n, rng = 4, np.random.default_rng(0)
    sims = [Simulator(gpuzoo.get("Hanabi-v0"), n, device="cpu", **VARIANTS[variant], observation_type=kind)
            for kind in ("beliefs", "card_knowledge")]  # fmt: skip
    for sim in sims:
        sim.reset(seed=1)
    players, ended = range(sims[0].cfg.players), 0
    for step in range(120):
        if step % 7 == 0:
            for env in range(n):
                for player in players:
                    wanted = View(sims[1], env, player).numbers()
                    np.testing.assert_allclose(sims[0].arrays["observation"][env, player], wanted, atol=1e-6)
        moves = drawn_moves(sims[0], rng)
        for sim in sims:
            sim.arrays["action"][...] = moves[:, None, None]
            sim.step()
        ended += int(sims[0].arrays["ended"].sum())
        np.testing.assert_array_equal(*(sim.arrays["action_mask"] for sim in sims))
    assert ended >= 4
