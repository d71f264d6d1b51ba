"""What is known of games that were not imported: their text says what importing them says."""

from __future__ import annotations

import importlib
import itertools
import pickle
import subprocess
import sys
import textwrap
from pathlib import Path

import gymnasium
import pytest
from toys.glide import Glide

import gpuzoo
from gpuzoo import registry
from gpuzoo.core import declarations
from gpuzoo.core.declarations import Facts, games_of, read
from gpuzoo.core.definition import check_class
from gpuzoo.core.layout import layout

ENVS = Path(gpuzoo.__file__).parent / "envs"
HEAD = "from gpuzoo.core.definition import Config, EnvDef\n"
NUMBERS = itertools.count()


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("GPUZOO_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def collection(tmp_path, monkeypatch):
    """A function that writes a package with modules of games, and returns its folder and name."""
    monkeypatch.syspath_prepend(tmp_path)

    def write(**texts):
        package = f"collection_{next(NUMBERS)}"
        root = tmp_path / package
        for name, text in texts.items():
            path = root / f"{name.replace('__', '/')}.py"
            path.parent.mkdir(parents=True, exist_ok=True)
            for folder in (root, path.parent):
                (folder / "__init__.py").touch()
            path.write_text(HEAD + textwrap.dedent(text).replace("PACKAGE", package))
            path.with_suffix(".cuh").write_text(Glide.source().read_text())
        return root, package

    return write


def imported(module):
    return [Facts.of(game) for game in games_of(importlib.import_module(module))]


def test_importing_gpuzoo_imports_no_game(cache):
    """Neither where texts are read for the first time, nor where they are known."""
    code = "import sys, gpuzoo; print(len(gpuzoo.ids()), *[m for m in sys.modules if m.startswith('gpuzoo.envs.')])"
    for _ in range(2):
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert done.stdout.split() == [str(len(gpuzoo.ids()))]
        assert list(cache.glob("registry/*.json"))


def test_the_collections_text_says_what_its_import_says():
    found = dict(read(ENVS, "gpuzoo.envs"))
    assert {m for m, facts in found.items() if facts is None} == set(), "only an import tells: give facts as literals"
    for module, facts in found.items():
        assert facts == imported(module)
    assert sorted(facts.id for games in found.values() for facts in games) == gpuzoo.ids()


CLEAR = {
    "plain": 'class Game(EnvDef):\n    """A game."""\n\n    id = "Game-v0"\n    max_episode_steps = 5',
    "all": """
        class Game(EnvDef):
            id: str = "Game-v0"
            max_episode_steps = None
            reward_threshold = -1.5
            turn = "mover"

            def agents(self, cfg):
                return {"player": 2}
    """,
    "several": """
        class One(EnvDef):
            id = "One-v0"
        class Two(One):
            id = "Two-v3"
            max_episode_steps = 7
        class Three(Two):
            id = "Three-v0"
            def agents(self, cfg): return {"agent": 3}
    """,
    "base without id": "class Base(EnvDef):\n    turn = 'a'\n\nclass Game(Base):\n    id = 'Game-v0'",
    "mixin": """
        class Mixin:
            def helper(self): return 3
        class Game(Mixin, EnvDef):
            id = "Game-v0"
    """,
    "dotted base": "import gpuzoo.core.definition\nclass Game(gpuzoo.core.definition.EnvDef):\n    id = 'Game-v0'",
    "renamed base": "import gpuzoo as gz\nclass Game(gz.EnvDef):\n    id = 'Game-v0'",
    "no game": "import dataclasses, enum\nclass A(enum.Enum):\n    id = 1\nclass B(Exception):\n    id = 'B'",
    "configuration": """
        import dataclasses
        @dataclasses.dataclass(frozen=True)
        class C(Config):
            size: int = len("abc")
        class Game(EnvDef):
            id = "Game-v0"
            Config = C
            render_fps, exempt = 20 + 10, {}
    """,
    "variants": """
        class Game(EnvDef):
            id = "Game-v0"
            max_episode_steps = 10
            @classmethod
            def variants(cls):
                \"\"\"Two.\"\"\"
                return {"Game-long-v0": {"max_episode_steps": 20, "reward_threshold": 3}, "Game-same-v0": {}}
        class Child(Game):
            id = "Child-v0"
    """,
    "constants": "A, B = 1, 2\nNAMES = dict(a=1)\nsmall = sorted([])\nclass Game(EnvDef):\n    id = 'Game-v0'",
}
UNCLEAR = {
    "computed id": "N = 3\nclass Game(EnvDef):\n    id = f'Game-v{N}'",
    "computed limit": "N = 3\nclass Game(EnvDef):\n    id = 'Game-v0'\n    max_episode_steps = N",
    "unpacked": "class Game(EnvDef):\n    id, turn = 'Game-v0', 'mover'",
    "decorator": """
        def longer(cls):
            cls.max_episode_steps = 9
            return cls
        @longer
        class Game(EnvDef):
            id = "Game-v0"
    """,
    "changed later": "class Game(EnvDef):\n    id = 'Game-v0'\nGame.turn = 'mover'",
    "changed by call": "class Game(EnvDef):\n    id = 'Game-v0'\nsetattr(Game, 'turn', 'mover')",
    "replaced": "class Game(EnvDef):\n    id = 'Game-v0'\nclass Other(EnvDef):\n    id = 'Other-v0'\nGame = Other",
    "condition": "if True:\n    class Game(EnvDef):\n        id = 'Game-v0'",
    "condition inside": "class Game(EnvDef):\n    id = 'Game-v0'\n    if id:\n        turn = 'mover'",
    "made by a call": "Game = type('Game', (EnvDef,), {'id': 'Game-v0', '__module__': __name__})",
    "two bases": """
        class Mixin:
            turn = "mover"
        class Game(Mixin, EnvDef):
            id = "Game-v0"
    """,
    "alias of a base": "Base = EnvDef\nclass Game(Base):\n    id = 'Game-v0'",
    "base from elsewhere": "from toys.glide import Glide\nclass Game(Glide):\n    id = 'Game-v0'",
    "everything imported": "from gpuzoo import *\nclass Game(EnvDef):\n    id = 'Game-v0'",
    "own single": "class Game(EnvDef):\n    id = 'Game-v0'\n    @classmethod\n    def single(cls): return False",
    "own agents": "class Game(EnvDef):\n    id = 'Game-v0'\n    agents = lambda self, cfg: {'player': 2}",
    "computed variants": """
        class Game(EnvDef):
            id = "Game-v0"
            @classmethod
            def variants(cls):
                return {f"Game-{k}-v0": {"max_episode_steps": k} for k in (1, 2)}
    """,
}


@pytest.mark.parametrize("name", CLEAR)
def test_text_that_tells(collection, name):
    root, package = collection(a__game=CLEAR[name])
    found = dict(read(root, package))
    assert found[f"{package}.a.game"] == imported(f"{package}.a.game")


@pytest.mark.parametrize("name", UNCLEAR)
def test_text_that_does_not_tell(collection, name):
    """The module is imported, and nothing wrong is believed."""
    root, package = collection(a__game=UNCLEAR[name])
    assert dict(read(root, package))[f"{package}.a.game"] is None
    assert imported(f"{package}.a.game")


def test_a_family_has_its_base_in_a_module_of_its_own(collection):
    root, package = collection(
        a__world="class World(EnvDef):\n    max_episode_steps = 25",
        a__game="from PACKAGE.a.world import World\nclass Game(World):\n    id = 'Game-v0'",
        b__game="import PACKAGE.a.world as w\nclass Other(w.World):\n    id = 'Other-v0'\n    turn = 't'",
    )
    for module, facts in read(root, package):
        assert facts == imported(module)
    world = root / "a" / "world.py"
    world.write_text(world.read_text().replace("25", "250"))
    limits = [facts.max_episode_steps for _, games in read(root, package) for facts in games]
    assert limits == [250, 250], "the file changed after it was read"


@pytest.fixture
def empty_registry(monkeypatch):
    monkeypatch.setattr(registry, "_REGISTRY", {})
    told = []
    monkeypatch.setattr(registry, "_tell_others", told.append)
    return told


def test_versions_live_side_by_side(collection, empty_registry):
    root, package = collection(
        nim__nim="class Nim(EnvDef):\n    id = 'Nim-v1'\n    reference = 'x'",
        nim__rules_of_old="class OldNim(EnvDef):\n    id = 'Nim-v0'\n    reference = 'x'",
    )
    registry._discover(root, package)
    assert registry.ids() == ["Nim-v0", "Nim-v1"]
    assert f"{package}.nim.nim" not in sys.modules
    assert registry.get("Nim").id == "Nim-v1"
    assert type(registry.get("Nim-v0")).source() == root / "nim" / "rules_of_old.cuh"
    assert [facts.id for facts in empty_registry] == ["Nim-v1", "Nim-v0"], "importing a game registers it only once"


def test_one_module_declares_several_ids(collection, empty_registry):
    root, package = collection(a__game=CLEAR["several"])
    registry._discover(root, package)
    assert registry.ids() == ["One-v0", "Three-v0", "Two-v3"]


def test_an_unclear_module_is_imported(collection, empty_registry):
    text = UNCLEAR["computed variants"].replace('id = "Game-v0"', 'id = "Game-v0"\n            reference = "x"')
    root, package = collection(a__game=text)
    registry._discover(root, package)
    assert registry.ids() == ["Game-1-v0", "Game-2-v0", "Game-v0"]
    assert registry.get("Game-2-v0").max_episode_steps == 2


def test_an_id_that_is_declared_twice_is_refused(collection, empty_registry):
    text = "class Game(EnvDef):\n    id = 'Game-v0'\n    reference = 'x'"
    root, package = collection(a__game=text, b__game=text)
    with pytest.raises(ValueError, match=rf"'Game-v0' is declared twice, in {package}.a.game and {package}.b.game"):
        registry._discover(root, package)


def test_a_fault_in_a_text_is_told_by_python(collection, empty_registry):
    root, package = collection(a__game="class Game(EnvDef)\n")
    with pytest.raises(SyntaxError, match="expected ':'"):
        registry._discover(root, package)


def test_what_was_read_is_not_read_again(collection, monkeypatch):
    root, package = collection(a__one=CLEAR["plain"], a__two=CLEAR["no game"])
    first = list(read(root, package))
    opened = []
    outline = declarations._outline
    monkeypatch.setattr(declarations, "_outline", lambda text, module: opened.append(module) or outline(text, module))
    assert list(read(root, package)) == first
    assert opened == []
    path = root / "a" / "one.py"
    path.write_text(path.read_text().replace("Game-v0", "Another-v0"))
    (root / "a" / "two.py").unlink()
    assert [facts.id for _, games in read(root, package) for facts in games] == ["Another-v0"]
    assert opened == [f"{package}.a.one"]


@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b'{"head": 1}', b"\xff"])
def test_a_damaged_cache_is_made_again(collection, cache, damage):
    root, package = collection(a__game=CLEAR["plain"])
    first = list(read(root, package))
    (file,) = cache.glob("registry/*.json")
    file.write_bytes(damage)
    assert list(read(root, package)) == first
    assert file.read_bytes() != damage


