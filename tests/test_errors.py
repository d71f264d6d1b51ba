"""Each mistake gets one clear sentence, at once."""

# ruff: noqa: E501 (tables: one line per case)

from __future__ import annotations

import builtins
import dataclasses
import importlib.util
import warnings

import numpy as np
import pytest
from gymnasium import spaces
from toys.glide import Glide
from toys.herd import Herd
from toys.lamps import Lamps
from toys.screen import Screen

import gpuzoo
from gpuzoo import Config, EnvDef, Field, Simulator, VectorEnv, make_vec
from gpuzoo.core import backend_cpu
from gpuzoo.interfaces.single import SingleEnv


def make(env=Glide, num_envs=2, **kwargs):
    kwargs.setdefault("device", "cpu")
    return Simulator(env, num_envs, **kwargs)


def ready(env=Glide, num_envs=2, **kwargs):
    sim = make(env, num_envs, **kwargs)
    sim.reset(seed=0)
    return sim


CASES = {
    # names
    "unknown id": (lambda: gpuzoo.make("CartPol-v1"), ValueError, "there is no game 'CartPol-v1'; did you mean 'CartPole-v1'"),
    "unknown version": (lambda: gpuzoo.get("CartPole-v99"), ValueError, "there is no version 'CartPole-v99' of CartPole; use 'CartPole-v1'"),
    "an id for a declaration": (lambda: Simulator("CartPole-v1", device="cpu"), TypeError, "a game must be an EnvDef .* not 'CartPole-v1': gpuzoo.get gives"),
    "nothing like it": (lambda: gpuzoo.get("zzzzzzz"), ValueError, "there is no game 'zzzzzzz'; `gpuzoo list` shows all"),
    "no id": (lambda: gpuzoo.get(3), TypeError, "a game is given by its id or its EnvDef, not by 3"),
    "device": (lambda: make(device="tpu"), ValueError, "device must be 'cpu', 'cuda', 'cuda:<index>' or 'auto', not 'tpu'"),
    "mode": (lambda: make(autoreset_mode="later"), ValueError, "autoreset_mode must be .* not 'later'"),
    "render mode": (lambda: VectorEnv(Glide, 1, render_mode="human"), ValueError, "render_mode must be one of 'rgb_array', 'rgb_array_list' or None, not 'human'"),
    "render mode of one": (lambda: SingleEnv(Glide, render_mode="ascii"), ValueError, "render_mode must be one of 'rgb_array', 'human' or None"),
    "output": (lambda: VectorEnv(Glide, 1, device="cpu", output="jax"), ValueError, "output must be 'numpy', 'torch' or 'cupy', not 'jax'"),
    "cupy on the cpu": (lambda: VectorEnv(Glide, 1, device="cpu", output="cupy"), ValueError, "output='cupy' needs device='cuda'; on 'cpu' use 'numpy' or 'torch'"),
    "group": (lambda: VectorEnv(Herd, 2, group="sheeps"), ValueError, "Herd-v0 has no group or agent 'sheeps'; did you mean .*'sheep"),
    "opponents": (lambda: VectorEnv(Herd, 2, device="cpu", group="wolf", opponents="clever"), ValueError, "opponents must be 'random' or a function, not 'clever'"),
    "actions of opponents": (lambda: VectorEnv("SimpleSpread-v0", 2, device="cpu", group="agent_1", opponents=lambda *_: np.zeros((2, 1), int)).reset(), ValueError, r"actions of opponents must have shape \(2, 2\), not \(2, 1\)"),
    "several agents": (lambda: SingleEnv(Herd), ValueError, "Herd-v0 has several agents: take gpuzoo.parallel_env, gpuzoo.aec_env or pettingzoo.make"),
    "unknown group of actions": (lambda: _stepped({"wolves": np.zeros((2, 2), int)}), ValueError, "Herd-v0 has no group 'wolves'; did you mean 'wolf'"),
    # numbers
    "zero envs": (lambda: make(num_envs=0), ValueError, "num_envs must be at least 1, not 0"),
    "negative envs": (lambda: VectorEnv(Glide, -3), ValueError, "num_envs must be at least 1, not -3"),
    "too many envs": (lambda: make(num_envs=2**31), ValueError, "num_envs must be at most 1073741824, not 2147483648: make several"),
    "half an env": (lambda: make(num_envs=2.5), TypeError, "num_envs must be an int, not 2.5"),
    "true envs": (lambda: VectorEnv(Glide, True), TypeError, "num_envs must be an int, not True"),
    "no multiple": (lambda: VectorEnv(Herd, 12), ValueError, "Herd-v0 has 5 rows per env .* so num_envs must be a multiple of 5, not 12: take 10 or 15, or gpuzoo.make_vec"),
    "too few rows": (lambda: VectorEnv(Herd, 1), ValueError, "not 1: take 5, or"),
    "both numbers": (lambda: make_vec(Herd, 5, num_worlds=1), ValueError, "give either num_envs .* or num_worlds .* not both"),
    "limit": (lambda: make(max_episode_steps=0), ValueError, "max_episode_steps must be a positive int or None, not 0"),
    "limit of a half": (lambda: make(max_episode_steps=1.5), ValueError, "max_episode_steps must be a positive int or None, not 1.5"),
    "threads": (lambda: make(threads=0), ValueError, "threads must be at least 1, not 0"),
    "lanes": (lambda: make(lanes=3), ValueError, "Glide-v0: lanes must be a power of two from 1 to 1024, not 3"),
    # configuration
    "unknown parameter": (lambda: make(winds=1.0), TypeError, "Glide-v0 has no parameter 'winds'; did you mean 'wind'"),
    "unknown parameter of a vector env": (lambda: VectorEnv(Glide, 1, device="cpu", winds=1.0), TypeError, "Glide-v0 has no parameter 'winds'; did you mean 'wind'"),
    "text for a number": (lambda: make(wind="strong"), TypeError, "Glide-v0: wind must be a float, not 'strong'"),
    "float for an int": (lambda: make(past=3.5), TypeError, "Glide-v0: past must be an int, not 3.5"),
    "int for a bool": (lambda: make(Herd, ring=1), TypeError, "Herd-v0: ring must be a bool, not 1"),
    "bool for a float": (lambda: make(wind=True), TypeError, "Glide-v0: wind must be a float, not True"),
    "too low": (lambda: make(past=1), ValueError, "Glide-v0: past must be at least 2 and at most 64, not 1"),
    "too high": (lambda: make(wind=1.5), ValueError, "Glide-v0: wind must be at least 0.0 and at most 1.0, not 1.5"),
    "not a number": (lambda: make(wind=float("nan")), ValueError, "Glide-v0: wind must be at least 0.0 and at most 1.0, not nan"),
    "literal": (lambda: make(Herd, mood="angry"), ValueError, "Herd-v0: mood must be one of 'calm', 'wild', not 'angry'"),
    "per env, wrong length": (lambda: make(wind=[0.1, 0.2, 0.3]), ValueError, r"Glide-v0: wind given per env must have shape \(2,\), not \(3,\)"),
    "per env, out of range": (lambda: make(wind=[0.1, 7.0]), ValueError, "Glide-v0: wind must be at least 0.0 and at most 1.0, not 7.0"),
    "an array for a constant": (lambda: make(past=[3, 4]), TypeError, "Glide-v0: past must be an int"),
    "set a constant": (lambda: make().set_params(past=4), TypeError, "Glide-v0: past is compiled into the kernel: make a new env"),
    "set nothing known": (lambda: make().set_params(wid=4.0), TypeError, "Glide-v0 has no parameter 'wid'; did you mean 'wind'"),
    "set a shared one per env": (lambda: make().set_params(wind=[0.1, 0.2]), ValueError, "Glide-v0: wind is shared by all envs: give an array of length 2"),
    "set a shared one for some": (lambda: make().set_params([0], wind=0.1), ValueError, "wind is shared by all envs"),
    "set out of range": (lambda: make().set_params(wind=2.0), ValueError, "wind must be at least 0.0 and at most 1.0, not 2.0"),
    # seeds and masks
    "negative seed": (lambda: make().reset(seed=-1), ValueError, "seed must not be negative: -1"),
    "text as seed": (lambda: make().reset(seed="7"), TypeError, "seed must be an int, a sequence of 2 ints, or None, not '7'"),
    "float as seed": (lambda: make().reset(seed=1.5), TypeError, "seed must be an int, a sequence of 2 ints, or None, not 1.5"),
    "too many seeds": (lambda: make().reset(seed=[1, 2, 3]), ValueError, "2 envs need as many seeds, not 3"),
    "negative among seeds": (lambda: make().reset(seed=[1, -2]), ValueError, "seed must not be negative: -2"),
    "mask of ints": (lambda: ready().reset(mask=np.array([1, 0])), TypeError, r"reset mask must be a bool array of shape \(2,\), not int64"),
    "mask as list": (lambda: ready().reset(mask=[True, False]), TypeError, r"reset mask must be a bool array of shape \(2,\), not list"),
    "mask too long": (lambda: ready().reset(mask=np.ones(3, bool)), ValueError, r"reset mask must have shape \(2,\), not \(3,\)"),
    "mask without True": (lambda: ready().reset(mask=np.zeros(2, bool)), ValueError, "reset mask must select at least one env"),
    "option of ints": (lambda: _vector().reset(options={"reset_mask": np.array([1, 0])}), TypeError, r"options\['reset_mask'\] must be a bool array of shape \(2,\), not int64"),
    "option as list": (lambda: _vector().reset(options={"reset_mask": [True, False]}), TypeError, r"options\['reset_mask'\] must be a bool array .* not list"),
    "option too long": (lambda: _vector().reset(options={"reset_mask": np.ones(3, bool)}), ValueError, r"options\['reset_mask'\] must have shape \(2,\), for 2 envs, not \(3,\)"),
    "option without True": (lambda: _vector().reset(options={"reset_mask": np.zeros(2, bool)}), ValueError, r"options\['reset_mask'\] must select at least one env"),
    "first reset of some": (lambda: make().reset(seed=0, mask=np.array([True, False])), RuntimeError, "Glide-v0: the first reset must be of all envs"),
    # order
    "step before reset": (lambda: make().step(), RuntimeError, r"Glide-v0: call reset\(\) before step\(\)"),
    "vector step before reset": (lambda: VectorEnv(Glide, 1, device="cpu").step(np.zeros((1, 2))), RuntimeError, r"call reset\(\) before step\(\)"),
    "rollout before reset": (lambda: make().rollout(3), RuntimeError, r"Glide-v0: call reset\(\) before rollout\(\)"),
    "random actions before reset": (lambda: make().random_actions(), RuntimeError, r"Glide-v0: call reset\(\) before random_actions\(\)"),
    "step after close": (lambda: _closed().step(), RuntimeError, "Glide-v0: this env was closed; make a new one"),
    "reset after close": (lambda: _closed().reset(), RuntimeError, "this env was closed"),
    "rollout after close": (lambda: _closed().rollout(1), RuntimeError, "this env was closed"),
    "state after close": (lambda: _closed().state(), RuntimeError, "this env was closed"),
    "snapshot after close": (lambda: _closed().snapshot(), RuntimeError, "this env was closed"),
    "vector step after close": (lambda: _closed_vector().step(np.zeros((2, 2))), RuntimeError, "this env was closed"),
    "vector reset after close": (lambda: _closed_vector().reset(), RuntimeError, "this env was closed"),
    # actions
    "action shape": (lambda: _vector().step(np.zeros((3, 2))), ValueError, r"actions of 2 envs must have shape \(2, 2\), not \(3, 2\)"),
    "action of one": (lambda: _vector().step(0), ValueError, r"actions of 2 envs must have shape \(2, 2\), not \(\)"),
    "text actions": (lambda: _vector().step(np.full((2, 2), "x")), TypeError, "actions of 2 envs must be numbers in Box"),
    "float for discrete": (lambda: _vector("CartPole-v1").step(np.zeros(2)), TypeError, r"actions of 2 envs must be integers in Discrete\(2\), not float64"),
    "bool for discrete": (lambda: _vector("CartPole-v1").step(np.zeros(2, bool)), TypeError, "must be integers"),
    "column for discrete": (lambda: _vector("CartPole-v1").step(np.zeros((2, 1), int)), ValueError, r"must have shape \(2,\), not \(2, 1\)"),
    "group shape": (lambda: _stepped({"wolf": np.zeros((2, 3), int)}), ValueError, r"actions of group 'wolf' must have shape \(2, 2\), not \(2, 3\)"),
    "all agents' shape": (lambda: _stepped(np.zeros((2, 3), int)), ValueError, r"actions of all agents must have shape \(2, 5\), not \(2, 3\)"),
    "policy": (lambda: ready().rollout(1, policy="best"), ValueError, "rollout has the policy 'random' only, not 'best'"),
    "negative rollout": (lambda: ready().rollout(-1), ValueError, "steps must not be negative: -1"),
    # state
    "no field": (lambda: ready().set_state({"pathh": 0}), KeyError, "Glide-v0 has no field 'pathh'; did you mean 'path'"),
    "field shape": (lambda: ready().set_state({"speed": np.zeros((2, 3))}), ValueError, r"Glide-v0: speed must have shape \(2, 2\), not \(2, 3\)"),
    "env index": (lambda: ready().state(2), IndexError, r"env indices must be below 2, not 2\.\.2"),
    "env index of floats": (lambda: ready().state([0.5]), TypeError, "envs must be an index, a sequence of indices, or a bool mask"),
    "env mask": (lambda: ready().state(np.ones(3, bool)), ValueError, r"a mask of envs must have shape \(2,\), not \(3,\)"),
    "snapshot of another game": (lambda: make(Lamps).restore(ready().snapshot()), ValueError, "this is a snapshot of Glide-v0 with .* which does not fit Lamps-v0"),
    "snapshot of another configuration": (lambda: make(past=4).restore(ready().snapshot()), ValueError, "snapshot of Glide-v0 with {'past': 3}, which does not fit Glide-v0 with {'past': 4}"),
    "snapshot of another size": (lambda: ready(num_envs=3).restore(ready().snapshot()), ValueError, "the snapshot has 2 envs, but 3 are to be overwritten"),
    "snapshot of another parameter": (lambda: ready(wind=0.5).restore(ready().snapshot()), ValueError, "Glide-v0: the snapshot has another wind, which this batch shares"),
    "half a first restore": (lambda: make(num_envs=3).restore(ready(num_envs=1).snapshot(), [0]), RuntimeError, r"call reset\(\) before"),
}  # fmt: skip


