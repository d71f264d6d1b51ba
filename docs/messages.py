"""The sentences of all errors that the package raises, as its source says them, with cause and cure of each."""

from __future__ import annotations

import ast
import dataclasses
import re
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "gpuzoo"
GAP = "…"


@dataclasses.dataclass(frozen=True)
class Kind:
    """Errors that have a cause and a cure in common.

    title: heading.
    cause, cure: in Markdown.
    says: regular expressions with ` | ` or a line's end between them, one of which is in the exception, a colon and
        the message.
    files: the beginning of the path, from the package's folder on, of a file that raises it.
    """

    title: str
    cause: str
    cure: str
    says: str = ""
    files: str = ""


#: the first one that fits is a message's kind
KINDS = (
    Kind(
        "Something is not installed",
        "The feature needs a package, a compiler or a driver that was not found.",
        "Run the command in the message. `gpuzoo doctor` says what there is; see [installation](install.md).",
        r"""
        pip install | package mujoco | CXX | NVRTC | CuPy | POSIX | GL context | nvidia | Install | with FreeType
        there are … GPUs
        """,
    ),
    Kind(
        "Files, downloads and caches",
        "A file is missing, cannot be read or written, was changed, or could not be downloaded.",
        "Correct the path, its rights or `GPUZOO_CACHE_DIR`. What says *install the package again* was damaged after "
        "its installation.",
        r"""
        cannot be written | cannot write | cannot fetch | damaged | install the package | is missing: install
        no such file | is a folder | too slow | neither a folder | holds no trajectory | no idx file
        exists already | there is neither .* nor | asset | its folder | there is no model …: a path
        cannot read the options | A file ends in | want pictures | want x_train | has …, not …: install
        baselines/fast, which
        """,
    ),
    Kind(
        "Checkpoints",
        "A checkpoint was damaged, comes from another version, or is for another game, parameters or networks.",
        "Load it with the game, the parameters and the version that it was trained with, or train anew.",
        r"""
        ^(?!.*not.both).*checkpoint | policies for …, not | was changed: (its|it does) | or was changed
        has a policy for (entities|boards)
        its (checksum|header) | state of a generator | policy … in … | critic of policy … in
        was not written by a trainer | holds … members | pretrained agents for
        """,
    ),
    Kind(
        "Adapters that make their batch themselves",
        "An adapter got a ready env, or an option that it chooses itself.",
        "Give it the id of the game and its parameters, and leave the option out.",
        r"""
        makes? its (own )?batch | chooses … itself | leave (out|…|statistics|use_) | chooses itself | env runners
        adds infos | wraps gpuzoo | must not vectorize | steps gpuzoo's | resets the envs | reset envs themselves
        envs? of gpuzoo that | needs the id of a game | has no autoreset_mode | in next-step mode | stays there
        indices: make the pool | all envs at once
        """,
    ),
    Kind(
        "Rules of a game",
        "A `.cuh` file does what would not give the same bits everywhere, or what cannot be compiled for a GPU. The "
        "message names file and line.",
        "Write it in the way that the message says; [the dialect](dialect.md) has all rules with examples.",
        r"""
        ^DialectError | does not compile | the rules are missing
        """,
    ),
    Kind(
        "The declaration of a game",
        "A class of your own game does not say what the engine must know, or says what cannot be.",
        "Correct the member that is named: [a game from start to end](new_env.md), [`EnvDef`](api.md).",
        r"""
        must define | must name its reference | EnvDef | declared twice | frozen dataclass
        must look like 'Name-v0' | the engine has
        (action|observation|state)_?s?(space)? ?(must be Discrete|must be Box|space must) | action masks need
        the constant | the name of the constant | the names of | Field dtype | field name | has no size
        group … with … agents | one dtype | same name | only games with action masks | fields, parameters, tables
        action_cells (are|must)
        Config holds | actions of all groups | a variant of a class | choose another name | lanes must be a power
        state_space must | a Box action space must | observations must be Box | does not draw itself
        must draw what | cannot be the name of a game | is the id of | a name that the game's module
        changes more than its bounds | id … is taken
        """,
    ),
    Kind(
        "A name that is not known",
        "A game, parameter, group, agent, option, field or file was misspelled, or another release has it.",
        "Take the name that the message suggests. `gpuzoo list` shows the games, a game's page its parameters and "
        "groups.",
        r"""
        did you mean | there is no (?!room) | there are: … | has no attribute | has no method | has no parameter
        no game or configuration | has no (field|array|entry|option|row) | have no method | unknown colour
        cannot be observed; there | no activation | a row has no | has the methods | has no numbers
        cannot be watched | SMAX: there is | no id of (lbforaging|rware) | has no argument | but no MJCF
        the model has no (camera|… …) | has no group
        """,
    ),
    Kind(
        "Another kind of game, or of space",
        "The function, trainer or adapter is for games with other agents, turns, actions or observations.",
        "Take the one that the message names; [which interface?](interfaces.md) has a table.",
        r"""
        has (several agents|one agent) | agents act | act at the same time | played in turns | has masks for
        action_parts are not for | needs? (discrete|bounded|Discrete)
        action masks | no time limit | is for games | games? of two agents
        cannot be searched | only choices can be masked | for actions that are choices | no network
        declares no state_space | a CNN needs | needs a state beyond | policies that learn | needs? several policies
        observers must be | has an observation for each agent
        those of … are | no factorisation | plays whole games only | is no algorithm | no game of several
        """,
    ),
    Kind(
        "Too early, too late, or from elsewhere",
        "A call came before the one that it needs, during another one, or in another thread or process; or a move is "
        "illegal at present.",
        "Call `reset()` once before the first step. Use an env in the process, and a pool on a GPU in the thread, "
        "that made it. Take a legal move.",
        r"""
        illegal now | call reset | first reset | in flight | was closed | another (process|thread) | is empty: add
        choose (a game|the agent) | captured | make the pool with render | needs a display | cannot be pickled
        first step failed
        """,
    ),
    Kind(
        "Parameters that are compiled in, shared or drawn",
        "A parameter cannot change in the way that was asked for: whole numbers and choices are compiled into the "
        "kernel, a number is shared by all envs, and a `gpuzoo.Uniform` draws for every episode.",
        "Make a new env with the other value, with an array for a value per env, or with a `gpuzoo.Uniform`: see "
        "[parameters](howto/curriculum.md).",
        r"""
        compiled into | shared by all | is not drawn | every episode draws | spaces stay | is a parameter of
        drawn with log | which this batch shares | cannot set it | in sweep and in schedule
        """,
    ),
    Kind(
        "A snapshot, state or buffer of something else",
        "What is restored was made with another game, number of envs, capacity or compile-time parameters.",
        "Restore it into a batch that was made in the same way.",
        r"""
        snapshot | does not fit | state is that of | cannot go on | processes see | this run has | extra state
        """,
    ),
    Kind(
        "A program on the other side of a match",
        "The program does not start, has ended, does not answer, or plays or refuses a move against the rules.",
        "Run the command by itself in a shell, and see that it speaks the protocol: [programs](howto/programs.md).",
        r"""
        GNU Backgammon | the program moves | cannot be started | … has ended | has said nothing for | refuses
        has no option
        """,
    ),
    Kind(
        "Texts that describe a start: layouts, maps, positions, recipes",
        "The text breaks a rule of its notation, or describes what cannot be in the game.",
        "Correct the place that the message names. The game's page describes the notation.",
        r"""
        layout | fen … | sfen … | desc (has|must) | recipes? | orders | ascii_map | is a wall | the joints
        each joint | ingredients | no JSON | payoff | boards are | op_ingredient | map_size | observation_layers
        free cells | qpos | xml_file | actuator | SMAX: scenario
        """,
    ),
    Kind(
        "Arrays of another shape or kind",
        "An array, or a dictionary of them, has another shape, dtype, device or number of rows than is needed.",
        "Give it the shape and the kind that the message names. A row of a vector env is one agent of one env: see "
        "[shapes](many_agents.md).",
        r"""
        shape | contiguous | must have at most | rows per env | is missing for | one value or … | axis
        must be (on …|bool …|float \(|numbers) | seeds, not | mask must | same value | as reward is | named once
        is named twice | env_id must be a sequence | names … twice | named only once | must be in …, not
        each pixel | one colour | action has … | belongs to an env | envs need
        """,
    ),
    Kind(
        "Sizes that do not go together",
        "One number must divide another one, or must be at least as large, or does not fit into a game of this size.",
        "Change one of the two; the message names both.",
        r"""
        multiple of | divide | must be even | do(es)? not fit | less than one rollout | more (players|robots) than
        must not be above | must be below | greater than | must lie within | at most …, which | need … cells
        cards, but | paddles of | must hold a phase | at most | must be less than | needs a larger | as many as
        capacity … holds | num_steps | players than | ends, the | spaces differ | members that | are given per
        need two | needs two | needs a grid | units on both | an archer or | needs observation
        """,
    ),
    Kind(
        "Options that exclude each other",
        "Two arguments say the same thing twice, or one has a meaning only with another one.",
        "Give one of them, or the one that is missing.",
        r"""
        not (as )?both | given both | go together | goes with | is there twice | different names | leave --num
        Give one | together | with masked | is for\b | needs …, which it | was made with | choose one of
        needs an expert | choose another player
        """,
    ),
    Kind(
        "A value out of range",
        "A number is too small, too large, negative, not finite, or not odd where it must be.",
        "Give a value of the range that the message names.",
        r"""
        at least | labels must | at most | positive | negative | from .* to | between | beyond | in \[0
        must be odd | finite | out of range | must be 0 | below | empty view | in 1/16 | choice
        """,
    ),
    Kind(
        "A value of the wrong type, or none of the choices",
        "An argument has another type, or is none of the words or forms that are allowed.",
        "Give a value of the type, or one of the choices, that the message names.",
        r"""
        must (be|have|return|name|select|hold|each|start|define|come) | takes?\b | rollout has the policy
        has letters, digits | are (whole numbers|words) | is made of | not … | given by | is given as | want\b
        a range is | made of | expected | could be | cannot '…' | no regular | needs at least | needs device='cuda'
        """,
    ),
    Kind(
        "Not supported",
        "gpuzoo cannot do this, or not on this device.",
        "The message says what can be had instead, where there is something.",
        r"""
        not supported | CPU only | runs on the CPU only | NotImplemented | needs 'steps' | cannot be traced
        gradient
        """,
    ),
    Kind(
        "Computations that fail",
        "A loss is not a number any more, or the memory of the device is too small.",
        "Lower the learning rate, or `num_envs` and `num_steps`.",
        r"""
        not a number | do not fit into the memory | no memory | learning rate | won no point
        """,
    ),
    Kind(
        "Checks of a game that fail",
        "`gpuzoo.testing` found that a game breaks a promise, such as an observation outside of its space.",
        "Correct the game. `debug=True` checks every index: [debug a kernel](howto/debug_kernel.md).",
        files=r"testing/",
    ),
    Kind(
        "Rules of a single game",
        "A parameter, a text or a file does not go with the rules of this game.",
        "Give what the message names; the game's page has all parameters.",
        files=r"envs/",
    ),
)


