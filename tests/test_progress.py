"""What a person or a log file sees of a run."""

from __future__ import annotations

import re
import sys
import time

import pytest

pytest.importorskip("torch")

from baselines.ppo import PPO, Args
from baselines.report import progress
from baselines.report.progress import Display
from baselines.run import main
from baselines.train.command import parse


def lines(capsys):
    return capsys.readouterr().out.splitlines()


def test_a_pipe_gets_a_line_now_and_then(capsys, monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(time, "perf_counter", lambda: clock[0])
    with Display("Game-v0", 100) as display:
        for k in range(1, 101):
            clock[0] += 0.5
            display.update(k, 1234.5, {"agent": k} if k > 1 else {})
    shown = lines(capsys)
    assert len(shown) == 11, "50 seconds, a line for each five of them, and the last state"
    assert shown[0] == "Game-v0  1 %  1,234 steps/s  no episode has ended yet  0:00:50 left"
    assert shown[1] == "Game-v0  11 %  1,234 steps/s  return: agent 11.00  0:00:44 left"
    assert shown[-1] == "Game-v0  100 %  1,234 steps/s  return: agent 100.00"


def test_a_run_that_goes_on_tells_what_is_left_of_it(capsys, monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(time, "perf_counter", lambda: clock[0])
    with Display("Game-v0", 10, done=8) as display:
        clock[0] = 3.0
        display.update(9, 1.0, {"agent": 1.0})
    assert lines(capsys)[0].endswith("0:00:03 left")


def test_quiet_is_quiet(capsys):
    with Display("Game-v0", 2, quiet=True) as display:
        display.update(1, 1.0, {})
    assert lines(capsys) == []


@pytest.mark.parametrize("width", ["80", "200"])
def test_a_terminal_shows_whole_numbers(capsys, monkeypatch, width):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", width)
    with Display("TagContinuous-v0", 10) as display:
        display.update(3, 123456.0, {"tagger": -123.45, "runner": 67.89})
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", capsys.readouterr().out)
    words = "".join(re.split(r"[^\w.,:/-]+", text))
    if width == "200":
        assert "return:tagger-123.45runner67.89" in words
    for part in ("123.45", "67.89"):
        assert part in words, "on several lines, but not cut off"
    assert "…" not in text


def test_a_short_run_says_so_where_no_episode_ended(capsys):
    words = ["CartPole-v1", "--total-steps", "32", "--num-envs", "4", "--num-steps", "4", "--hidden", "8"]
    assert parse(Args, words).total_steps == 32
    main(PPO, Args, words)
    title, *told, last = lines(capsys)
    assert re.fullmatch(r"CartPole-v1 on (cpu|cuda:0), executor: (fast|plain)", title)
    assert re.fullmatch(
        r"CartPole-v1: no episode has ended in the last tenth of the run; [\d,]+ steps/s, \d+ s\.", last
    )
    assert told
    for line in told:
        assert "return: agent" in line or "no episode has ended yet" in line
    assert not re.search(r"return:? *[;,.]", "\n".join([*told, last]))
    assert sys.stdout.isatty() is False
    assert progress.LINE_SECONDS <= 10
