"""Pictures for one agent's eyes: what it does not see is face down."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import gpuzoo
from gpuzoo.interfaces.batch import BatchEnv

SIDE = 320
#: games with secrets, and the fields that hold them
SECRETS = {
    "KuhnPoker-v0": ("card",),
    "LeducHoldem-v0": ("card",),
    "TexasHoldem-v0": ("hand",),
    "TexasHoldemNoLimit-v0": ("hand",),
    "GinRummy-v0": ("hand",),
    "BridgeBidding-v0": ("hand", "tricks"),
    "SparrowMahjong-v0": ("hand", "reds"),
}


@pytest.fixture
def envs(request: pytest.FixtureRequest) -> Iterator[BatchEnv]:
    batch = gpuzoo.make(request.param, num_envs=16, device="cpu", autoreset_mode="disabled")
    batch.reset(seed=0)
    yield batch
    batch.close()


def hands_last(hand: int) -> int:
    """The highest card of a hand."""
    return hand.bit_length() - 1


def others(envs: BatchEnv, owner: int) -> int:
    """Exchanges the secrets of all players but one between envs 0 and 1, and returns how many numbers differed."""
    state, count = envs.simulator.state(envs=[0, 1]), 0
    for name in SECRETS[envs.simulator.env.id]:
        of_others = np.arange(state[name].shape[1]) != owner
        swapped = state[name].copy()
        if name == "hand" and "discards" in state:  # a card of the stock, as that is counted in the picture
            hands = int(swapped[0, 0]) | int(swapped[0, 1])
            card, free = hands_last(int(swapped[0, 1 - owner])), next(c for c in range(52) if not hands >> c & 1)
            swapped[0, 1 - owner] ^= np.uint64(1 << card | 1 << free)
        else:
            swapped[:, of_others] = state[name][::-1][:, of_others]
        count += int((swapped != state[name]).sum())
        envs.simulator.set_state({name: swapped}, envs=[0, 1])
    return count


@pytest.mark.parametrize("envs", SECRETS, indirect=True)
def test_a_player_sees_nothing_of_what_others_hold(envs: BatchEnv) -> None:
    for owner, seat in enumerate(envs.simulator.layout.agent_names()):
        envs.reset(seed=0)
        mine, all_seen = envs.render(0, SIDE, seat=seat), envs.render(0, SIDE)
        assert (mine != all_seen).any()
        if others(envs, owner):
            assert (envs.render(0, SIDE) != all_seen).any()
            assert (envs.render(0, SIDE, seat=seat) == mine).all()


@pytest.mark.parametrize("envs", ["Hanabi-v0"], indirect=True)
def test_a_player_of_hanabi_sees_all_hands_but_its_own(envs: BatchEnv) -> None:
    all_seen = envs.render(0, SIDE)
    mine, partners = (envs.render(0, SIDE, seat=seat) for seat in ("player_0", "player_1"))
    rows = lambda picture: np.flatnonzero((picture != all_seen).any((1, 2)))  # noqa: E731
    assert rows(mine).size
    assert rows(partners).size
    assert rows(mine).max() < rows(partners).min()


@pytest.mark.parametrize("envs", [*SECRETS], indirect=True)
def test_at_a_showdown_all_hands_are_seen(envs: BatchEnv) -> None:
    """Episodes of random play that did not end by a fold; a folded hand stays face down."""
    simulator, shown = envs.simulator, 0
    for _ in range(400):
        envs.step(envs.random_actions())
        if not simulator.arrays["alive"].any():
            break
    for k in range(envs.num_envs):
        if not simulator.arrays["alive"][k].any():
            shown += bool((envs.render(k, SIDE, seat="player_0") == envs.render(k, SIDE)).all())
    assert shown


def test_a_seat_is_an_agent() -> None:
    envs = gpuzoo.make("KuhnPoker-v0", num_envs=1, device="cpu")
    envs.reset(seed=0)
    with pytest.raises(ValueError, match="KuhnPoker-v0 has no agent 'player_7'"):
        envs.render(0, seat="player_7")
    envs.close()


def test_who_plays_in_the_viewer_sees_a_seat() -> None:
    from gpuzoo.tools.live import Live

    game: Any = Live("TexasHoldem-v0")
    try:
        watched = game.picture(SIDE)
        game.play("player_0")
        assert (game.picture(SIDE) != watched).any()
        game.play(None)
        assert (game.picture(SIDE) == watched).all()
    finally:
        game.close()
