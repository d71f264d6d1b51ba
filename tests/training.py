"""What the tests of the trainers share: small runs, and toys whose targets, cues or waits are known."""

from __future__ import annotations

import functools
import importlib.util
import sys
import tempfile
from pathlib import Path
from typing import Any

import torch

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))
torch.set_num_threads(1)  # sums do not depend on how they are shared out, and tests beside each other do not wait

_folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)

_DEFINITION = '''
from gpuzoo.core.definition import EnvDef, Field
from gymnasium import spaces
import numpy as np

class {name}(EnvDef):
    """{doc}"""

    id = "{name}-v0"
    max_episode_steps = {limit}
    action_mask = {masked}
    exempt = {{"reference": "a toy of the tests"}}
{agents}
    def observation_space(self, cfg, group):
        return spaces.Box(-1, 100, ({observed},), np.float32)

    def action_space(self, cfg, group):
        return spaces.Discrete(2)

    def fields(self, cfg):
        return {fields}
'''

_RULES = {
    "Clock": """
GZ void reset(Env e) {}
GZ void step(Env e) {
  lanes(e, AGENTS, [=](int a) {
    e.reward[a] = (float)(e.t + 10 * a);
    if (a == 1 && e.t == 3) e.terminate(a);
  });
}
GZ void observe(Env e) {
  lanes(e, AGENTS, [=](int a) {
    e.observation[a][0] = (float)e.t;
    e.observation[a][1] = (float)a;
  });
}
""",
    "Cue": """
GZ void reset(Env e) {
  once(e, [=] { e.cue = random_int(e, 0, 2); });
}
GZ void step(Env e) {
  once(e, [=] {
    if (e.t < 4) return;
    e.reward = e.action == e.cue ? 1.f : 0.f;
    e.terminated = 1;
  });
}
GZ void observe(Env e) {
  once(e, [=] {
    e.observation[0] = e.t > 0 ? 0.f : e.cue ? 1.f : -1.f;
    e.observation[1] = (float)e.t;
  });
}
""",
    "Pause": """
GZ void reset(Env e) {}
GZ void step(Env e) {
  once(e, [=] { e.reward = (float)e.t; });
}
GZ void observe(Env e) {
  once(e, [=] {
    e.observation[0] = (float)e.t;
    for (int k = 0; k < 2; ++k) e.action_mask[k] = (i8)(e.t % 3 != 1);
  });
}
""",
}

_FORMS: dict[str, dict[str, Any]] = {
    "Clock": {"doc": "Rewards and deaths by the clock.", "limit": 5, "observed": 2,
              "agents": '\n    def agents(self, cfg):\n        return {"lasting": 1, "dying": 1}\n'},
    "Cue": {
        "doc": "What is shown first is asked for last.", "limit": 10, "observed": 2,
        "fields": '{"cue": Field("int32")}',
    },
    "Pause": {
        "doc": "Nothing can be done in the second of three steps.", "limit": 6, "observed": 1,
        "masked": True,
    },
}  # fmt: skip


@functools.cache
def toy(name: str) -> Any:
    """The class of a toy of this file."""
    path = Path(_folder.name) / f"toy_{name.lower()}.py"
    path.write_text(_DEFINITION.format(name=name, **{"masked": False, "fields": "{}", "agents": ""} | _FORMS[name]))
    path.with_suffix(".cuh").write_text(_RULES[name])
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[path.stem] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, name)


def small(game: Any, kind: Any = None, **values: Any) -> Any:
    """The arguments of a run of three iterations, with rewards as they are."""
    from baselines.ppo import Args

    chosen: dict[str, Any] = {"num_envs": 8, "num_steps": 16, "device": "cpu", "threads": 1, "normalize_rewards": False}
    chosen |= values
    return (kind or Args)(game, **{"total_steps": chosen["num_envs"] * chosen["num_steps"] * 3} | chosen)