def test_without_a_place_to_write_texts_are_read_each_time(collection, tmp_path, monkeypatch):
    root, package = collection(a__game=CLEAR["plain"])
    (tmp_path / "file").touch()
    monkeypatch.setenv("GPUZOO_CACHE_DIR", str(tmp_path / "file" / "cache"))
    for _ in range(2):
        assert dict(read(root, package))[f"{package}.a.game"] == [Facts("Game-v0", True, None, 5, None, "", (), ())]


# ---- variants ----


class Skate(Glide):
    """A glide on ice.

    It has two rinks.
    """

    id = "Skate-v0"
    max_episode_steps = 50

    @classmethod
    def source(cls):
        return Glide.source()

    @classmethod
    def variants(cls):
        return {"Skate-fast-v0": {"wind": 0.5, "max_episode_steps": 20}, "Skate-v2": {}}


def test_a_variant_is_a_game_with_other_defaults():
    fast, same = Skate.variant_classes
    assert (fast.id, same.id) == ("Skate-fast-v0", "Skate-v2")
    assert (fast.max_episode_steps, same.max_episode_steps, Skate.max_episode_steps) == (20, 50, 50)
    assert (fast.Config().wind, same.Config(), Skate.Config().wind) == (0.5, same.Config(), Glide.Config().wind)
    assert list(fast.Config.__dataclass_fields__) == list(Glide.Config.__dataclass_fields__)
    assert fast.Config.__dataclass_fields__["wind"].metadata == Glide.Config.__dataclass_fields__["wind"].metadata
    assert fast.__doc__.endswith("**This id.** Skate-v0 with `wind=0.5`, `max_episode_steps=20`.")
    for game in (fast, same):
        check_class(game())
        assert layout(game(), game.Config()).agents == 1
        assert game.source() == Glide.source()


