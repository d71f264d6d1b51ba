"""The numbers of the observation ``beliefs``, in their order; what they mean is in beliefs.cuh."""

from __future__ import annotations

CLASSES = ("playable", "playable after one more card", "playable later", "useless", "the last copy of a useful card")
HINT = (
    "cards it tells", "cards of which it says something new", "playable cards it tells", "useless cards it tells",
    "last copies it tells", "whether the newest card it tells is playable",
    "largest chance of being playable that its holder then sees, of the playable cards it tells",
    "the same, of the other cards it tells",
    "largest chance of being useless that its holder then sees, of the useless cards it tells",
)  # fmt: skip


def names(players: int, colors: int, ranks: int, hand: int, information: int, lives: int) -> dict[str, int]:
    """How many numbers tell what."""
    classes, told = ", ".join(CLASSES), "whether a hint told its color"
    own = (
        f"chances of being {classes}; of its likeliest kind; {told}; of the last hint to this player: whether it told "
        "this card, told its color, told only it, told no newer card, told no older one; the rank told, one-hot"
    )
    other = (
        f"whether it is {classes}; the chances that its holder sees of each; its rank, one-hot; {told}, its rank, and "
        "whether the last move did"
    )
    return {
        f"each own card, the oldest first: {own}": hand * (len(CLASSES) + 7 + ranks),
        f"each card of each other player: {other}": (players - 1) * hand * (2 * len(CLASSES) + ranks + 3),
        f"each hint, in the order of actions: {', '.join(HINT)}": (players - 1) * (colors + ranks) * len(HINT),
        "share of the deck that is left, whether none is, share of all cards that are in fireworks": 3,
        "share of the fireworks of each height, from 0 on": ranks + 1,
        "whether a card of each player is missing, the observing one first": players,
        "information tokens": information,
        "life tokens": lives,
        "last move: who made it": players,
        "last move: play, discard, hint of a color, hint of a rank": 4,
        "last move: to whom it was a hint": players,
        "last move: rank of the hint": ranks,
        "last move: place of the card played or discarded": hand,
        "last move: whether a firework grew": 1,
        "last move: whether playing brought an information token": 1,
    }
