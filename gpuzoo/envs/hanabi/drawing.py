"""Pictures of Hanabi: fireworks and tokens, the hands with what their owners know, the discards, and the last move."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpuzoo.render import Canvas, fade, mix

WIDTH, HEIGHT = 13.0, 10.4
COLORS = ("red", "yellow", "green", "white", "blue")
INKS = ("#e0484f", "#f0b92f", "#3fa86a", "#f4f4f0", "#3d7fe0")
NIGHT, GOLD, FAINT, BRIGHT = "#17203a", "#ffd75e", "#46527a", "#e8ecf7"
TOP, HANDS, DISCARDS = 0.35, 2.75, 8.75  # where the parts begin
LEFT = 2.0  # of the hands
BLOCK = 2.1  # width of a card with its knowledge, in units of a hand


def ink(color: int) -> str:
    """The darker colour in which a card of this color is printed."""
    return "#8b8f9c" if COLORS[color] == "white" else mix(INKS[color], "#000000", 0.12)


def draw(canvas: Canvas, cfg: Any, state: Mapping[str, Any]) -> None:
    """One game."""
    numbers = {name: int(value) for name, value in state.items() if getattr(value, "ndim", 0) == 0}
    canvas.background(NIGHT)
    canvas.view(0, 0, WIDTH, HEIGHT, y_down=True, pad=4, hud=True)
    hand = cfg.hand_size or (5 if cfg.players < 4 else 4)
    _fireworks(canvas, cfg, numbers)
    _tokens(canvas, cfg, numbers)
    room = (DISCARDS - 0.3 - HANDS) / cfg.players
    unit = min(room / 1.45, (WIDTH - LEFT - 0.2) / (hand * BLOCK))
    target = -1
    if numbers["last_hinted"]:
        k = numbers["last_action"] - 2 * hand
        colors = (cfg.players - 1) * cfg.colors
        offset = k // cfg.colors if k < colors else (k - colors) // cfg.ranks
        target = (numbers["last_player"] + 1 + offset) % cfg.players
    for p in range(cfg.players):
        y = HANDS + (p + 0.5) * room
        _name(canvas, p, y, room, p == numbers["to_move"])
        packed = [int(state[name][p]) for name in ("color", "rank", "known_color", "known_rank")]
        for slot in range(hand):
            color, rank, colors, ranks = (x >> 8 * slot & 0xFF for x in packed)
            if color == 0:
                continue
            told = p == target and bool(numbers["last_hinted"] >> 8 * slot & 1)
            x = LEFT + slot * BLOCK * unit
            if canvas.seat == p:  # a player's own cards are those that it does not see
                canvas.cached(_back, x, y, unit, told)
            else:
                canvas.cached(_card, x, y, unit, color.bit_length() - 1, rank.bit_length(), told)
            canvas.cached(_knowledge, x + 0.95 * unit, y, unit, cfg.colors, cfg.ranks, colors, ranks)
    _discards(canvas, cfg, numbers)
    lives, score = numbers["life_tokens"], numbers["fireworks"].bit_count()
    shown = score if lives or cfg.keep_score else 0
    canvas.hud(left=_last_move(cfg, hand, numbers), right=f"score {shown} of {cfg.colors * cfg.ranks}")


def _last_move(cfg: Any, hand: int, numbers: Mapping[str, int]) -> str:
    move, who, card = numbers["last_action"], numbers["last_player"], numbers["last_card"]
    if move < 0:
        return "Hanabi"
    if move < 2 * hand:
        name = f"{COLORS[card // cfg.ranks]} {card % cfg.ranks + 1}"
        if move < hand:
            return f"player_{who} discards {name}"
        return f"player_{who} plays {name}" + ("" if numbers["last_scored"] else ", which does not fit")
    k, colors = move - 2 * hand, (cfg.players - 1) * cfg.colors
    values, k = (cfg.colors, k) if k < colors else (cfg.ranks, k - colors)
    what = COLORS[k % values] if move - 2 * hand < colors else f"rank {k % values + 1}"
    return f"player_{who} tells player_{(who + 1 + k // values) % cfg.players}: {what}"


def _fireworks(canvas: Canvas, cfg: Any, numbers: Mapping[str, int]) -> None:
    for color in range(cfg.colors):
        height = (numbers["fireworks"] >> cfg.ranks * color & (1 << cfg.ranks) - 1).bit_count()
        grew = bool(numbers["last_scored"]) and numbers["last_card"] // cfg.ranks == color
        canvas.cached(_firework, 0.4 + 1.45 * color, TOP, color, height, cfg.ranks, grew)


def _firework(canvas: Canvas, x: float, y: float, color: int, height: int, ranks: int, grew: bool) -> None:
    """The highest card of a firework, and a spark for each of its cards."""
    if height:
        _face(canvas, x, y, 1.15, 1.6, color, height, grew)
    else:
        canvas.rect(x, y, x + 1.15, y + 1.6, radius=0.14, fill=fade(INKS[color], 0.12), outline=fade(INKS[color], 0.5))
    for k in range(ranks):
        fill = INKS[color] if k < height else fade(INKS[color], 0.2)
        canvas.circle(x + 1.15 * (k + 0.5) / ranks, y + 1.85, 0.09, fill=fill)


def _face(
    canvas: Canvas, x: float, y: float, width: float, height: float, color: int, rank: int, marked: bool
) -> None:  # fmt: skip
    """A card's face: its rank in its color."""
    if marked:
        edge = 0.07 * height
        canvas.rect(x - edge, y - edge, x + width + edge, y + height + edge, radius=0.18 * width, fill=GOLD)
    canvas.rect(x, y, x + width, y + height, radius=0.12 * width, fill=mix(INKS[color], "#ffffff", 0.82))
    canvas.rect(x, y, x + width, y + height, radius=0.12 * width, outline=ink(color), width=2.4)
    canvas.text(x + width / 2, y + height / 2, str(rank), colour=ink(color), bold=True, height=0.62 * height)


