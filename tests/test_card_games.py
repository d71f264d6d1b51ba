"""Card games: values of all hands of poker, pots, melds, tiles, scores, and what pictures say.

Whole games are compared with RLCard, PettingZoo, Pgx and OpenSpiel in tests/integrations/rlcard and pgx.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import gpuzoo
from gpuzoo.core.simulator import Simulator
from gpuzoo.envs.card_games.bridge_bidding import BridgeBidding, calls
from gpuzoo.envs.card_games.cards import RANKS
from gpuzoo.envs.card_games.gin_rummy import GinRummy, best_melds, points
from gpuzoo.envs.card_games.poker import CATEGORIES
from gpuzoo.envs.card_games.texas_holdem import TexasHoldem
from gpuzoo.envs.card_games.texas_holdem_no_limit import TexasHoldemNoLimit
from gpuzoo.envs.sparrow_mahjong.sparrow_mahjong import NAMES, SparrowMahjong

FIVE_OTHERS = np.uint64(0x1F << 53)  # public cards that are none, so that hands may have seven


def cards(text: str) -> int:
    """A set of cards such as "AS TH"."""
    return sum(1 << 13 * "SHDC".index(card[1]) + RANKS.index(card[0]) for card in text.split())


def batch(game: Any, n: int, **options: Any) -> Simulator:
    s = Simulator(game, n, device="cpu", autoreset_mode="disabled", **options)
    s.reset(seed=0)
    return s


def play(s: Simulator, action: int) -> list[float]:
    """The rewards of a move of the player in turn, in the first env."""
    s.arrays["action"][0, int(s.arrays["to_move"][0]), 0] = action
    s.step()
    return [float(x) for x in s.arrays["reward"][0]]


# ---- poker ----


def values(s: Simulator, hands: np.ndarray) -> np.ndarray:
    """Of hands of seven cards (num_envs, players): a showdown after the last check."""
    n, players = hands.shape
    s.reset(seed=0)
    s.set_state({
        "hand": hands.astype(np.uint64), "public_cards": np.full(n, FIVE_OTHERS),
        "chips": np.full((n, players), 10, np.int32), "round": np.full(n, 3, np.int32),
        "acted": np.full(n, players - 1, np.int32), "to_move": np.zeros(n, np.int32),
    })  # fmt: skip
    s.arrays["action"][:, 0, 0] = 1
    s.step()
    return s.arrays["value"].copy()


def all_hands(size: int) -> Iterator[np.ndarray]:
    """All sets of seven cards, in arrays of this size or less."""
    bit, found, count = [np.uint64(1 << k) for k in range(52)], [], 0
    four = np.array([sum(1 << k for k in c) for c in itertools.combinations(range(49), 4)], np.uint64)  # of the lowest
    highest = np.floor(np.log2(four.astype(float))).astype(int)
    order = np.argsort(highest, kind="stable")
    four, ends = four[order], np.searchsorted(highest[order], np.arange(50))
    for a in range(4, 50):  # the lowest of the other three
        low = four[: ends[a]]
        for b, c in itertools.combinations(range(a + 1, 52), 2):
            found.append(low | bit[a] | bit[b] | bit[c])
            count += len(low)
            while count >= size:
                flat = np.concatenate(found)
                yield flat[:size]
                found, count = [flat[size:]], len(flat) - size
    if count:
        yield np.concatenate(found)


@pytest.mark.rotates(long=True)
def test_all_hands_of_seven_cards() -> None:
    """Each category is as frequent among all 133,784,560 hands as combinatorics says, with 4,824 values."""
    n, players = 20_000, 22
    s = batch(TexasHoldemNoLimit, n, num_players=players)
    counts, seen = np.zeros(9, np.int64), set()
    for hands in all_hands(n * players):
        padded = np.resize(hands, (n, players))
        found = values(s, padded).ravel()[: len(hands)]
        counts += np.bincount(found >> 26, minlength=9)
        seen |= {*np.unique(found).tolist()}
    known = [23_294_460, 58_627_800, 31_433_400, 6_461_620, 6_180_020, 4_047_644, 3_473_184, 224_848, 41_584]
    assert counts.tolist() == known
    assert len(seen) == 4_824


def test_values_of_hands() -> None:
    """From the highest to the lowest."""
    ladder = [
        "AS KS QS JS TS 2H 3D", "KH QH JH TH 9H AS 2D", "9D 8D 7D 6D 5D 9H 9C", "5C 4C 3C 2C AC KH QH",
        "AS AH AD AC 3S 3H 2D", "2S 2H 2D 2C AS KH QD", "AS AH AD KS KH 2D 3C", "AS AH AD 3S 3H 2D 2C",
        "2S 2H 2D AS AH KD QC", "AS QS 9S 5S 3S AH AD", "KD QD JD TD 8D 7D 9H", "KS QS JS TS 7S 2S 2H",
        "AH KD QC JS TD 3H 3D", "5S 4H 3D 2C AS AH KD", "QS QH QD AS KH 2D 3C", "QS QH QD AS JH 2D 3C",
        "AS AH KS KH QD 3C 3D", "AS AH KS KH 3D 3C 2S", "AS AH 3D 3C KS 2H 4D", "KS KH QD QC AS 2H 3D",
        "AS AH KD QC 9S 3H 2D", "AS KH QD JC 9S 3H 2D", "AS KH QD JC 8S 7H 2D",
    ]  # fmt: skip
    s = batch(TexasHoldemNoLimit, 1, num_players=23)
    found = values(s, np.array([[cards(hand) for hand in ladder]]))[0]
    names = [CATEGORIES[v >> 26] for v in found]
    assert names == sorted(names, key=CATEGORIES.index, reverse=True)
    assert (np.diff(found.astype(int)) < 0).all()
    assert {*names} == {*CATEGORIES}


def test_equal_hands_share_the_pot() -> None:
    s = batch(TexasHoldem, 1)
    same = {"hand": np.array([[cards("2S 3H"), cards("2H 3D")]], np.uint64), "round": np.array([3], np.int32)}
    s.set_state({**same, "public_cards": np.array([cards("AS KH QD JC 9S")], np.uint64),
                 "chips": np.array([[6, 6]], np.int32), "acted": np.array([1], np.int32)})  # fmt: skip
    assert play(s, 3) == [0, 0]
    assert s.arrays["terminated"].all()


def test_uneven_pots() -> None:
    """player_2 has folded with one chip. It cannot be shared, so one of two winners has it all."""
    n = 4000
    s = batch(TexasHoldem, n, num_players=3)
    hands = np.array([[cards("2S 3H"), cards("2H 3D"), cards("4S 4H")]] * n, np.uint64)
    s.set_state({"hand": hands, "public_cards": np.full(n, cards("AS KH QD JC 9S"), np.uint64),
                 "chips": np.array([[6, 6, 1]] * n, np.int32), "folded": np.full(n, 4, np.uint32),
                 "round": np.full(n, 3, np.int32), "acted": np.full(n, 2, np.int32),
                 "to_move": np.zeros(n, np.int32)})  # fmt: skip
    s.arrays["action"][:, 0, 0] = 3
    s.step()
    first = (s.arrays["reward"] == [0.5, 0.0, -0.5]).all(1)
    second = (s.arrays["reward"] == [0.0, 0.5, -0.5]).all(1)
    assert (first | second).all()
    assert abs(first.sum() - n / 2) < 5 * np.sqrt(n / 4)


def test_cards_are_dealt_alike() -> None:
    """Each card is in the first hand, in the second, and on the flop as often as in any other place."""
    n = 40_000
    s = batch(TexasHoldem, n)
    for action in (0, 3):
        s.arrays["action"][:, :, 0] = action
        s.step()
    assert (s.arrays["round"] == 1).all()
    of_card = [s.arrays["hand"][:, 0], s.arrays["hand"][:, 1], s.arrays["public_cards"]]
    for sets, count in zip(of_card, (2, 2, 3), strict=True):
        assert (np.bitwise_count(sets) == count).all()
        counts = (sets[:, None] >> np.arange(52, dtype=np.uint64) & np.uint64(1)).sum(0)
        expected = n * count / 52
        assert ((counts - expected) ** 2 / expected).sum() < 97  # chi-squared, 51 degrees: one in ten thousand
    assert not (of_card[0] & of_card[1] | of_card[0] & of_card[2] | of_card[1] & of_card[2]).any()


def test_no_limit_ends_at_once_when_all_is_bet() -> None:
    s = batch(TexasHoldemNoLimit, 1, chips=20)
    play(s, 4)
    assert s.arrays["action_mask"][0, int(s.arrays["to_move"][0])].tolist() == [1, 1, 0, 0, 0]
    rewards = play(s, 1)
    assert s.arrays["terminated"].all()
    assert int(s.arrays["public_cards"][0]).bit_count() == 5
    assert sorted(map(abs, rewards)) in ([0, 0], [20, 20])


# ---- gin rummy ----


def test_melds_of_pictures_leave_as_much_deadwood() -> None:
    n, rng = 3000, np.random.default_rng(0)
    s = batch(GinRummy, n)
    few = [[c for c in range(52) if low <= c % 13 < low + 5] for low in range(9)]
    hands = np.array([[sum(1 << int(c) for c in rng.choice(few[k % 9], 10, replace=False))] * 2 for k in range(n)])
    s.set_state({"hand": hands.astype(np.uint64), "phase": np.full(n, 3, np.int32), "to_move": np.ones(n, np.int32)})
    s.arrays["action"][:, 1, 0] = 1
    s.step()
    for k in range(n):
        left = sum(map(points, best_melds(int(hands[k, 0]))[1]))
        assert s.arrays["reward"][k].tolist() == [np.float32(-left / 100)] * 2


def test_a_picked_up_card_is_not_discarded() -> None:
    s = batch(GinRummy, 1)
    first = int(s.arrays["to_move"][0])
    thrown = int(np.flatnonzero(s.arrays["action_mask"][0, first])[0])
    play(s, thrown)
    play(s, 3)
    mask = s.arrays["action_mask"][0, 1 - first]
    assert mask[6:58].sum() == 10
    assert mask[thrown] == 0
    assert int(s.arrays["known"][0, 1 - first]) == 1 << thrown - 6


@pytest.mark.parametrize(("card", "gin"), [("8H", True), ("4D", False)])
def test_knock_and_gin(card: str, gin: bool) -> None:
    """The card that is picked up leaves no deadwood but a king, or a four beside it."""
    s, king = batch(GinRummy, 1), 51
    hands = [cards("AS 2S 3S 5H 6H 7H 9C 9D 9H KC"), cards("2H 3H 4H 6C 7C 8C TS JS KS AD")]
    s.set_state({"hand": np.array([hands], np.uint64), "to_move": np.zeros(1, np.int32),
                 "phase": np.zeros(1, np.int32), "discards": np.array([cards(card)], np.uint64),
                 "top": np.array([cards(card).bit_length() - 1], np.int32)})  # fmt: skip
    play(s, 3)
    legal = np.flatnonzero(s.arrays["action_mask"][0, 0])
    if gin:
        assert legal.tolist() == [5]
    else:
        assert legal[legal >= 58].tolist() == sorted([58 + king, 58 + int(s.arrays["picked_up"][0])])
    play(s, 5 if gin else 58 + king)
    assert int(s.arrays["gone"][0]) == 1 << king
    play(s, 0)
    assert play(s, 1) == [1.0 if gin else 0.5, np.float32(-0.31)]


# ---- sparrow mahjong ----


def tiles(kinds: str) -> int:
    """A hand such as "123777" with G and R for dragons."""
    return sum(1 << 4 * "123456789GR".index(k) for k in kinds)


@pytest.mark.parametrize(
    ("hand", "discard", "reds", "river", "won"),
    [
        ("23456", "7", "", "", 0),  # three points: two runs, and no 1, 9 or dragon
        ("23456", "7", "23", "", 5),
        ("23444", "1", "234", "", 6),
        ("23444", "1", "234", "1", 0),  # this player has discarded a 1
        ("11199", "9", "", "", 19),  # two triplets of ends
        ("22233", "3", "", "", 14),  # a green hand
        ("GGGRR", "R", "RR", "", 19),
        ("12345", "5", "12345", "", 0),  # not two sets
        ("23456", "7", "223456", "", 22),  # six red tiles
    ],
)
def test_points_of_hands(hand: str, discard: str, reds: str, river: str, won: int) -> None:
    """player_1 discards, and player_2 wins or not. The dora is none of these, nor is the next tile of any use."""
    s = batch(SparrowMahjong, 1)
    s.set_state({
        "hand": np.array([[tiles("48G88"), tiles("88GG4" + discard), tiles(hand)]], np.uint64),
        "reds": np.array([[0, 0, tiles(reds)]], np.uint64), "to_move": np.array([1], np.int32),
        "turn": np.array([1], np.int32), "dora": np.array([7], np.int32), "wall": np.array([1 << 32], np.uint64),
        "river": np.array([[1, 0, int(river or 0)]], np.uint64),
    })  # fmt: skip
    assert play(s, "123456789GR".index(discard)) == [0, np.float32(-won / 26), np.float32(won / 26)]
    assert s.arrays["winners"][0] == (4 if won else 0)
    assert s.arrays["terminated"].all() == (won > 0)


def test_who_wins_by_drawing() -> None:
    """From the fourth turn on only player_2, as in Pgx; with `corrected` all."""
    winners = {}
    for corrected in (False, True):
        s = batch(SparrowMahjong, 5000, corrected=corrected)
        late = np.zeros(3, int)
        for _ in range(28):
            before = s.arrays["winners"].copy()
            s.random_actions()
            discarded, mover = s.arrays["turn"].copy(), s.arrays["to_move"].copy()
            s.step()
            drew = (s.arrays["winners"] != before) & (s.arrays["turn"] > discarded) & (s.arrays["turn"] > 2)
            np.add.at(late, (mover[drew] + 1) % 3, 1)
        winners[corrected] = late
    assert winners[False][:2].tolist() == [0, 0]
    assert winners[False][2] > 0
    assert (winners[True] > 0).all()


def test_names_of_tiles() -> None:
    assert gpuzoo.get("SparrowMahjong-v0").action_names(None, "player").keys() == {f"discard {n}" for n in NAMES}


# ---- bridge ----

C, D, H, S, NT = range(5)


@pytest.mark.parametrize(
    ("level", "trumps", "doubled", "vulnerable", "tricks", "points"),
    [
        (1, C, 0, 0, 7, 70), (2, D, 0, 1, 9, 110), (4, S, 0, 0, 10, 420), (4, H, 0, 1, 11, 650), (3, NT, 0, 0, 9, 400),
        (3, NT, 0, 1, 10, 630), (6, C, 0, 0, 12, 920), (6, S, 0, 1, 13, 1460), (7, NT, 0, 1, 13, 2220),
        (2, S, 1, 0, 8, 470), (2, C, 1, 0, 9, 280), (1, NT, 2, 1, 8, 1160), (7, NT, 2, 1, 13, 2980),
        (4, S, 0, 0, 8, -100), (4, S, 0, 1, 8, -200), (4, S, 1, 0, 9, -100), (4, S, 1, 0, 6, -800),
        (4, S, 1, 1, 9, -200), (4, S, 1, 1, 7, -800), (7, C, 2, 1, 0, -7600), (7, C, 2, 0, 0, -7000),
    ],
)  # fmt: skip
def test_scores_of_bridge(level: int, trumps: int, doubled: int, vulnerable: int, tricks: int, points: int) -> None:
    """North's contract; all numbers are those of the laws of duplicate bridge."""
    s = batch(BridgeBidding, 1)
    results = tricks << 4 * (4 - trumps)
    s.set_state({
        "tricks": np.array([[results, 0, 0, 0]], np.uint32), "vulnerable": np.array([vulnerable], np.uint32),
        "dealer": np.array([0], np.int32), "to_move": np.array([0], np.int32),
    })  # fmt: skip
    play(s, 3 + 5 * (level - 1) + trumps)
    if doubled:
        play(s, 1)
    if doubled == 2:
        play(s, 2)
    for _ in range(2):
        assert play(s, 0) == [0, 0, 0, 0]
    assert play(s, 0) == [points, -points, points, -points]
    assert s.arrays["terminated"].all()
    made = [3 + 5 * (level - 1) + trumps] + [1, 2][:doubled] + [0, 0, 0]
    assert calls({name: s.arrays[name][0] for name in BridgeBidding().fields(BridgeBidding.Config())}) == made