def _vector(env=Glide):
    vector = VectorEnv(env, 2, device="cpu")
    vector.reset(seed=0)
    return vector


def _stepped(actions):
    env = gpuzoo.make(Herd, 2, device="cpu")
    env.reset(seed=0)
    env.step(actions)


def _closed():
    sim = ready()
    sim.close()
    sim.close()
    return sim


def _closed_vector():
    vector = _vector()
    vector.close()
    return vector


@pytest.mark.parametrize("case", CASES)
def test_message(case):
    call, kind, message = CASES[case]
    with pytest.raises(kind, match=message) as found:
        call()
    assert type(found.value) is kind
    assert str(found.value).count("\n") == 0


# ---- machines that lack something ----


def without(monkeypatch, *modules):
    real_import, real_find = builtins.__import__, importlib.util.find_spec

    def blocked_import(name, *args, **kwargs):
        if name.split(".")[0] in modules:
            raise ImportError(f"No module named {name!r}", name=name)
        return real_import(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", blocked_import)
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda n, *a: None if n.split(".")[0] in modules else real_find(n, *a)
    )


def test_cuda_without_cupy(monkeypatch):
    without(monkeypatch, "cupy")
    with pytest.raises(
        ImportError, match=r"device='cuda' needs CuPy: pip install 'gpuzoo\[cuda13\]', or 'gpuzoo\[cuda12\]'"
    ):
        make(device="cuda")
    assert make(device="auto").device == "cpu"


