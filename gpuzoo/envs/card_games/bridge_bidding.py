"""The bidding of bridge."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from gpuzoo.core.assets import Asset
from gpuzoo.core.definition import Config, EnvDef, Field, param
from gpuzoo.envs.card_games import cards
from gpuzoo.render import Canvas

SEATS, BIDS, CARDS, FIRST_BID = 4, 35, 52, 3
NAMES, DENOMINATIONS = ("north", "east", "south", "west"), ("clubs", "diamonds", "hearts", "spades", "no trumps")
RANKS = "23456789TJQKA"
SUIT_OF = (3, 2, 1, 0)  # of a denomination: its place among the suits of pictures
WIDTH, HEIGHT = 15.0, 10.4


@dataclasses.dataclass(frozen=True)
class BridgeBiddingConfig(Config):
    """Which deals are played."""

    table: str = param("", doc="a file of deals with results, in Pgx's form; empty for the package's 1,000 deals")


class BridgeBidding(EnvDef):
    """Four players in two partnerships bid for a contract, which is scored as if the cards were played perfectly.

    North and south play against east and west. Each has 13 cards. The dealer, drawn for each game, calls first, and
    then the others in turn. A bid names a level, 1 to 7, and a denomination: clubs, diamonds, hearts, spades, no
    trumps. It must be higher than the last one, by level and then by denomination. The side of the last bid must take 6
    tricks and as many more as its level says. An opponent may double the last bid, and its side may redouble that. The
    auction ends after three passes in a row, or after four if nobody has bid. The declarer is the one of the side with
    the last bid who was first to bid its denomination. The cards are not played: the tricks that the declarer takes are
    those of double-dummy play, in which all four see all cards and make no mistake.

    **Points of the declarer's side.** If it takes its tricks: 20 for each level in clubs and diamonds, 30 in the
    others, 10 more for no trumps; all of this twice if doubled, four times if redoubled. Then 50, or, if that was 100
    or more, a game's 300 (500 if the side is vulnerable). For level 6 another 500 (750), for level 7 another 1000
    (1500). For a doubled contract another 50, for a redoubled one 100. Each trick above the contract counts as much as
    a level; 100 if doubled, 200 if redoubled, twice that if vulnerable. For each missing trick the side loses 50 (100).
    If doubled, the first costs 100, the next two 200, others 300; if vulnerable, the first 200 and others 300. A
    redouble makes this twice as much.

    **Agents.** `player_0` (north), `player_1` (east), `player_2` (south), `player_3` (west). They move in turn: a step
    is one call, and the actions of players who are not to move are ignored.

    **Actions.** `Discrete(38)`: 0 pass, 1 double, 2 redouble, and bids from 3 on: one club, one diamond, ..., seven no
    trumps. The action mask holds the legal actions of the player to move, and zeros for the others.

    **Observation.** `Box(0, 1, (480,), int8)`. Players are counted clockwise from the observing one on. First whether
    one's own side is not vulnerable, whether it is, and the same for the other side. Then whether each player has
    passed before the first bid. For each of the 35 bids: who made it, who doubled it, and who redoubled it, four
    numbers each. Finally the player's own cards: clubs, diamonds, hearts and spades of rank two, of rank three, and so
    on to the aces.

    **Reward.** At the end the points of the declarer's side, with the opposite sign for the other side. 0 if all
    passed. In between 0.

    **End.** The auction ends, after 319 calls at the latest. An illegal action of the player to move ends the game at
    once with -7600 for that player and 0 for the others.

    **Deals.** Each game draws one deal of a table, and for both sides whether they are vulnerable. A table of 1,000
    deals is in the package. `scripts/make_bridge_deals.py` drew them, and DDS solved them. Train with a large table, or
    agents learn the deals by heart: `table` names a file in the form of Pgx's tables, which have up to ten million
    deals. Evaluate with deals that were not used in training.

    ```python
    import gpuzoo

    envs = gpuzoo.make("BridgeBidding-v0", num_envs=4)  # or table="dds_results/dds_results_2.5M.npy"
    ```

    **Differences from Pgx.** Pgx draws the seats, and all its players see whose side is vulnerable as the player to
    move does. After an illegal action it gives 22800 to each of the others. At the end of a game all its actions are
    legal.
    """

    id = "BridgeBidding-v0"
    Config = BridgeBiddingConfig
    aliases = (r"bridge_bidding",)
    invalid_action = -1
    action_mask = True
    chooses = True
    turn = "to_move"
    reference = "pgx==2.6.0 bridge_bidding"
    interaction = "mixed"
    links: ClassVar[Mapping[str, str]] = {
        "Pgx": "https://www.sotets.uk/pgx/bridge_bidding/",
        "Scores": "http://www.worldbridge.org/wp-content/uploads/2017/03/2017LawsofDuplicateBridge-paginated.pdf",
        "DDS": "https://github.com/dds-bridge/dds",
    }
    assets: ClassVar[Mapping[str, Asset]] = {
        "deals": Asset(
            Path(__file__).with_name("bridge_deals.npy"),
            size=32_128,
            sha256="1260b312091157e695528f2eae9432e1c8cd66cf99901fda71a8f1171b1dec19",
            licence="Apache-2.0, the authors of gpuzoo",
        )
    }
    render_fps = 1

    def agents(self, cfg: BridgeBiddingConfig) -> dict[str, int]:
        return {"player": SEATS}

    def lanes(self, cfg: BridgeBiddingConfig) -> int:
        """One for each player."""
        return SEATS

    def table(self, cfg: BridgeBiddingConfig) -> NDArray[np.int32]:
        """The table of deals, (2, deals, 4).

        Raises:
            FileNotFoundError: there is no such file.
            ValueError: the file holds no such table.
        """
        path = Path(cfg.table) if cfg.table else self.assets["deals"].path()
        if not path.is_file():
            raise FileNotFoundError(f"{self.id}: there is no table of deals {path}.")
        return _read(path, path.stat().st_mtime_ns)

    def constants(self, cfg: BridgeBiddingConfig) -> dict[str, int]:
        return {"DEALS": self.table(cfg).shape[1]}

    def tables(self, cfg: BridgeBiddingConfig) -> dict[str, NDArray[Any]]:
        keys, results = self.table(cfg)
        return {"dealt": _hands(keys).ravel(), "solved": results.astype(np.uint32).ravel()}

    def observation_space(self, cfg: BridgeBiddingConfig, group: str) -> spaces.Box:
        return spaces.Box(0, 1, (2 * SEATS + 3 * SEATS * BIDS + CARDS,), np.int8)

    def action_space(self, cfg: BridgeBiddingConfig, group: str) -> spaces.Discrete:
        return spaces.Discrete(FIRST_BID + BIDS)

    def observation_names(self, cfg: BridgeBiddingConfig, group: str) -> dict[str, int]:
        names = {
            "own side not vulnerable, vulnerable": 2,
            "other side not vulnerable, vulnerable": 2,
            "who passed before the first bid": SEATS,
        }
        names |= {f"{name_of_bid(bid)}: who bid, doubled, redoubled it": 3 * SEATS for bid in range(BIDS)}
        return names | {f"own cards of rank {r.replace('T', '10')}: clubs to spades": 4 for r in RANKS}

    def action_names(self, cfg: BridgeBiddingConfig, group: str) -> dict[str, int]:
        return dict.fromkeys(("pass", "double", "redouble", *map(name_of_bid, range(BIDS))), 1)

    def fields(self, cfg: BridgeBiddingConfig) -> dict[str, Field]:
        bids = "a bit for each bid, 5 * (level - 1) + denomination:"
        return {
            "hand": Field("uint64", ("players",), "cards of each player: bit 4 * rank + suit, from two and clubs up"),
            "tricks": Field("uint32", ("players",), "of each declarer: hexadecimal digits, clubs the highest"),
            "bids": Field("uint64", ("players",), f"{bids} those that each player has made"),
            "doubles": Field("uint64", ("players",), f"{bids} those that it has doubled"),
            "redoubles": Field("uint64", ("players",), f"{bids} those that it has redoubled"),
            "opening_passes": Field("uint32", doc="a bit for each player who has passed before the first bid"),
            "vulnerable": Field("uint32", doc="bit 0: north and south are, bit 1: east and west are"),
            "dealer": Field("int32", doc="index of the dealer"),
            "last_bid": Field("int32", doc="the last bid, -1 before the first"),
            "last_bidder": Field("int32", doc="index of the player who made it, or -1"),
            "doubled": Field("int32", doc="0, 1 if it is doubled, 2 if it is redoubled"),
            "passes": Field("int32", doc="passes since the last other call"),
            "decided": Field("bool", doc="whether the auction is over"),
            "to_move": Field("int32", doc="index of the player to move"),
        }

    def aspect(self, cfg: BridgeBiddingConfig) -> float:
        return WIDTH / (HEIGHT + 0.7)

    def side(self, cfg: BridgeBiddingConfig) -> int:
        return 700

    def render(self, cfg: BridgeBiddingConfig, state: Mapping[str, NDArray[Any]], canvas: Canvas) -> None:
        canvas.background(cards.FELT)
        canvas.view(0, 0, WIDTH, HEIGHT, y_down=True, hud=True)
        mover, over = int(state["to_move"]), bool(state["decided"])
        vulnerable = int(state["vulnerable"])
        for seat, (x, y) in enumerate(((3.1, 0.25), (6.0, 3.55), (3.1, 6.85), (0.25, 3.55))):
            red, moves = bool(vulnerable >> seat % 2 & 1), seat == mover and not over
            hand = 0 if canvas.hides(seat) and not over else int(state["hand"][seat])
            canvas.cached(_hand, x, y, seat, hand, red, moves, seat == int(state["dealer"]))
        results = canvas.seat is None or over
        _auction(canvas, calls(state), int(state["dealer"]), -1 if over else mover, 10 if results else 7)
        if results:
            _results(canvas, [int(x) for x in state["tricks"]])
        else:
            _box(canvas, state)
        bid = int(state["last_bid"])
        contract = "no bid" if bid < 0 else name_of_bid(bid) + ("", ", doubled", ", redoubled")[int(state["doubled"])]
        canvas.hud(left=f"Bridge   {contract}", right="over" if over else f"player_{mover} ({NAMES[mover]}) to move")

    def presses(
        self, cfg: BridgeBiddingConfig, state: Mapping[str, NDArray[Any]], action: int
    ) -> list[tuple[float, float]]:
        return [_place_in_box(action)] if action > 0 else []


@functools.lru_cache(maxsize=2)
def _read(path: Path, changed: int) -> NDArray[np.int32]:
    table = np.load(path)
    if table.ndim != 3 or table.shape[0] != 2 or table.shape[1] < 1 or table.shape[2] != SEATS:
        raise ValueError(f"BridgeBidding-v0: {path} must hold an array (2, deals, 4), not one of shape {table.shape}.")
    found: NDArray[np.int32] = table.astype(np.int32)
    return found


def _hands(keys: NDArray[np.int32]) -> NDArray[np.uint64]:
    """Sets of cards (deals, 4) from the owners of the cards of each suit."""
    found = np.zeros((len(keys), SEATS), np.uint64)
    for suit in range(4):
        for rank in range(13):  # the ace first
            owners = keys[:, suit] >> 2 * (12 - rank) & 3
            found[np.arange(len(keys)), owners] |= np.uint64(1 << 4 * ((rank - 1) % 13) + 3 - suit)
    return found


def name_of_bid(bid: int) -> str:
    """A level and a denomination."""
    return f"{bid // 5 + 1} {DENOMINATIONS[bid % 5]}"


def calls(state: Mapping[str, NDArray[Any]]) -> list[int]:
    """All calls in order, as actions. The state has who made which; passes are what lies between them."""
    made: list[int] = [0] * int(state["opening_passes"]).bit_count()
    turn = int(state["dealer"]) + len(made)

    def call(seat: int, action: int) -> None:
        nonlocal turn
        passes = (seat - turn) % SEATS
        made.extend([0] * passes + [action])
        turn += passes + 1

    for bid in range(BIDS):
        for name, action in (("bids", FIRST_BID + bid), ("doubles", 1), ("redoubles", 2)):
            for seat in range(SEATS):
                if int(state[name][seat]) >> bid & 1:
                    call(seat, action)
    if int(state["last_bid"]) >= 0:
        made.extend([0] * int(state["passes"]))
    return made


def _hand(canvas: Canvas, x: float, y: float, seat: int, hand: int, vulnerable: bool, moves: bool, deals: bool) -> None:
    """Cards by suits, spades on top, or the back of a hand; a red corner is for a vulnerable side."""
    width, height = 4.0, 3.2
    canvas.rect(x, y, x + width, y + height, radius=0.2, fill="#fdfcf8", outline="#ffd75e" if moves else "#b9b4a6",
                width=3 if moves else 1)  # fmt: skip
    fill = "#cf3f45" if vulnerable else "#3d8465"
    canvas.rect(x + 0.12, y + 0.12, x + width - 0.12, y + 0.68, radius=0.12, fill=fill)
    canvas.text(x + 0.3, y + 0.4, NAMES[seat].capitalize(), height=0.4, colour="white", anchor="lm", bold=True)
    canvas.text(x + width - 0.3, y + 0.4, "dealer" if deals else "", height=0.34, colour="white", anchor="rm")
    if not hand:
        canvas.rect(x + 0.12, y + 0.8, x + width - 0.12, y + height - 0.12, radius=0.12, fill="#7a4a86")
        return
    for row in range(4):
        suit, ink = 3 - row, cards.INKS[row]
        held = [RANKS[r] for r in reversed(range(13)) if hand >> 4 * r + suit & 1]
        middle = y + 1.0 + 0.57 * row
        cards.draw_suit(canvas, x + 0.4, middle, 0.4, row, ink)
        text = " ".join(rank.replace("T", "10") for rank in held) or "-"
        canvas.text(x + 0.75, middle, text, height=0.4 if len(held) < 8 else 0.3, colour=ink, anchor="lm")


def _auction(canvas: Canvas, made: list[int], dealer: int, mover: int, most: int) -> None:
    """Calls in rows, from north to west; the last ones if there are more than `most`."""
    left, top, step = 10.4, 0.25, 1.1
    canvas.rect(left, top, WIDTH - 0.2, top + 0.8 + 0.58 * most, radius=0.2, fill="#1f5540")
    for seat in range(SEATS):
        x = left + 0.6 + step * seat
        canvas.text(x, top + 0.4, NAMES[seat][0].upper(), height=0.42, colour="#ffd75e" if seat == mover else "#dcebe3",
                    bold=True)  # fmt: skip
    rows = (dealer + len(made) + SEATS) // SEATS
    skipped = max(0, rows - most)
    for k, call in enumerate(made):
        row, seat = divmod(dealer + k, SEATS)
        if row >= skipped:
            canvas.cached(_call, left + 0.6 + step * seat, top + 1.0 + 0.58 * (row - skipped), call)
    if mover >= 0:
        row, seat = divmod(dealer + len(made), SEATS)
        canvas.text(left + 0.6 + step * seat, top + 1.0 + 0.58 * (row - skipped), "?", height=0.42, colour="#ffd75e")


def _call(canvas: Canvas, x: float, y: float, call: int) -> None:
    if call < FIRST_BID:
        text, colour = (("pass", "#9fc3b3"), ("X", "#ff8f86"), ("XX", "#ff8f86"))[call]
        canvas.text(x, y, text, height=0.36 if call == 0 else 0.44, colour=colour, bold=call > 0)
        return
    level, denomination = divmod(call - FIRST_BID, 5)
    canvas.rect(x - 0.42, y - 0.25, x + 0.42, y + 0.25, radius=0.08, fill="#fdfcf8")
    _bid(canvas, x, y, str(level + 1), denomination)


def _place_in_box(call: int) -> tuple[float, float]:
    """Where a bid, a double or a redouble is in the bidding box."""
    row, column = (7, 1 + 2 * (call - 1)) if call < FIRST_BID else divmod(call - FIRST_BID, 5)
    return 10.98 + 0.81 * column, 5.78 + 0.57 * row


def _box(canvas: Canvas, state: Mapping[str, NDArray[Any]]) -> None:
    """What may be bid."""
    canvas.rect(10.4, 5.4, WIDTH - 0.2, HEIGHT - 0.25, radius=0.2, fill="#1f5540")
    last, doubled = int(state["last_bid"]), int(state["doubled"])
    bidders = [seat for seat in range(SEATS) if last >= 0 and int(state["bids"][seat]) >> last & 1]
    own = bool(bidders) and (bidders[0] - int(state["to_move"])) % 2 == 0
    legal = [doubled == 0 and bool(bidders) and not own, doubled == 1 and own, *(bid > last for bid in range(BIDS))]
    for call, may in enumerate(legal, 1):
        x, y = _place_in_box(call)
        if may:
            canvas.rect(x - 0.36, y - 0.24, x + 0.36, y + 0.24, radius=0.06, fill="#fdfcf8")
            if call < FIRST_BID:
                canvas.text(x, y, "X" * call, height=0.32, colour="#cf3f45", bold=True)
            else:
                _bid(canvas, x, y, str((call - FIRST_BID) // 5 + 1), (call - FIRST_BID) % 5)


def _bid(canvas: Canvas, x: float, y: float, level: str, denomination: int) -> None:
    if denomination == 4:
        canvas.text(x, y, level + "NT", height=0.34, colour="#2a4d9b", bold=True)
        return
    suit = SUIT_OF[denomination]
    canvas.text(x - 0.16, y, level, height=0.4, colour=cards.INKS[suit], bold=True)
    cards.draw_suit(canvas, x + 0.16, y, 0.32, suit, cards.INKS[suit])


def _results(canvas: Canvas, tricks: list[int]) -> None:
    """Tricks of each declarer in each denomination."""
    left, top = 10.4, 7.1
    canvas.rect(left, top, WIDTH - 0.2, HEIGHT - 0.25, radius=0.2, fill="#fdfcf8")
    for denomination in range(5):
        x = left + 1.0 + 0.72 * denomination
        if denomination == 4:
            canvas.text(x, top + 0.42, "NT", height=0.34, colour="#2a4d9b", bold=True)
        else:
            cards.draw_suit(canvas, x, top + 0.42, 0.36, SUIT_OF[denomination], cards.INKS[SUIT_OF[denomination]])
        for seat in range(SEATS):
            text = str(tricks[seat] >> 4 * (4 - denomination) & 15)
            canvas.text(x, top + 0.98 + 0.5 * seat, text, height=0.36, colour="#26303c")
    for seat in range(SEATS):
        canvas.text(
            left + 0.4, top + 0.98 + 0.5 * seat, NAMES[seat][0].upper(), height=0.36, colour="#26303c", bold=True
        )