def test_the_partner_who_was_first_declares() -> None:
    s = batch(BridgeBidding, 1)
    s.set_state({"tricks": np.array([[0, 0, 0xAAAAA, 0]], np.uint32), "vulnerable": np.zeros(1, np.uint32),
                 "dealer": np.array([2], np.int32), "to_move": np.array([2], np.int32)})  # fmt: skip
    for call in (3 + H, 0, 3 + 5 * 3 + H, 0, 0):  # south one heart, north four hearts
        play(s, call)
    assert play(s, 0) == [420, -420, 420, -420]


def test_four_passes() -> None:
    s = batch(BridgeBidding, 1)
    for _ in range(3):
        play(s, 0)
        assert not s.arrays["terminated"].any()
    assert play(s, 0) == [0, 0, 0, 0]
    assert s.arrays["terminated"].all()


def test_deals_have_thirteen_cards_each() -> None:
    s = batch(BridgeBidding, 2000)
    hands = s.arrays["hand"]
    assert (np.bitwise_count(hands) == 13).all()
    assert (np.bitwise_or.reduce(hands, 1) == np.uint64((1 << 52) - 1)).all()
    digits = s.arrays["tricks"][..., None] >> 4 * np.arange(5, dtype=np.uint32) & 15
    assert (digits <= 13).all()
    assert (s.arrays["tricks"] >> 20 == 0).all()
    assert len(np.unique(hands[:, 0])) > 800


def test_a_table_of_ones_own(tmp_path: Any) -> None:
    shipped = BridgeBidding().table(BridgeBidding.Config())
    np.save(tmp_path / "few.npy", shipped[:, :3])
    s = batch(BridgeBidding, 100, table=str(tmp_path / "few.npy"))
    assert len(np.unique(s.arrays["hand"][:, 0])) == 3
    with pytest.raises(FileNotFoundError, match="there is no table of deals"):
        batch(BridgeBidding, 1, table=str(tmp_path / "none.npy"))
    np.save(tmp_path / "bad.npy", np.zeros((3, 4), np.int32))
    with pytest.raises(ValueError, match=r"must hold an array \(2, deals, 4\), not one of shape \(3, 4\)"):
        batch(BridgeBidding, 1, table=str(tmp_path / "bad.npy"))
