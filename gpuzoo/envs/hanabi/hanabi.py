"""Hanabi."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from gpuzoo.core.definition import Config, EnvDef, Field, param
from gpuzoo.envs.hanabi import beliefs, drawing
from gpuzoo.render import Canvas

COLORS = ("red", "yellow", "green", "white", "blue")
SMALL = {"ranks": 5, "hand_size": 2, "max_information_tokens": 3, "max_life_tokens": 1}
#: the games of the original's `rl_env.make`, by their names
GAMES: Mapping[str, Mapping[str, Any]] = {
    "Full": {},
    "Full-CardKnowledge": {},
    "Full-Minimal": {"observation_type": "minimal"},
    "Small": {"colors": 2, **SMALL},
    "Very-Small": {"colors": 1, **SMALL},
}
OBSERVATION_TYPES = ("minimal", "card_knowledge", "seer")


@dataclasses.dataclass(frozen=True)
class HanabiConfig(Config):
    """The parameters of the original's HanabiGame, by their names."""

    players: int = param(2, low=2, high=5, doc="number of players")
    colors: int = param(5, low=1, high=5, doc="number of colors")
    ranks: int = param(5, low=1, high=5, doc="number of ranks")
    hand_size: int = param(0, low=0, high=8, doc="cards of a hand; 0: 5 for two or three players, 4 for more")
    max_information_tokens: int = param(8, low=0, high=32, doc="information tokens, at the beginning and at most")
    max_life_tokens: int = param(3, low=1, high=32, doc="life tokens at the beginning")
    observation_type: Literal["minimal", "card_knowledge", "seer", "beliefs"] = param(
        "card_knowledge",
        doc="without the knowledge from hints, with it, with all cards known, or what a player can conclude",
    )
    random_start_player: bool = param(False, doc="any player may begin; otherwise player_0 does")
    keep_score: bool = param(False, doc="the score stays when the last life token is lost; otherwise it becomes 0")


def hand_size(cfg: HanabiConfig) -> int:
    """Cards of a full hand."""
    return cfg.hand_size or (5 if cfg.players < 4 else 4)


def cards_per_color(cfg: HanabiConfig) -> int:
    """Three of the lowest rank, one of the highest, two of the others."""
    return 3 if cfg.ranks == 1 else 2 * cfg.ranks


