"""The demonstration, with so little training that nobody learns anything."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

import gpuzoo

ROOT = Path(gpuzoo.__file__).parents[1]


@pytest.mark.rotates
def test_demo_leaves_an_animation_and_a_curve(tmp_path: Path) -> None:
    out = tmp_path / "demo"
    words = ["--out", str(out), "--pole-steps", "2048", "--tag-steps", "2048"]
    command = [sys.executable, "-W", "error", "-m", "baselines.demo", *words]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    for text in ("of 500 steps with random pushes", "Runners that are caught", f"--checkpoint {out}/checkpoint"):
        assert text in done.stdout
    assert {"agents.gif", "learning_curve.png", "checkpoint.safetensors"} <= {file.name for file in out.iterdir()}
    with Image.open(out / "agents.gif") as image:
        assert image.size == (2 * 320 + 2, 2 * 348 + 2)
        assert image.n_frames > 50
    play = [
        sys.executable,
        "-m",
        "gpuzoo",
        "play",
        "TagContinuous-v0",
        "--checkpoint",
        str(out / "checkpoint.safetensors"),
    ]
    done = subprocess.run([*play, "--episodes", "2"], cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
