"""Writes networks that `baselines.alphazero` has trained to ``baselines/networks``, in half precision.

    python scripts/make_networks.py out/four/network.safetensors ...

docs/alphazero.md has the commands that train them. The file is called by the game's id.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from baselines.alphazero import load
from baselines.report import pretrained

from gpuzoo import registry  # isort: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("networks", type=Path, nargs="+", help="checkpoints of runs")
    for path in parser.parse_args().networks:
        target = pretrained.NETWORKS / f"{registry.get(load(path)[1].game).id}.safetensors"
        target.parent.mkdir(exist_ok=True)
        pretrained.write_network(path, target)
        print(f"{target}: {target.stat().st_size // 1024} KiB")


if __name__ == "__main__":
    main()
