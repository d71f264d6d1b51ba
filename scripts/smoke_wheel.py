"""Installs the wheel in dist/ into empty environments, and plays with it there: part of a release.

    python scripts/smoke_wheel.py                        # with each Python from 3.10 to 3.14 that is on the PATH
    python scripts/smoke_wheel.py python3.12 /opt/python # with some

Each environment has ``gpuzoo[cpu]`` and nothing else, an empty cache, and a PATH without a compiler: zig compiles. The
golden rollouts of a few games must come out, so all Pythons and compilers agree to the bit. The exit status is 1 if one
fails, or if there was none to try. A Python that is not there is named, and does not fail.
"""

from __future__ import annotations

import json
import os
import runpy
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PYTHONS = [f"python3.{minor}" for minor in range(10, 15)]
#: one agent, several in one lane, several in many, turns
GAMES = ("CartPole-v1", "SimpleSpread-v0", "TagContinuous-v0", "ConnectFour-v0")


def inside() -> None:
    """What runs in the environment."""
    import gymnasium

    import gpuzoo

    assert Path(gpuzoo.__file__).is_relative_to(sys.prefix), f"{gpuzoo.__file__} is not what was installed"
    rollout = runpy.run_path(str(ROOT / "scripts" / "make_golden.py"))["rollout"]
    for name in GAMES:
        want = json.loads((ROOT / "tests" / "golden" / f"{name}.json").read_text())
        assert rollout(type(gpuzoo.get(name))) == want, f"{name} is not what was published"

    envs = gymnasium.make_vec("gpuzoo/CartPole-v1", num_envs=8)
    envs.reset(seed=0)
    assert envs.step(envs.action_space.sample())[0].shape == (8, 4)
    envs.close()
    env = gpuzoo.parallel_env("SimpleSpread-v0", max_cycles=3)
    env.reset(seed=0)
    while env.agents:
        env.step({agent: env.action_space(agent).sample() for agent in env.agents})
    env.close()

    bin = Path(sys.executable).parent
    for words in (["doctor"], ["list"], ["new", "windy_lake"]):
        subprocess.run([bin / "gpuzoo", *words], check=True, stdout=subprocess.DEVNULL)
    sys.path.insert(0, str(Path("windy_lake").resolve().parent))
    from windy_lake.windy_lake import WindyLake  # type: ignore[import-not-found]

    gpuzoo.make(WindyLake, num_envs=2).reset(seed=0)


def runs(python: str) -> bool:
    """Whether a command starts. (One of pyenv's may be on the PATH, and only say which versions there are.)"""
    return shutil.which(python) is not None and subprocess.run([python, "-V"], capture_output=True).returncode == 0


def try_out(python: str, wheel: Path) -> None:
    """Makes an environment, installs the wheel and runs `inside` there.

    Raises:
        subprocess.CalledProcessError: something failed, and has said why.
    """
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        folder = Path(name).resolve()
        subprocess.run([python, "-m", "venv", folder / "env"], check=True)
        bin = folder / "env" / ("Scripts" if os.name == "nt" else "bin")
        surroundings = {k: v for k, v in os.environ.items() if k != "CXX" and not k.startswith(("PYTHON", "VIRTUAL_"))}
        install = [bin / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", f"{wheel}[cpu]"]
        subprocess.run(install, check=True, env=surroundings)
        (folder / "empty").mkdir()
        surroundings |= {"PATH": str(bin), "HOME": str(folder), "GPUZOO_CACHE_DIR": str(folder / "cache")}
        command = [bin / "python", "-I", "-W", "error", __file__, "--inside"]
        subprocess.run(command, check=True, env=surroundings, cwd=folder / "empty")


def main() -> None:
    """Tries the wheel with the Pythons that are named, or with all that are found."""
    if sys.argv[1:] == ["--inside"]:
        return inside()
    wheels = list((ROOT / "dist").glob("gpuzoo-*.whl"))
    if len(wheels) != 1:
        sys.exit(f"dist/ must have one wheel, and has {len(wheels)}: run `make dist`.")
    named, good, bad = sys.argv[1:], 0, 0
    for python in named or PYTHONS:
        if not named and not runs(python):
            print(f"{python}: not on the PATH, not tried", flush=True)
            continue
        start = time.monotonic()
        try:
            try_out(python, wheels[0])
        except (OSError, subprocess.CalledProcessError) as error:
            bad += 1
            print(f"{python}: {error}")
        else:
            good += 1
            print(f"{python}: works ({time.monotonic() - start:.0f} s)", flush=True)
    sys.exit(bad > 0 or good == 0)


if __name__ == "__main__":
    main()