def _tokens(canvas: Canvas, cfg: Any, numbers: Mapping[str, int]) -> None:
    """Cards left, information and life tokens, on the right of the fireworks."""
    deck = numbers["deck"].bit_count()
    x = 7.9
    for k in range(min(3, (deck + 9) // 10)):
        left, top = x + 0.07 * k, TOP - 0.07 * k
        canvas.rect(left, top, left + 1.15, top + 1.6, radius=0.14, fill="#5a6ba8", outline=NIGHT)
    canvas.text(x + 0.65, TOP + 0.75, str(deck), colour=BRIGHT if deck else FAINT, bold=True, height=0.6)
    canvas.text(x + 0.65, TOP + 1.95, "deck", colour=BRIGHT, height=0.32)
    for row, (what, most, fill) in enumerate(
        (("information_tokens", cfg.max_information_tokens, "#6fb7ff"), ("life_tokens", cfg.max_life_tokens, "#ff7b72"))
    ):
        y = TOP + 0.2 + 1.05 * row
        canvas.text(
            9.6, y, f"{'hints' if row == 0 else 'lives'}: {numbers[what]}", colour=BRIGHT, anchor="lm", height=0.32
        )
        step = min(0.4, 3.1 / max(most, 1))
        for k in range(most):
            canvas.circle(9.75 + step * k, y + 0.45, 0.42 * step, fill=fill if k < numbers[what] else fade(fill, 0.18))


def _name(canvas: Canvas, p: int, y: float, room: float, moves: bool) -> None:
    if moves:
        canvas.rect(0.1, y - 0.47 * room, WIDTH - 0.1, y + 0.47 * room, radius=0.15, fill="#243056")
    canvas.text(0.3, y, f"player_{p}", colour=GOLD if moves else BRIGHT, anchor="lm", height=0.36, bold=moves)


def _card(canvas: Canvas, x: float, y: float, unit: float, color: int, rank: int, told: bool) -> None:
    _face(canvas, x, y - 0.58 * unit, 0.84 * unit, 1.16 * unit, color, rank, told)


def _back(canvas: Canvas, x: float, y: float, unit: float, told: bool) -> None:
    """The back of a card."""
    top, right, bottom = y - 0.58 * unit, x + 0.84 * unit, y + 0.58 * unit
    canvas.rect(x, top, right, bottom, radius=0.1 * unit, fill="#5a6ba8", outline=GOLD if told else BRIGHT, width=2.4)
    canvas.text((x + right) / 2, y, "?", colour=BRIGHT, bold=True, height=0.6 * unit)


def _knowledge(
    canvas: Canvas, x: float, y: float, unit: float, colors: int, ranks: int, known_color: int, known_rank: int
) -> None:  # fmt: skip
    """What the owner of a card knows: the colors and ranks that it may have, with a ring and in gold what was told."""
    for k in range(colors):
        possible, at = known_color >> k & 1, (x + (0.1 + 0.2 * k) * unit, y - 0.22 * unit)
        if possible and known_color >> 5:
            canvas.circle(*at, 0.14 * unit, outline=GOLD, width=1.6)
        canvas.circle(*at, (0.085 if possible else 0.03) * unit, fill=INKS[k] if possible else FAINT)
    for k in range(ranks):
        possible = known_rank >> k & 1
        colour = (GOLD if known_rank >> 5 else BRIGHT) if possible else FAINT
        canvas.text(x + (0.1 + 0.2 * k) * unit, y + 0.22 * unit, str(k + 1), colour=colour, bold=bool(possible and
                    known_rank >> 5), height=0.3 * unit)  # fmt: skip


def _discards(canvas: Canvas, cfg: Any, numbers: Mapping[str, int]) -> None:
    """All cards of the game, the discarded ones in colour; a kind of which none is left is crossed out."""
    per_color = 3 if cfg.ranks == 1 else 2 * cfg.ranks
    wasted = -1 if numbers["last_scored"] else numbers["last_card"]
    canvas.text(0.3, DISCARDS + 0.78, "discards", colour=BRIGHT, anchor="lm", height=0.32)
    for color in range(cfg.colors):
        gone = numbers["discards"] >> per_color * color & (1 << per_color) - 1
        marked = wasted % cfg.ranks if wasted >= 0 and wasted // cfg.ranks == color else -1
        canvas.cached(_pile, LEFT + 2.2 * color, DISCARDS, color, cfg.ranks, gone, marked)


def _pile(canvas: Canvas, x: float, y: float, color: int, ranks: int, gone: int, marked: int) -> None:
    """The copies of a color's cards, ranks side by side; `marked` is the rank of the last one discarded."""
    copy = 0
    for rank in range(ranks):
        copies = 3 if rank == 0 else 1 if rank == ranks - 1 else 2
        count = (gone >> copy & (1 << copies) - 1).bit_count()
        for k in range(copies):
            left, top = x + 0.4 * rank, y + 0.5 * k
            there = k < count
            fill = mix(INKS[color], "#ffffff", 0.75) if there else fade(INKS[color], 0.08)
            edge = GOLD if there and rank == marked and k == count - 1 else fade(INKS[color], 0.35)
            canvas.rect(left, top, left + 0.34, top + 0.43, radius=0.06, fill=fill, outline=edge)
            colour = ink(color) if there else fade(INKS[color], 0.35)
            canvas.text(left + 0.17, top + 0.215, str(rank + 1), colour=colour, bold=there, height=0.28)
        copy += copies