def _text(node: ast.expr, constants: dict[str, ast.expr]) -> str:
    """What a message says, with a gap for what is only known when it is raised."""
    if isinstance(node, ast.Name) and node.id in constants:
        return _text(constants[node.id], {})
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(value, {}) if isinstance(value, ast.Constant) else GAP for value in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _text(node.left, constants) + _text(node.right, constants)
    if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "unknown":
        return f"{_text(node.args[0], constants)} '{GAP}'; did you mean '{GAP}'?"
    return GAP


def _exceptions(nodes: list[ast.AST]) -> dict[str, str]:
    """Functions and methods that make exceptions: name -> class, as their annotations say."""
    made = {}
    for node in nodes:
        if isinstance(node, ast.FunctionDef) and isinstance(node.returns, ast.Name) and "Error" in node.returns.id:
            made[node.name] = node.returns.id
    return made


def sentences(module: ast.Module, path: Path) -> dict[str, str]:
    """Sentence -> the name of the exception, of all errors that a file makes."""
    found: dict[str, str] = {}
    nodes = list(ast.walk(module))
    makers = ({"error": "DialectError"} if "core" in path.parts else {}) | _exceptions(nodes)
    constants = {
        target.id: node.value
        for node in nodes
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for node in nodes:
        if not isinstance(node, ast.Call) or not node.args:
            continue
        name = getattr(node.func, "id", getattr(node.func, "attr", ""))
        kind = makers.get(name, name)
        if not re.fullmatch(r"[A-Z]\w*Error", kind):
            continue
        text = " ".join(_text(node.args[0], constants).split())
        if len(re.sub(rf"[{GAP}\W]", "", text)) > 12:
            found[text] = kind
    return found


def kind_of(path: Path, exception: str, text: str) -> Kind | None:
    """The kind of a message, or None if there is none for it."""
    file = path.relative_to(PACKAGE).as_posix()
    for kind in KINDS:
        says = re.sub(r" \| |\n\s*", "|", kind.says.strip())
        if file.startswith(kind.files) and re.search(says, f"{exception}: {text}"):
            return kind
    return None


def by_kind() -> dict[Kind | None, dict[str, str]]:
    """All messages of the package: kind -> sentence -> exception."""
    found: dict[Kind | None, dict[str, str]] = {kind: {} for kind in KINDS}
    paths = {*PACKAGE.rglob("*.py"), *(PACKAGE / "baselines").rglob("*.py")}  # a link, which is not followed by itself
    for path in sorted(paths):
        for text, exception in sentences(ast.parse(path.read_text(encoding="utf-8")), path).items():
            found.setdefault(kind_of(path, exception, text), {})[text] = exception
    return found


def lists() -> str:
    """All messages by kind, as Markdown."""
    parts = []
    for kind, found in by_kind().items():
        if kind is None:  # a test refuses it
            continue
        rows = "\n".join(
            f"- {exception}: `` {text} ``" for text, exception in sorted(found.items(), key=lambda x: x[0].lstrip(GAP))
        )
        parts.append(
            f"**{kind.title}.** {kind.cause} *Cure:* {kind.cure}\n\n"
            f"<details>\n<summary>{len(found)} messages</summary>\n\n{rows}\n\n</details>"
        )
    return "\n\n".join(parts)