def test_variants_can_be_pickled():
    fast = Skate.variant_classes[0]
    assert pickle.loads(pickle.dumps(fast)) is fast
    assert type(pickle.loads(pickle.dumps(fast()))) is fast
    assert pickle.loads(pickle.dumps(fast.Config(wind=0.1))) == fast.Config(wind=0.1)


def test_subclasses_do_not_inherit_ids():
    class Skate3(Skate):
        id = "Skate-v3"

    assert Skate3.variant_classes == ()


def test_variants_are_registered_with_their_game(empty_registry):
    gpuzoo.register(Skate)
    assert gpuzoo.ids() == ["Skate-fast-v0", "Skate-v0", "Skate-v2"]
    assert type(gpuzoo.get("Skate-fast-v0")) is Skate.variant_classes[0]
    assert gpuzoo.get("Skate").id == "Skate-v2"
    assert [facts.max_episode_steps for facts in empty_registry] == [50, 20, 50]


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({"wnd": 1.0}, TypeError, "Bad.variants: Bad-v1 has no parameter 'wnd'; did you mean 'wind'"),
        ({"wind": "fast"}, TypeError, "Bad.variants: Bad-v1: wind must be a float"),
    ],
)
def test_a_faulty_variant_is_refused_where_it_is_declared(changes, error, words):
    with pytest.raises(error, match=words):
        type("Bad", (Glide,), {"id": "Bad-v0", "variants": classmethod(lambda cls: {"Bad-v1": changes})})


