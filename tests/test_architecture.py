"""Who may import whom, and what `import gpuzoo` brings along."""

from __future__ import annotations

import ast
import graphlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "gpuzoo"

#: layer -> the parts of gpuzoo that it may import; a module is in the layer of its longest name here
ADAPTED = {
    "gpuzoo.core",
    "gpuzoo.registry",
    "gpuzoo.interfaces.arrays",
    "gpuzoo.interfaces.turns",
    "gpuzoo.interfaces.global_state",
    "gpuzoo.interfaces.infos",
    "gpuzoo.interfaces.interface",
    "gpuzoo.interfaces.spaces",
    "gpuzoo.tensors",
}
MAY = {
    "gpuzoo.core": {"gpuzoo.core"},
    "gpuzoo.render": {"gpuzoo.render"},
    "gpuzoo.physics": {"gpuzoo.physics"},
    "gpuzoo.envs": {
        "gpuzoo.core.assets",
        "gpuzoo.core.definition",
        "gpuzoo.core.dialect",  # rules of one game within those of another
        "gpuzoo.core.host",  # experts see arrays and tensors
        "gpuzoo.core.layout",
        "gpuzoo.core.suggestions",
        "gpuzoo.core.values",
        "gpuzoo.envs",
        "gpuzoo.physics",
        "gpuzoo.render",
    },
    "gpuzoo.registry": {"gpuzoo.core", "gpuzoo.envs"},
    "gpuzoo.search": {"gpuzoo.core", "gpuzoo.registry", "gpuzoo.search", "gpuzoo.tensors"},
    "gpuzoo.interfaces.global_state": {"gpuzoo.core"},
    "gpuzoo.interfaces.infos": {"gpuzoo.core", "gpuzoo.interfaces.arrays"},
    "gpuzoo.interfaces.signatures": set(),
    "gpuzoo.interfaces.spaces": {"gpuzoo.core"},
    "gpuzoo.tensors": {"gpuzoo.core"},
    "gpuzoo.interfaces.arrays": {"gpuzoo.core", "gpuzoo.tensors"},
    "gpuzoo.interfaces.turns": {"gpuzoo.core", "gpuzoo.tensors"},
    "gpuzoo.interfaces.interface": {"gpuzoo.core", "gpuzoo.notebook"},  # which is asked by notebooks alone
    "gpuzoo.interfaces.attributes": {"gpuzoo.core", "gpuzoo.interfaces.interface"},
    "gpuzoo.interfaces.batch": ADAPTED | {"gpuzoo.render"},
    "gpuzoo.notebook": {
        "gpuzoo.core",
        "gpuzoo.registry",
        "gpuzoo.interfaces.batch",
        "gpuzoo.render",
        "gpuzoo.tools.live",
        "gpuzoo.trajectory",
    },
    "gpuzoo.trajectory": {"gpuzoo.core", "gpuzoo.registry", "gpuzoo.interfaces.batch", "gpuzoo.render"},
    "gpuzoo.interfaces.single": ADAPTED | {"gpuzoo.interfaces.batch", "gpuzoo.render"},
    "gpuzoo.interfaces.opponents": ADAPTED,
    "gpuzoo.interfaces.vector": ADAPTED
    | {f"gpuzoo.interfaces.{name}" for name in ("attributes", "batch", "opponents", "rows", "signatures")},
    "gpuzoo.interfaces.dm": {"gpuzoo.core"},
    "gpuzoo.interfaces.make_pool": {"gpuzoo.core", "gpuzoo.interfaces.dm", "gpuzoo.interfaces.pool"},
    "gpuzoo.interfaces.pool_arguments": {"gpuzoo.core"},
    "gpuzoo.interfaces.rows": {"gpuzoo.core"},
    "gpuzoo.interfaces.pool": ADAPTED
    | {f"gpuzoo.interfaces.{name}" for name in ("attributes", "batch", "pool_arguments")}
    | {"gpuzoo.jax"},
    "gpuzoo.interfaces.parallel": ADAPTED
    | {"gpuzoo.interfaces.batch", "gpuzoo.interfaces.signatures", "gpuzoo.render"},
    "gpuzoo.jax": {
        "gpuzoo.core",
        "gpuzoo.registry",
        "gpuzoo.interfaces.spaces",
        "gpuzoo.interfaces.turns",
        "gpuzoo.jax",
    },
    "gpuzoo.interfaces.aec": {
        "gpuzoo.core",
        "gpuzoo.registry",
        "gpuzoo.interfaces.parallel",
        "gpuzoo.interfaces.signatures",
    },
}
#: foreign package -> the only modules that may import it
ONLY = {
    "cupy": {"gpuzoo.core.backend_cuda", "gpuzoo.tensors"},
    "torch": {"gpuzoo.core.backend_cuda", "gpuzoo.search", "gpuzoo.tensors", "gpuzoo.wrappers"},
    "mujoco": {"gpuzoo.physics.mjcf", "gpuzoo.envs.mujoco.renderer"},
    "dm_env": {"gpuzoo.interfaces.dm"},
    "jax": {"gpuzoo.jax"},
    "gymnax": {"gpuzoo.jax"},
    "pettingzoo": {"gpuzoo.interfaces.aec", "gpuzoo.interfaces.parallel", "gpuzoo.registry"},
    "agilerl": {"gpuzoo.wrappers.agilerl"},
    "rl_games": {"gpuzoo.wrappers.rl_games"},
    "skrl": {"gpuzoo.wrappers.skrl"},
    "stable_baselines3": {"gpuzoo.wrappers.sb3"},
    "ray": {"gpuzoo.wrappers.rllib"},
    "tianshou": {"gpuzoo.wrappers.tianshou"},
    "torchrl": {"gpuzoo.wrappers.torchrl", "gpuzoo.wrappers.benchmarl"},
    "tensordict": {"gpuzoo.wrappers.torchrl"},
    "benchmarl": {"gpuzoo.wrappers.benchmarl"},
    "pygame": {"gpuzoo.render.window"},
    "PIL": {"gpuzoo.notebook", "gpuzoo.render"},
}
#: the same for the trainers
TRAINERS_ONLY = {
    "matplotlib": {"baselines.report.plots", "baselines.demo"},
    "safetensors": {"baselines.report.checkpoint"},
    "tensorboard": {"baselines.report.log"},
    "wandb": {"baselines.report.log"},
}
#: the modules that may import the trainers, whose policies play
USERS_OF_TRAINERS = (
    "gpuzoo.tools.commands.play",
    "gpuzoo.tools.commands.train",
    "gpuzoo.tools.live",
    "gpuzoo.tools.searching",
)
TOOLS = ("gpuzoo.tools", "gpuzoo.testing", "gpuzoo.__main__")


