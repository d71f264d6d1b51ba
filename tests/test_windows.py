"""Which rules may write the rows of some agents after those of others (core/windows.py)."""

from __future__ import annotations

import pytest

from gpuzoo.core.tokens import Piece
from gpuzoo.core.windows import in_windows

ENTRIES = ("reset", "step", "observe")
#: what a helper of the rules below may be
SHOW = "GZ void show(Env e, int k, int b) { Row out = e.observation[b]; out[0] = e.x[k]; }"


def regions(observe, more="", step="", **options):
    """Which lines of the rules go through agents in windows; None where none may."""
    source = f"""{SHOW}
{more}
GZ void reset(Env e) {{ once(e, [=] {{ e.y = 0.f; }}); }}
GZ void step(Env e) {{ {step} }}
GZ void observe(Env e) {{
{observe}
}}"""
    pieces = in_windows([Piece("rules.cuh", 1, source)], ENTRIES, options)
    if pieces is None:
        return None
    (piece,) = pieces
    assert piece.source.replace("row_lanes(", "lanes(") == source
    return [number for number, line in enumerate(piece.source.split("\n")) if "row_lanes(" in line]


@pytest.mark.parametrize(("observe", "found"), [
    ("lanes(e, AGENTS, [=](int a) { e.observation[a][0] = 1.f; });", [5]),
    ("lanes(e, AGENTS, N, [=](int a, int k) { e.observation[a][k] = 1.f; e.action_mask[a][k] = 1; });", [5]),
    ("lanes(e, AGENTS, [=](int a) { e.x[a] = 1.f; });\nlanes(e, AGENTS, [=](int a) { show(e, 3, a); });", [6]),
    ("/* lanes(e, AGENTS */ lanes(e, AGENTS, [=](int a) { show(e, 3, a); });", [5]),
    ("if (FULL)\nlanes(e, AGENTS, [=](int a) { show(e, 3, a); });\n"
     "else\nlanes(e, AGENTS, [=](int a) { show(e, 2, a); });", [6, 8]),
    ("if (FULL) {\nlanes(e, AGENTS, [=](int a) { show(e, 3, a); });\nreturn;\n}\n"
     "lanes(e, AGENTS, [=](int a) { show(e, 2, a); });", [6, 9]),
])  # fmt: skip
def test_rules_that_may(observe, found):
    assert regions(observe) == found


@pytest.mark.parametrize("observe", [
    "lanes(e, AGENTS, [=](int a) { e.observation[a][0] = 1.f; });\nonce(e, [=] { e.observation[0][1] = 1.f; });",
    "lanes(e, AGENTS, [=](int a) { e.observation[0][a] = 1.f; });",
    "lanes(e, AGENTS, [=](int a) { e.observation[a + 1][0] = 1.f; });",
    "lanes(e, AGENTS, [=](int a) { show(e, a, 3); });",
    "lanes(e, AGENTS, [=](int a) { show(e, a, a); e.observation[0][0] = 1.f; });",
    "lanes(e, N, AGENTS, [=](int k, int a) { e.observation[a][k] = 1.f; });",
    "lanes(e, TAGGERS, [=](int a) { e.observation[a][0] = 1.f; });",
    "lanes(e, AGENTS, [=](int a) { auto rows = e.observation; rows[a][0] = 1.f; });",
    "for (int k = 0; k < 2; ++k) lanes(e, AGENTS, [=](int a) { e.observation[a][k] = 1.f; });",
    "if (FULL) lanes(e, AGENTS, [=](int a) { show(e, 3, a); });\nlanes(e, AGENTS, [=](int a) { show(e, 2, a); });",
    "if (FULL) lanes(e, AGENTS, [=](int a) { show(e, 3, a); });\n"
    "if (MORE) lanes(e, AGENTS, [=](int a) { show(e, 2, a); });",
    "lanes_smallest(e, AGENTS, AGENTS, K, [=](int a, int b) { return 1.f; },\n"
    "[=](int a, int k, int b) { show(e, b, a); });",
    "once(e, [=] { e.x[0] = 1.f; });",
])  # fmt: skip
def test_rules_that_may_not(observe):
    assert regions(observe) is None


@pytest.mark.parametrize(("more", "observe", "found"), [
    ("GZ void all(Env e) { lanes(e, AGENTS, [=](int a) { show(e, 3, a); }); }", "all(e);", [1]),
    ("GZ void all(Env e) { lanes(e, AGENTS, [=](int a) { show(e, 3, a); }); }", "all(e);\nall(e);", None),
    ("GZ Row row(Env e, int b) { return e.observation[b]; }",
     "lanes(e, AGENTS, [=](int a) { row(e, a)[0] = 1.f; });", [5]),
    ("GZ void both(Env e, int a, int b) { show(e, 0, a); show(e, 0, b); }",
     "lanes(e, AGENTS, [=](int a) { both(e, a, a); });", None),
    ("GZ void two(Env e, int b) { show(e, 0, b); }\nGZ void two(int b, Env e) { show(e, 0, b); }",
     "lanes(e, AGENTS, [=](int a) { two(e, a); });", None),
])  # fmt: skip
def test_helpers(more, observe, found):
    assert regions(observe, more) == found


@pytest.mark.parametrize(("observe", "found"), [
    ("if constexpr (Config::full)\nonce(e, [=] { e.observation[0][0] = 1.f; });\n"
     "else\nlanes(e, AGENTS, [=](int a) { show(e, 3, a); });", {True: None, False: [8]}),
    ("if (!e.cfg.full)\nonce(e, [=] { e.observation[0][0] = 1.f; });\n"
     "lanes(e, AGENTS, [=](int a) { show(e, 3, a); });", {True: [7], False: None}),
    ("lanes(e, AGENTS, [=](int a) { e.x[a] = 1.f; if (e.cfg.full) { e.observation[a][0] = 1.f; } });\n"
     "lanes(e, AGENTS, [=](int a) { if (!e.cfg.full) show(e, 3, 0); show(e, 3, a); });", {True: None, False: None}),
    ("lanes(e, AGENTS, [=](int a) { e.x[a] = 1.f; if (e.cfg.full) { e.observation[a][0] = 1.f; } });\n"
     "lanes(e, AGENTS, [=](int a) { if (e.cfg.full) show(e, 3, 0); show(e, 3, a); });", {True: None, False: [6]}),
])  # fmt: skip
def test_options(observe, found):
    for full, expected in found.items():
        assert regions(observe, full=full) == expected


def test_rows_belong_to_observe():
    rows = "lanes(e, AGENTS, [=](int a) { e.observation[a][0] = 1.f; });"
    assert regions(rows, step=rows) is None