def test_cuda_without_gpu(monkeypatch):
    import sys
    import types

    class CudaRuntimeError(Exception):
        pass

    def count():
        raise CudaRuntimeError("cudaErrorNoDevice: no CUDA-capable device is detected")

    cupy = types.ModuleType("cupy")
    cupy.__spec__ = importlib.util.spec_from_loader("cupy", None)
    cupy.cuda = types.SimpleNamespace(runtime=types.SimpleNamespace(getDeviceCount=count))
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    with pytest.raises(
        RuntimeError, match=r"device='cuda': CuPy finds no usable GPU \(.*no CUDA-capable.*\); use device='cpu'"
    ):
        make(device="cuda")
    assert make(device="auto").device == "cpu"
    cupy.cuda.runtime.getDeviceCount = lambda: 1
    with pytest.raises(RuntimeError, match="device='cuda:1': there are 1 GPUs, numbered from 0"):
        make(device="cuda:1")


def test_no_compiler(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("GPUZOO_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("CXX", raising=False)
    without(monkeypatch, "ziglang")
    with pytest.raises(
        RuntimeError, match=r"needs a C\+\+ compiler and none was found: pip install 'gpuzoo\[cpu\]' brings one"
    ):
        make()


def test_a_compiler_that_does_not_exist(monkeypatch):
    monkeypatch.setenv("CXX", "/nowhere/c++")
    with pytest.raises(RuntimeError, match=r"The C\+\+ compiler '/nowhere/c\+\+' was not found: check CXX"):
        make()


def test_a_compiler_that_cannot_be_started(monkeypatch, tmp_path):
    path = tmp_path / "c++"
    path.write_bytes(b"\0 no program")
    path.chmod(0o755)
    monkeypatch.setenv("CXX", str(path))
    monkeypatch.setenv("GPUZOO_CACHE_DIR", str(tmp_path / "cache"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # one about the cache would be wrong
        with pytest.raises(RuntimeError, match=r"compiler '.*c\+\+' cannot be started .*: check CXX"):
            make()


def test_ziglang_is_found_when_there_is_no_other(monkeypatch, tmp_path):
    pytest.importorskip("ziglang")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    assert backend_cpu.find_compiler()[1:3] == ["-m", "ziglang"]


def test_no_torch(monkeypatch):
    without(monkeypatch, "torch")
    env = VectorEnv(Glide, 1, device="cpu", output="torch")
    with pytest.raises(ImportError, match=r"torch tensors need PyTorch: pip install 'gpuzoo\[torch\]'"):
        env.reset()


# ---- declarations ----


def declared(**parts):
    parts = {
        "id": "Toy-v0",
        "exempt": {"reference": "a toy"},
        "source": classmethod(lambda cls: Glide.source()),
        "observation_space": lambda self, cfg, group: spaces.Box(-1, 1, (2,), np.float32),
        "action_space": lambda self, cfg, group: spaces.Discrete(2),
        "fields": lambda self, cfg: {"x": Field("float32")},
    } | parts
    return type("Toy", (EnvDef,), parts)


@dataclasses.dataclass(frozen=True)
class OddConfig(Config):
    names: list = dataclasses.field(default=())


DECLARATIONS = {
    "id": ({"id": "toy"}, "Toy.id must look like 'Name-v0', not 'toy'"),
    "no reference": ({"exempt": {}}, "Toy must name its reference, or say in `exempt` why it has none"),
    "config": ({"Config": dict}, "Toy.Config must be a frozen dataclass derived from gpuzoo.Config"),
    "no rules": ({"source": classmethod(lambda cls: __import__("pathlib").Path("/nowhere/toy.cuh"))}, "Toy: the rules are missing: no file /nowhere/toy.cuh"),
    "group name": ({"agents": lambda self, cfg: {"Wolf": 1}}, "Toy: group 'Wolf' with 1 agents: want a lower-case name and at least one"),
    "empty group": ({"agents": lambda self, cfg: {"wolf": 0}}, "group 'wolf' with 0 agents"),
    "dict observation": ({"observation_space": lambda self, cfg, group: spaces.Dict({})}, "Toy: observations must be Box, Discrete or MultiDiscrete"),
    "double observation": ({"observation_space": lambda self, cfg, group: spaces.Box(0, 1, (2,), np.float64)}, "Toy: all observations must share one dtype of float32, "),
    "tuple action": ({"action_space": lambda self, cfg, group: spaces.Tuple([])}, "Toy: actions must be Discrete, MultiDiscrete or Box"),
    "unbounded action": ({"action_space": lambda self, cfg, group: spaces.Box(-np.inf, 1, (2,))}, "Toy: a Box action space must be bounded"),
    "shifted action": ({"action_space": lambda self, cfg, group: spaces.Discrete(2, start=1)}, "Toy: a Discrete action space must start at 0"),
    "mixed actions": (
        {
            "agents": lambda self, cfg: {"a": 1, "b": 1},
            "action_space": lambda self, cfg, group: spaces.Discrete(2) if group == "a" else spaces.Box(0, 1, (1,)),
        },
        "Toy: the actions of all groups must be discrete, or those of all groups continuous",
    ),
    "masked floats": ({"action_mask": True, "action_space": lambda self, cfg, group: spaces.Box(0, 1, (1,))}, "Toy: action masks need discrete actions"),
    "cells without a board": ({"action_cells": lambda self, cfg, group: ([0, 1], 0)}, "Toy: action_cells are for observations .rows, columns. or .rows, columns, channels. and Discrete actions, not for "),
    **{
        f"cells {cells} of kind {kind}": (
            {
                "observation_space": lambda self, cfg, group: spaces.Box(-1, 1, (1, 2, 1), np.float32),
                "action_cells": lambda self, cfg, group, given=(cells, kind): given,
            },
            "Toy: action_cells must give each of the 2 actions one of the 2 cells, or -1, and no two actions the same cell and kind",
        )
        for cells, kind in (([0], 0), ([0, 2], 0), ([1, 1], 0), ([0, 1], -1))
    },
    "field name": ({"fields": lambda self, cfg: {"X": Field("float32")}}, "Toy: field name 'X' must be lower-case"),
    "field size": ({"fields": lambda self, cfg: {"x": Field("float32", ("agentz",))}}, "Toy: field x has no size 'agentz'; did you mean 'agents'"),
}  # fmt: skip


@pytest.mark.parametrize("case", DECLARATIONS)
def test_declaration(case):
    parts, message = DECLARATIONS[case]
    with pytest.raises(ValueError, match=message):
        make(declared(**parts))


def test_more_declarations():
    with pytest.raises(ValueError, match="Field dtype 'float64' is not supported: use one of float32, "):
        Field("float64")
    with pytest.raises(TypeError, match="a Config holds int, bool, float and strings"):
        make(declared(Config=OddConfig), names=[1])
    with pytest.raises(ValueError, match="the name of the constant 'rows' must be upper-case"):
        make(declared(constants=lambda self, cfg: {"rows": 3}))
    with pytest.raises(ValueError, match="the constant ROWS must be a 32-bit integer, not 2147483648"):
        make(declared(constants=lambda self, cfg: {"ROWS": 2**31}))
    with pytest.raises(ValueError, match="the engine has a name WIDTH of its own: call the constant otherwise"):
        make(declared(constants=lambda self, cfg: {"WIDTH": 3}))
    with pytest.raises(TypeError, match="Screen-v0: picture must be a str, not 3"):
        make(Screen, picture=3)
    with pytest.raises(NotImplementedError, match=r"Toy must define fields\(cfg\)"):
        make(declared(fields=EnvDef.fields))


@pytest.mark.parametrize("line", ["constexpr float WARP = 0.5f;", "enum Way {\n  CHUNK, OTHER };"])
def test_rules_with_a_constant_of_the_engine(line, tmp_path):
    """A CPU's unit may lack it, so that only a GPU's compiler would complain."""
    rules = tmp_path / "named.cuh"
    rules.write_text(f"// two lines\n\n{line}\n{Glide.source().read_text()}")
    game = type("Named", (Glide,), {"source": classmethod(lambda cls: rules)})
    name = "CHUNK" if "CHUNK" in line else "WARP"
    with pytest.raises(ValueError, match=rf"named\.cuh:3: the engine has a name {name} of its own: choose another one"):
        make(game)


def test_rules_with_a_local_constant_of_any_name(tmp_path):
    text, begin = Glide.source().read_text(), "GZ void step(Env e) {"
    assert begin in text
    rules = tmp_path / "named.cuh"
    rules.write_text(text.replace(begin, f"{begin}\n  constexpr float WARP = 0.5f;\n  (void)WARP;"))
    make(type("Named", (Glide,), {"source": classmethod(lambda cls: rules)}))


def test_an_id_is_taken():
    with pytest.raises(ValueError, match="the id 'CartPole-v1' is taken by CartPole: choose another name or version"):
        gpuzoo.register(declared(id="CartPole-v1"))
