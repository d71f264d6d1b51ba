"""Games with one fault each, for the checks to find."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

from gpuzoo.core.definition import EnvDef

_DECLARATION = '''
import dataclasses
import numpy as np
from gymnasium import spaces
from gpuzoo.core.definition import Config, EnvDef, Field, param

@dataclasses.dataclass(frozen=True)
class FaultyConfig(Config):
    gain: float = param(1.0, low=0.0)

class Faulty(EnvDef):
    """A game with a fault."""

    id = "Faulty-v0"
    Config = FaultyConfig
    exempt = {"reference": "a toy of the tests"}
    action_mask = {mask}

    def agents(self, cfg):
        return {"one": 4}

    def lanes(self, cfg):
        return 4

    def observation_space(self, cfg, group):
        return spaces.Box(-1e6, 1e6, (2,), np.float32)

    def state_space(self, cfg):
        return spaces.Box(0, 0, (4,), np.float32) if {state} else None

    def action_space(self, cfg, group):
        return spaces.Discrete(3)

    def fields(self, cfg):
        return {
            "x": Field("float32", ("agents",)),
            "old": Field("float32", ("agents",)),
            "note": Field("float32", ("agents",), scratch=True),
            "mark": Field("int32", scratch=True),
        }

    def tables(self, cfg):
        return {"gains": np.full(2, cfg.gain, np.float32)}
'''

_RULES = """
GZ void reset(Env e) {{
  lanes(e, AGENTS, [=](int a) {{
    e.x[a] = uniform(e, a, 0, -1.f, 1.f);
    {reset}
  }});
}}
GZ void step(Env e) {{
  lanes(e, AGENTS, [=](int a) {{
    {step}
  }});
}}
GZ void observe(Env e) {{
  lanes(e, AGENTS, [=](int a) {{
    {observe}
    {mask}
  }});
}}
{state}
"""

_MOVE = "e.x[a] += e.cfg.gain * (float)(e.action[a] - 1); e.old[a] = e.x[a]; e.reward[a] = e.x[a];"
_SEE = "e.observation[a][0] = e.x[a]; e.observation[a][1] = e.old[a];"
_MASK = "for (int k = 0; k < 3; ++k) e.action_mask[a][k] = k != 2 || e.x[a] < 1.f;"

#: what is wrong -> (the check that finds it, parts of the rules)
FAULTS: dict[str, tuple[str, dict[str, str]]] = {
    "out of space": ("spaces", {"observe": "e.observation[a][0] = 2e6f; e.observation[a][1] = 0.f;"}),
    "nan": ("spaces", {"observe": _SEE + "if (e.t == 3) e.observation[a][0] = 0.f * infinity();"}),
    "no legal action": ("legal_actions", {"mask": "for (int k = 0; k < 3; ++k) e.action_mask[a][k] = 0;"}),
    "a field is not reset": ("reset_writes_all", {"reset": "", "step": "e.old[a] += 1.f;"}),
    "an observation is not written": ("observe_writes_all", {"observe": "e.observation[a][0] = e.x[a];"}),
    "a dead agent's is not written": (
        "observe_writes_all",
        {"step": _MOVE + "if (e.t == 2 + a) e.terminate(a);", "observe": f"if (e.alive[a]) {{ {_SEE} }}"},
    ),
    "an action is observed": ("observe_again", {"observe": _SEE + "e.observation[a][1] = (float)e.action[a];"}),
    "observing changes the state": ("observe_again", {"observe": _SEE + "e.x[a] += 0.5f;"}),
    "a mask is not written": ("observe_writes_all", {"mask": "e.action_mask[a][0] = 1; e.action_mask[a][1] = 0;"}),
    "lanes read what others write": (
        "lane_order",
        {"step": "e.x[a] = e.x[(a + 1) % 4] + (float)e.action[a]; e.old[a] = 0.f;"},
    ),
    "a state out of its space": ("global_state", {"state": "e.state[a] = (float)(e.t < 9);"}),
    "a state not written": ("global_state", {"state": "if (a < 3) e.state[a] = 0.f;"}),
    "a state of what a step leaves in scratch": (
        "lane_order",
        {"step": _MOVE + "e.note[a] = 0.f;", "state": "e.state[a] = e.note[a];"},
    ),
    "scratch is remembered": (
        "lane_order",
        {"step": _MOVE + "e.note[a] = e.x[a];", "observe": _SEE + "e.x[a] += e.note[a];"},
    ),
    "scratch is read first": ("lane_order", {"step": _MOVE + "e.x[a] += (float)(e.mark & 3);"}),
    "an index out of range": ("indices", {"step": _MOVE + "if (e.t == 5) e.old[a + 1] = 0.f;"}),
    "a run-time parameter in a table": ("parameters", {"step": _MOVE + "e.x[a] += e.gains[0];"}),
}


def make(fault: str, folder: Path) -> tuple[str, type[EnvDef]]:
    """The check that finds a fault, and a game that has it."""
    check, parts = FAULTS[fault]
    mask = "mask" in parts
    rules = {"reset": "e.old[a] = 0.f;", "step": _MOVE, "observe": _SEE, "mask": _MASK if mask else "", "state": ""}
    rules |= parts
    if rules["state"]:
        rules["state"] = f"GZ void state(Env e) {{ lanes(e, AGENTS, [=](int a) {{ {rules['state']} }}); }}"
    (folder / "faulty.cuh").write_text(_RULES.format(**rules))
    text = _DECLARATION.replace("{mask}", str(mask)).replace("{state}", str("state" in parts))
    (folder / "faulty.py").write_text(text)
    spec = importlib.util.spec_from_file_location(f"faulty_{len(sys.modules)}", folder / "faulty.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return check, module.Faulty