def test_a_variant_has_not_the_id_of_its_game():
    with pytest.raises(ValueError, match=r"Bad\.variants: Bad-v0 is the id of Bad itself"):
        type("Bad", (Glide,), {"id": "Bad-v0", "variants": classmethod(lambda cls: {"Bad-v0": {"wind": 0.5}})})


def test_a_class_without_an_id_has_no_variants():
    with pytest.raises(TypeError, match=r"Bad\.variants: Bad-v1 is a variant of a class without an id: give Bad one"):
        type("Bad", (gpuzoo.EnvDef,), {"variants": classmethod(lambda cls: {"Bad-v1": {}})})


def test_a_variant_of_the_collection():
    game = type(gpuzoo.get("FrozenLake8x8-v1"))
    assert issubclass(game, type(gpuzoo.get("FrozenLake-v1")))
    assert game.Config().map_name == "8x8"
    ours, theirs = gymnasium.spec("gpuzoo/FrozenLake8x8-v1"), gymnasium.spec("FrozenLake8x8-v1")
    assert (ours.max_episode_steps, ours.reward_threshold) == (theirs.max_episode_steps, theirs.reward_threshold)
    env = gymnasium.make("gpuzoo/FrozenLake8x8-v1", is_slippery=False)
    assert env.observation_space == gymnasium.make("FrozenLake8x8-v1").observation_space
    env.reset(seed=0)
    assert env.step(1)[0] == 8