class Hanabi(EnvDef):
    """Players who see all cards but their own build fireworks together, and give each other hints about what to play.

    The card game by Antoine Bauza (2010), and the benchmark of cooperation by Bard et al. (2020), with the rules of the
    package hanabi-learning-environment. Each color has three cards of the lowest rank, one of the highest and two of
    each other rank. A hand lists its cards from the oldest to the newest. A player in turn makes one of these moves:

    - **play** a card. If it is the next rank of its color's firework, the firework grows by it. Otherwise it is
      discarded, and a life token is lost. The last card of a firework brings an information token back, if one is
      missing.
    - **discard** a card, which brings an information token back. This is legal if one is missing.
    - **hint**: for an information token, tell another player which of its cards have a color or a rank. At least one
      card must have it.

    A player who plays or discards draws a new card, the newest one of the hand, as long as the deck has cards.

    **Agents.** `player_0`, `player_1`, ... They move in turn: a step is one move, and the actions of players who are
    not to move are ignored.

    **Actions.** `Discrete(2 * hand_size + (players - 1) * (colors + ranks))`: discard card 0, 1, ...; play card 0, 1,
    ...; hint a color, to the next player, the one after that, and so on; hint a rank, likewise. The action mask holds
    the legal moves of the player to move, and zeros for the others.

    **Observation.** `Box(0, 1, (658,), int8)` for two players, the original's canonical encoding. A card is one-hot at
    `ranks * color + rank`, zeros if it is absent; players are counted from the observing one on, and numbers of things
    are as many ones as there are. In this order: the cards of the other players; for each player whether a card is
    missing; cards left in the deck; the highest rank of each firework, one-hot; information tokens; life tokens;
    discarded cards of each color and rank; the last move: who made it, its kind (play, discard, hint of a color, hint
    of a rank), to whom it was a hint, its color, its rank, the cards that it told, the place of the card played or
    discarded, that card, whether it made the firework grow, and whether playing it brought an information token. Then,
    except in `minimal`, for each card of each player: what color and rank hints have left possible, and the color and
    the rank that a hint has told. In `seer` every card is told from the beginning.

    `beliefs` is `Box(0, 1, (307,), float32)` for two players, and no observation of the original. It has what
    a player can conclude by counting, alike for all colors: for each own card, the chances that it is playable or
    useless; for each card of others, what it is and which chances its holder sees; for each hint, what it would tell.
    The chance of a kind of card is the number of its copies that the player does not see, among the kinds that hints
    have left possible (beliefs V0 of Foerster et al. 2019). The holder's chances leave out what it sees in other hands.
    In our runs an MLP needed fewer steps with it than with the canonical encoding. It leaves things out: it does not
    list the discarded cards, and it gives chances for each own card by itself, not for the hand as a whole.

    **State.** The observation of `player_0`, after its own cards, with all hints even in `minimal`; at the end the
    player to move, one-hot.

    **Reward.** For all players: the change of the score, which is the number of cards in the fireworks, and 0 if no
    life token is left. So the rewards of a game that is lost add up to 0, with the last one the negative of what there
    was. With `keep_score` they add up to the cards in the fireworks in any case.

    **End.** No life token is left, all fireworks are complete, or everybody has moved once since the deck ran out.
    An illegal action of the player to move ends the game at once with -1 for that player and 0 for the others.

    **As in the original.** A new card is drawn even if the game is over. The observation of `seer` shows one's own
    cards by what is told of them only. Completing a firework with all information tokens at hand brings none. With a
    single rank each color has three cards, as the lowest rank counts first.

    **Names.** `Hanabi-Full`, `Hanabi-Full-Minimal`, `Hanabi-Small` (two colors, hands of two cards, three information
    tokens, one life) and `Hanabi-Very-Small` (one color) are the original's:

    ```python
    import gpuzoo

    envs = gpuzoo.make("Hanabi-Small", num_envs=4, players=3)
    ```

    **Differences from JaxMARL.** Where this observation shows which cards are possible, JaxMARL's shows probabilities:
    the shares of the copies that are neither discarded nor in a firework. JaxMARL has one more action, for players who
    wait.
    """

    id = "Hanabi-v0"
    Config = HanabiConfig
    aliases = (r"[Hh]anabi-(Full|Full-CardKnowledge|Full-Minimal|Small|Very-Small)", r"hanabi(_v5)?")
    invalid_action = -1
    action_mask = True
    chooses = True
    turn = "to_move"
    reference = "hanabi-learning-environment==0.0.4 Hanabi-Full"
    interaction = "cooperative"
    links: ClassVar[Mapping[str, str]] = {
        "hanabi-learning-environment": "https://github.com/google-deepmind/hanabi-learning-environment",
        "Bard et al. 2020": "https://arxiv.org/abs/1902.00506",
        "JaxMARL": "https://github.com/FLAIROx/JaxMARL/tree/main/jaxmarl/environments/hanabi",
    }
    benchmarks: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "5 players": {"players": 5},
        "very small": dict(GAMES["Very-Small"]),
        "beliefs": {"observation_type": "beliefs"},
    }
    exempt: ClassVar[Mapping[str, str]] = {
        "rows_are_stored_in_few_sectors": "The masks of an env are 40 bytes, which begin and end inside of sectors.",
    }
    render_fps = 2

    @staticmethod
    def config_of(name: str) -> dict[str, Any]:
        found = re.fullmatch(r"[Hh]anabi-(.*)", name)
        return dict(GAMES.get(found[1], {})) if found else {}

    @classmethod
    def parameters_of(cls, options: Mapping[str, Any]) -> Mapping[str, Any]:
        """The original numbers the types of observation."""
        kind = options.get("observation_type")
        if isinstance(kind, (int, np.integer)) and not isinstance(kind, bool):
            if not 0 <= kind < len(OBSERVATION_TYPES):
                raise ValueError(f"Hanabi-v0: observation_type must be 0, 1, 2 or a name, not {kind}.")
            return {**options, "observation_type": OBSERVATION_TYPES[kind]}
        return options

    def check(self, cfg: HanabiConfig) -> None:
        dealt, deck = cfg.players * hand_size(cfg), cfg.colors * cards_per_color(cfg)
        if dealt > deck:
            raise ValueError(f"Hanabi-v0: the hands take {dealt} cards, but the deck has {deck}.")

    def agents(self, cfg: HanabiConfig) -> dict[str, int]:
        return {"player": cfg.players}

    def lanes(self, cfg: HanabiConfig) -> int:
        """As many as can put an env's observations together in a GPU's shared memory, 192 bytes each."""
        space = self.observation_space(cfg, "player")
        size = cfg.players * space.shape[0] * space.dtype.itemsize
        return min(256, max(32, 1 << (-(-size // 192) - 1).bit_length()))

    def constants(self, cfg: HanabiConfig) -> dict[str, int]:
        cards, hand = cfg.colors * cfg.ranks, hand_size(cfg)
        table = _size(self._shown(cfg)) - (cfg.players - 1) * hand * cards
        return {
            "COLORS": cfg.colors,
            "RANKS": cfg.ranks,
            "CARDS": cards,
            "CARDS_PER_COLOR": cards_per_color(cfg),
            "DECK": cfg.colors * cards_per_color(cfg),
            "HAND": hand,
            "MAX_INFORMATION": cfg.max_information_tokens,
            "MAX_LIVES": cfg.max_life_tokens,
            "MOVES": _size(self.action_names(cfg, "player")),
            "TABLE": table,
            "TABLE_WORDS": table // 64 + 1,
        }

    def observation_space(self, cfg: HanabiConfig, group: str) -> spaces.Box:
        dtype = np.float32 if cfg.observation_type == "beliefs" else np.int8
        return spaces.Box(0, 1, (_size(self.observation_names(cfg, group)),), dtype)

    def state_space(self, cfg: HanabiConfig) -> spaces.Box:
        own, view = hand_size(cfg) * cfg.colors * cfg.ranks, _size(self._shown(cfg) | self._knowledge(cfg))
        return spaces.Box(0, 1, (own + view + cfg.players,), np.int8)

    def action_space(self, cfg: HanabiConfig, group: str) -> spaces.Discrete:
        return spaces.Discrete(_size(self.action_names(cfg, group)))

    def observation_names(self, cfg: HanabiConfig, group: str) -> dict[str, int]:
        if cfg.observation_type == "beliefs":
            tokens = cfg.max_information_tokens, cfg.max_life_tokens
            return beliefs.names(cfg.players, cfg.colors, cfg.ranks, hand_size(cfg), *tokens)
        return self._shown(cfg) | ({} if cfg.observation_type == "minimal" else self._knowledge(cfg))

    def _shown(self, cfg: HanabiConfig) -> dict[str, int]:
        """The other players' cards and the table."""
        hand, cards, deck = hand_size(cfg), cfg.colors * cfg.ranks, cfg.colors * cards_per_color(cfg)
        names = {
            f"cards of the player {k} further, one-hot, the oldest first": hand * cards for k in range(1, cfg.players)
        }
        names |= {
            "whether a card of each player is missing, the observing one first": cfg.players,
            "cards left in the deck": deck - cfg.players * hand,
            "highest rank of each firework, one-hot": cards,
            "information tokens": cfg.max_information_tokens,
            "life tokens": cfg.max_life_tokens,
            "discarded cards of each color and rank": deck,
            "last move: who made it": cfg.players,
            "last move: play, discard, hint of a color, hint of a rank": 4,
            "last move: to whom it was a hint": cfg.players,
            "last move: color of the hint": cfg.colors,
            "last move: rank of the hint": cfg.ranks,
            "last move: cards that the hint told": hand,
            "last move: place of the card played or discarded": hand,
            "last move: card played or discarded": cards,
            "last move: whether a firework grew": 1,
            "last move: whether playing brought an information token": 1,
        }
        return names

    def _knowledge(self, cfg: HanabiConfig) -> dict[str, int]:
        each = cfg.colors * cfg.ranks + cfg.colors + cfg.ranks
        what = "for each card: what it may be, the color told, the rank told"
        return {f"hand of player {k} from here, {what}": hand_size(cfg) * each for k in range(cfg.players)}

    def action_names(self, cfg: HanabiConfig, group: str) -> dict[str, int]:
        places, others = range(hand_size(cfg)), range(1, cfg.players)
        names = {f"{what} card {k}": 1 for what in ("discard", "play") for k in places}
        names |= {f"hint {color} to player +{k}": 1 for k in others for color in COLORS[: cfg.colors]}
        return names | {f"hint rank {rank + 1} to player +{k}": 1 for k in others for rank in range(cfg.ranks)}

    def fields(self, cfg: HanabiConfig) -> dict[str, Field]:
        hand = "of each player's cards, a byte for each, the oldest first, 0 if there is none"
        known = "what hints have left possible, and bit 5 if one has told it"
        copy = "bit cards_per_color * color + copy; the copies of a color are sorted by rank"
        return {
            "color": Field("uint64", ("players",), f"{hand}: bit color"),
            "rank": Field("uint64", ("players",), f"{hand}: bit rank"),
            "known_color": Field("uint64", ("players",), f"{hand}: colors that {known}"),
            "known_rank": Field("uint64", ("players",), f"{hand}: ranks that {known}"),
            "deck": Field("uint64", doc=f"cards left in the deck: {copy}"),
            "discards": Field("uint64", doc=f"discarded cards, of each kind the first copies: {copy}"),
            "fireworks": Field("uint32", doc="cards in the fireworks: bit ranks * color + rank"),
            "information_tokens": Field("int32", doc="left"),
            "life_tokens": Field("int32", doc="left"),
            "turns_left": Field("int32", doc="moves until the game ends, counted from when the deck is empty"),
            "to_move": Field("int32", doc="index of the player to move"),
            "last_player": Field("int32", doc="who made the last move, -1 before the first"),
            "last_action": Field("int32", doc="the last move, -1 before the first"),
            "last_card": Field("int32", doc="ranks * color + rank of the card that it played or discarded, or -1"),
            "last_hinted": Field("uint64", doc="bit 8 * card of each card that it told about"),
            "last_scored": Field("bool", doc="whether it made a firework grow"),
            "last_gained": Field("bool", doc="whether it brought an information token back"),
            "table": Field(
                "uint64", ("agents", "TABLE_WORDS"), "bits of what lies on the table, by player", scratch=True
            ),
            "legal": Field("uint64", doc="legal moves of the player to move", scratch=True),
            "kinds": Field("uint32", (len(beliefs.CLASSES),), "cards that are playable, and so on", scratch=True),
            "unseen": Field("uint32", (cfg.players + 1, 3), "of which a player misses copies", scratch=True),
        }

    def infos(self, cfg: HanabiConfig, state: Mapping[str, Any]) -> dict[str, Any]:
        return {"information_tokens": state["information_tokens"], "life_tokens": state["life_tokens"]}

    def side(self, cfg: HanabiConfig) -> int:
        return 640

    def aspect(self, cfg: HanabiConfig) -> float:
        return drawing.WIDTH / drawing.HEIGHT

    def render(self, cfg: HanabiConfig, state: Mapping[str, NDArray[Any]], canvas: Canvas) -> None:
        drawing.draw(canvas, cfg, state)


def _size(names: Mapping[str, int]) -> int:
    return sum(names.values())
