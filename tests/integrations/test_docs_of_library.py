"""The documentation's code for the library whose environment this is: .venvs/NAME."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from test_docs import BLOCKS, Block, name, run_blocks

MINE = [b for b in BLOCKS if b.integration == Path(sys.prefix).name]
PAGES = sorted({b.page for b in MINE})


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_code_runs(page: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    chosen: list[Block] = [b for b in MINE if b.page == page]
    run_blocks(chosen, tmp_path, capsys)