def module_of(path: Path) -> str:
    parts = list(path.relative_to(ROOT).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(path: Path) -> list[tuple[str, int, bool]]:
    """(module, line, whether for types only) of each import of a file."""
    tree = ast.parse(path.read_text())
    typing_only = {
        id(node)
        for block in ast.walk(tree)
        if isinstance(block, ast.If) and "TYPE_CHECKING" in ast.dump(block.test)
        for node in ast.walk(block)
    }
    out = []
    for node in ast.walk(tree):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:  # only the trainers, which have two names in a clone
                assert within(module_of(path), "baselines"), f"{path}:{node.lineno}: a relative import"
                here = path.relative_to(ROOT).parts[: -node.level]
                base = ".".join([*here, *([base] if base else [])])
            whole = [f"{base}.{alias.name}" for alias in node.names]
            files = [(ROOT / name.replace(".", "/")).with_suffix(".py") for name in whole]
            names = [name if file.is_file() else base for name, file in zip(whole, files, strict=True)]
        out += [(name, node.lineno, id(node) in typing_only) for name in names]
    return out


def within(name: str, part: str) -> bool:
    return name == part or name.startswith(part + ".")


FILES = sorted(p for p in PACKAGE.rglob("*.py") if not {"templates", "baselines"} & {*p.parts})
TRAINERS = sorted((ROOT / "baselines").rglob("*.py"))


@pytest.mark.parametrize("path", FILES, ids=module_of)
def test_imports_follow_the_layers(path):
    module = module_of(path)
    layers = [layer for layer in MAY if within(module, layer)]
    for name, line, typing_only in imports(path):
        where = f"{path}:{line}: {module} imports {name}"
        top = name.split(".")[0]
        assert top != "baselines", where  # a wheel has them as gpuzoo.baselines only
        assert not within(name, "gpuzoo.baselines") or module in USERS_OF_TRAINERS, where
        if top in ONLY and not typing_only and not any(within(module, tool) for tool in TOOLS):
            assert any(within(module, part) for part in ONLY[top]), where
        if top != "gpuzoo" or not layers or typing_only:
            continue
        if path.name == "__init__.py" and module == "gpuzoo.envs":
            continue  # PettingZoo's habit: the games as modules, looked up when asked for
        assert any(within(name, part) for part in MAY[max(layers, key=len)]), where


def test_every_module_has_its_layer():
    """A new module at the top or among the interfaces needs a line in MAY."""
    known = {*MAY, "gpuzoo", "gpuzoo.__main__", "gpuzoo.interfaces", "gpuzoo.wrappers"}
    rooms = [*PACKAGE.glob("*.py"), *(PACKAGE / "interfaces").glob("*.py")]
    assert {module_of(p) for p in rooms} <= known


def test_trainers_import_each_other_in_one_direction():
    found = {module_of(p): {name for name, _, typing_only in imports(p) if not typing_only} for p in TRAINERS}
    graph = {module: {x for x in names if x in found and x != module} for module, names in found.items()}
    assert [*graphlib.TopologicalSorter(graph).static_order()]
    assert {m for m, names in graph.items() if "baselines.ppo" in names} <= {"baselines.demo"}
    for module, names in found.items():
        for name in names:
            assert not within(name, "gpuzoo.envs"), f"{module} knows a game: {name}"
            known = TRAINERS_ONLY.get(name.split(".")[0], {module})
            assert module in known, f"{module} imports {name}"


def test_the_plain_path_does_not_know_the_fast_one():
    """Whoever deletes ``baselines/fast`` has trainers that work: one module imports it, and copes without."""
    for path in TRAINERS:
        module = module_of(path)
        if not within(module, "baselines.fast") and module != "baselines.executors":
            assert not [name for name, *_ in imports(path) if within(name, "baselines.fast")], module


WITHOUT_FAST = """
import os, sys, tempfile

class Refuse:
    def find_spec(self, name, *rest):
        if name.startswith(("baselines.fast", "gpuzoo.baselines.fast")):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Refuse())
sys.path.insert(0, os.getcwd())

from baselines import a2c, ppo, run
from baselines.run import train

run.Run.draw = lambda self: None
with tempfile.TemporaryDirectory() as folder:
    common = {"num_envs": 4, "num_steps": 16, "device": "cpu", "threads": 1}
    for kind, options, more in (
        (ppo.PPO, ppo.Args, {"population": 2, "out": folder}),
        (ppo.PPO, ppo.Args, {"population": 2, "out": folder, "resume": True, "total_steps": 128}),
        (a2c.A2C, a2c.Args, {"memory": 4}),
    ):
        result = train(kind, options("CartPole-v1", **{"total_steps": 64} | common | more), quiet=True)
        print(kind.__name__, [row["iteration"] for row in result.rows])
    trainer = ppo.PPO(ppo.Args("CartPole-v1", **common))
    print(trainer.executor.describe())
    try:
        ppo.PPO(ppo.Args("CartPole-v1", executor="fast", **common))
    except ValueError as error:
        print(error)
"""


def test_trainers_work_without_the_fast_path():
    words = [sys.executable, "-c", WITHOUT_FAST]
    found = subprocess.run(words, capture_output=True, text=True, cwd=ROOT, check=False)
    assert found.stdout.splitlines() == [
        "PPO [1]",
        "PPO [1, 2]",
        "A2C [1]",
        "plain",
        "executor='fast' needs the folder baselines/fast, which is not here: take 'plain'.",
    ], found.stderr


IMPORTING_TORCH = """
import os, runpy, sys

class Watch:
    def find_spec(self, name, *rest):
        if name == "torch":
            sys.exit(os.environ.get("OMP_WAIT_POLICY", "nothing"))

sys.meta_path.insert(0, Watch())
sys.argv[:] = sys.argv[1:]
sys.path.insert(0, os.getcwd())
runpy.run_module(sys.argv[0], run_name="__main__")
"""


@pytest.mark.parametrize("program", ["baselines.ppo", "baselines.a2c", "baselines.demo"])
def test_trainers_set_how_threads_wait_before_torch_reads_it(program, monkeypatch):
    monkeypatch.delenv("OMP_WAIT_POLICY", raising=False)
    words = [sys.executable, "-c", IMPORTING_TORCH, program, "CartPole-v1"]
    assert subprocess.run(words, capture_output=True, text=True, cwd=ROOT).stderr.strip() == "PASSIVE"


@pytest.mark.parametrize("path", sorted((ROOT / "scripts").glob("*.py")), ids=lambda path: path.stem)
def test_scripts_import_the_trainers_before_torch(path):
    """`baselines` says how torch's threads wait, which torch reads once, when it is imported."""
    trainers = {"baselines", "make_results"}  # the second imports the first
    found = sorted((line, name.split(".")[0]) for name, line, _ in imports(path))
    found = [name for _, name in found if name in trainers | {"torch"}]
    trains = trainers & {*found} and path.stem != "spiel_opponent"  # imported by scripts that have imported both
    assert not trains or found[0] in trainers


def run(code: str) -> str:
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_import_is_light():
    heavy = "torch cupy PIL pygame matplotlib imageio rich typer stable_baselines3 pytest supersuit".split()
    out = run(f"import sys, gpuzoo; print([m for m in {heavy} if m in sys.modules])")
    assert out.strip() == "[]"


def test_testing_needs_no_pytest():
    out = run("import sys, gpuzoo.testing; print([m for m in ('pytest', 'torch', 'cupy') if m in sys.modules])")
    assert out.strip() == "[]"


def test_works_with_cupy_and_torch_blocked():
    run(
        "import sys\n"
        "sys.modules['cupy'] = sys.modules['torch'] = None\n"
        "import gpuzoo, gymnasium, numpy as np\n"
        "env = gymnasium.make_vec('gpuzoo/CartPole-v1', num_envs=2, device='cpu')\n"
        "env.reset(seed=0)\n"
        "env.step(np.zeros(2, int))\n"
        "assert gpuzoo.make_vec('CartPole-v1', 2).simulator.device == 'cpu'\n"
    )


def test_public_names_exist_and_are_documented():
    import gpuzoo

    for name in gpuzoo.__all__:
        assert getattr(gpuzoo, name).__doc__, name


def test_tests_use_public_names_of_the_trainers():
    """What a test needs of a trainer has a name without an underscore."""
    text = "\n".join(path.read_text() for path in (ROOT / "baselines").rglob("*.py"))
    private = set(re.findall(r"self\.(_[a-z]\w*)", text)) | set(re.findall(r"^ *def (_[a-z]\w*)", text, re.MULTILINE))
    assert len(private) > 50
    found = []
    for path in (ROOT / "tests").glob("test_*.py"):
        if "from baselines" not in path.read_text():
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            names = re.findall(r"(?<!\bself)\.(_[a-z]\w*)|setattr\(\w+, \"(_[a-z]\w*)\"", line)
            found += [f"{path.name}:{number}: {a or b}" for a, b in names if (a or b) in private]
    assert not found
