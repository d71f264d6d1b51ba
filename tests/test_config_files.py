"""Hyper-parameters from files: what counts more than what, and which files are refused."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path
from typing import Any

import pytest

from baselines.train.args import A2CArgs, PPOArgs
from baselines.train.command import parse


def written(folder: Path, content: Any) -> str:
    path = folder / "mine.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return str(path)


def test_command_line_beats_file_beats_game_beats_defaults(tmp_path: Path) -> None:
    file = written(tmp_path, {"num_envs": 2e1, "lr": 1, "hidden": [8], "config": {"gravity": 5.0, "length": 0.7}})
    words = ["CartPole-v1", "--config", file, "--lr", "0.5", "--config.gravity", "4", "--config.masscart=2"]
    args = parse(PPOArgs, words)
    assert (args.lr, args.num_envs, args.hidden) == (0.5, 20, (8,))
    assert (args.total_steps, args.gamma) == (500_000, 0.99), "CartPole's own value, and the default"
    assert args.config == {"gravity": 4.0, "length": 0.7, "masscart": 2.0}
    args.check()
    assert PPOArgs.of("CartPole-v1", file, lr=0.5, config={"gravity": 4.0, "masscart": 2.0}) == args


def test_options_of_another_game_come_without_its_parameters() -> None:
    about = json.loads((Path(__file__).parents[1] / "baselines/configs/CliffWalking-v1.json").read_text())
    args = parse(A2CArgs, ["CartPole-v1", "--config=CliffWalking-v1", "--num-steps", "4"])
    assert (args.lr, args.num_envs, args.num_steps) == (about["lr"], about["num_envs"], 4)
    assert about["config"]
    assert args.config == {}


def test_what_a_run_tells_of_itself_is_such_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["SimpleTag-v0", "--load", "adversary=a.safetensors", "--freeze", "adversary", "--config.num_good", "2"]
    with pytest.raises(SystemExit) as end:
        parse(A2CArgs, [*words, "--show-config"])
    assert end.value.code in (0, None)
    file = written(tmp_path, capsys.readouterr().out)
    first, again = parse(A2CArgs, words), parse(A2CArgs, ["SimpleTag-v0", "--config", file])
    assert dataclasses.asdict(again) == dataclasses.asdict(first)


FAULTS = {
    "no file": (None, "cannot read the options in"),
    "no JSON": ("{", "is not JSON"),
    "no object": ([1], "must hold a JSON object with options, not list"),
    "unknown option": ({"lrr": 1}, "mine.json: ppo has no option 'lrr'"),
    "game": (
        {"game": "Pong-v0"},
        "is for another game than CartPole-v1: take that one, or remove 'game' there",
    ),
    "algorithm": ({"algorithm": "a2c"}, "is for another algorithm than ppo"),
    "text for a number": ({"lr": "0.1"}, 'lr must be a number, not "0.1"'),
    "truth for a number": ({"lr": True}, "lr must be a number, not true"),
    "fraction": ({"num_envs": 1.5}, "num_envs must be a whole number, not 1.5"),
    "number for a truth": ({"anneal_lr": 1}, "anneal_lr must be true or false, not 1"),
    "number for a list": ({"hidden": 64}, "hidden must be a list, as in tuple[int, ...], not 64"),
    "texts in a list": ({"hidden": ["64"]}, "hidden must be a list"),
    "list for a dictionary": ({"config": []}, "config must be a dictionary, as in dict[str, Any], not []"),
    "numbers in a dictionary": ({"policies": {"agent": 1}}, "policies must be a dictionary"),
}


@pytest.mark.parametrize(("content", "message"), FAULTS.values(), ids=FAULTS)
def test_faulty_files_are_refused_with_one_sentence(
    content: Any, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = str(tmp_path / "mine.json") if content is None else written(tmp_path, content)
    with pytest.raises(ValueError, match=re.escape(message)):
        PPOArgs.of("CartPole-v1", file)
    with pytest.raises(SystemExit):
        parse(PPOArgs, ["CartPole-v1", "--config", file])
    assert message in capsys.readouterr().err


def test_an_unknown_name_of_a_file_is_refused() -> None:
    with pytest.raises(ValueError, match=r"no options for 'CartPole-v2'.*A file ends in \.json\."):
        PPOArgs.of("CartPole-v1", "CartPole-v2")


def test_parameters_in_a_file_are_checked_as_those_of_the_command_line(tmp_path: Path) -> None:
    with pytest.raises((ValueError, TypeError), match="gravit"):
        PPOArgs.of("CartPole-v1", written(tmp_path, {"config": {"gravit": 1.0}})).check()
