"""Declaration to device code: text in, text out.

`program` puts together one source that every compiler here takes: the engine's headers, the generated part (constants,
`Config`, `Store`, `State`, `Env`; see ``core/generated``) and the game's rules, with every include inlined, so that a
hash of the text identifies the program, and ``#line`` marks, so that a compiler's message names the author's file and
line.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable
from typing import Any

import numpy as np

from gpuzoo.core import packed
from gpuzoo.core.configuration import PerEnv
from gpuzoo.core.definition import C_TYPES, Config, EnvDef, Field
from gpuzoo.core.dialect import ENTRIES, check_rules, inline_includes
from gpuzoo.core.form import Form, check_of_mover, choose
from gpuzoo.core.generated.actions import actions_code, chosen_action_code
from gpuzoo.core.generated.config import config_code, constants_code
from gpuzoo.core.generated.env import INDEXED, env_code
from gpuzoo.core.generated.expressions import by_width
from gpuzoo.core.generated.scratch import random_order
from gpuzoo.core.generated.store import store_members
from gpuzoo.core.headers import check_names, header
from gpuzoo.core.layout import Layout, Shapes, of_mover, resolve_fields
from gpuzoo.core.parameters import layout_of_all
from gpuzoo.core.uniform import Uniform
from gpuzoo.core.values import config_types
from gpuzoo.core.windows import in_windows

#: bytes of arguments that a kernel takes with every driver, less those beside the Store
_MOST_BYTES = 4096 - 16


@dataclasses.dataclass(frozen=True)
class Program:
    """All that is known about a game once its configuration is.

    Attributes:
        env: the declaration.
        cfg: its configuration.
        layout: spaces and agents.
        fields: the state, with numeric shapes.
        scratch: the scratch fields that lie in memory, with numeric shapes.
        lanes: threads per env on a GPU.
        form: which form the kernels have.
        per_env: names of the parameters given per env.
        params: names of the run-time (float) parameters.
        tables: the shared constant arrays.
        store: names of the pointers of the device struct `Store`, in order.
        indexed: what rules reach by an index, by the numbers that a fault has for them.
        debug: whether this is the checked form.
        code: the translation unit.
        shapes: kept by `Simulator`: shapes and dtypes of a batch's arrays, which are the same for the next one.
    """

    env: EnvDef
    cfg: Config
    layout: Layout
    fields: dict[str, Field]
    scratch: dict[str, Field]
    lanes: int
    form: Form
    per_env: frozenset[str]
    params: tuple[str, ...]
    tables: dict[str, np.ndarray[Any, Any]]
    store: tuple[str, ...]
    indexed: tuple[str, ...]
    debug: bool
    code: str
    shapes: dict[Hashable, Shapes] = dataclasses.field(default_factory=dict)

    @property
    def block(self) -> int:
        """Threads per block on a GPU, `BLOCK` of prelude.cuh."""
        return self.lanes if self.lanes > 32 else 32 if self.form.packed else 128


def program(
    env: EnvDef,
    cfg: Config,
    per_env: PerEnv | None = None,
    lanes: int | None = None,
    debug: bool = False,
    of_mover_only: bool = False,
) -> Program:
    """Generates the program of a game for one configuration.

    Args:
        env: the declaration.
        cfg: the configuration.
        per_env: the float parameters that have a value per env, with these values, or that each episode draws.
        lanes: overrides the declared number of lanes (results do not depend on it).
        debug: the form that checks every index of the rules; results do not depend on it.
        of_mover_only: whether an env has one row of observations and masks, of the agent to move.

    Raises:
        ValueError: a declaration or rules that break the dialect; the message names file, line and rule. Or more
            arrays than a GPU's kernels take.
    """
    per_env = per_env or {}
    lay = layout_of_all(env, cfg, per_env)
    if of_mover_only:
        lay = of_mover(env, lay)
    declared = resolve_fields(env, cfg, lay)
    rules = inline_includes(type(env).source())
    entries = (*ENTRIES, "state") if lay.state_space is not None else ENTRIES
    check_rules(rules, {n: f.dtype for n, f in declared.items()}, entries, env.packed, env.chooses)
    check_names(rules)
    fields = {n: f for n, f in declared.items() if not f.scratch}
    scratch = {n: f for n, f in declared.items() if f.scratch} | random_order(rules, env, cfg, lay)
    lanes = env.lanes(cfg) if lanes is None else lanes
    options = {name: getattr(cfg, name) for name, kind in config_types(env.Config).items() if kind is bool}
    windowed = in_windows(rules, entries, options) if lanes > 1 and not debug and not env.packed else None
    if env.packed:
        packed.check_packed(env, lay, declared, env.lanes(cfg))
        lanes = 1
    if lanes not in [2**k for k in range(11)]:
        raise ValueError(f"{env.id}: lanes must be a power of two from 1 to 1024, not {lanes}.")
    params = tuple(n for n, kind in config_types(env.Config).items() if kind is float)
    tables = {n: np.ascontiguousarray(t) for n, t in env.tables(cfg).items()}
    env_bytes = sum(int(np.prod(f.sizes)) * np.dtype(f.dtype).itemsize for f in fields.values())
    env_bytes += lay.observers * lay.observation_size * np.dtype(lay.observation_dtype).itemsize + lay.agents * 16 + 16
    form = choose(env, lay, fields | scratch, lanes, rules)
    if of_mover_only:
        check_of_mover(env, rules)
    # Loops in vectors go through a tile several times, so it fits into the caches nearest to a core.
    in_vectors = form.branchless or form.packed
    tile = max(1, min(512, (65536 if in_vectors else 262144) // env_bytes))
    # Whole vectors: of bytes, as the flags are, there are 64 in the longest.
    tile = max(tile - tile % 64, 64) if in_vectors else next((tile - tile % n for n in (64, 16) if tile > n), tile)
    in_memory = {n: f for n, f in scratch.items() if f.shape or lanes > 1}
    facts: dict[str, Any] = {
        "env": env,
        "cfg": cfg,
        "layout": lay,
        "fields": fields,
        "scratch": scratch,
        "in_memory": in_memory,
        "tables": tables,
        "lanes": lanes,
        "single": type(env).single(),
        "branchless": form.branchless,
        "form": form,
        "tile": tile,
        "debug": debug,
        "windowed": windowed is not None,
        "indexed": (*INDEXED, *fields, *scratch, *tables, "state"),
    }
    drawn = {name: x for name, x in per_env.items() if isinstance(x, Uniform)}
    store = store_members(env, lay, fields | in_memory, params, drawn, tables, debug)
    types = {name: C_TYPES[str(table.dtype)] for name, table in tables.items()}
    packs = packed.pack_env(lay, type(env).single(), fields, scratch, types) if env.packed else ()
    if 8 * len(store) > _MOST_BYTES:
        raise ValueError(
            f"{env.id}: fields, parameters, tables and the engine's own arrays are {len(store)}, but a GPU's kernels "
            f"take {_MOST_BYTES // 8} at most: put several scalar fields into one field with a shape."
        )
    config, load_config = "\n".join(config_code(env, cfg, per_env)).split("//LOAD_CONFIG")
    generated = [
        '#line 1 "generated"',
        "namespace gz {",
        *constants_code(facts),
        config,
        "struct Control {\n  int mode, max_steps;\n};",
        "struct Store {",
        *(f"  {c_type} {name};" for c_type, name in store),
        "};",
        load_config,
        *actions_code(lay, facts["single"], debug, env.chooses),
        *((by_width(env_code(facts), packs),) if env.packed else env_code(facts)),
        *chosen_action_code(lay, env.chooses, env.turn),
        "}  // namespace gz",
    ]
    parts = [
        *["#define GZ_DEBUG"] * debug,
        f"#define GZ_PACKED {int(env.packed)}",
        *["#define GZ_PACK_WIDTH 1"] * (debug or not env.packed),  # the checked form goes env by env
        f"#define LANES {lanes}",
        f"#define GZ_BRANCHLESS {int(form.branchless)}",
        f"#define GZ_TOGETHER {int(form.together)}",
        "#ifndef GZ_HELP",  # core/occupancy.py chooses, but a robot takes long to compile, and needs all registers
        f"#define GZ_HELP {int(not form.packed)}",
        "#endif",
        f"#define GZ_APART {int(form.apart)}",
        f"#define GZ_SHORT {int(form.short)}",
        f"#define GZ_OBSERVES_APART {int(env.observes_apart)}",
        f"#define GZ_CHOOSES {int(env.chooses)}",
        f"#define GZ_CHOOSES_PARTS {int(env.chooses and lay.action_size > 1)}",
        f"#define GZ_WINDOWED {int(windowed is not None)}",
        header("base.cuh"),
        "#ifdef GZ_SIMT",
        header("simt.cuh"),
        "#endif",
        header("math.cuh"),
        header("rng.cuh"),
        *[header("packed.cuh")] * env.packed,
        header("prelude.cuh"),
        header("nearest.cuh"),
        header("checked.cuh" if debug else "arrays.cuh"),
        header("views.cuh"),
        *generated,
        "namespace gz {",
        *([f'#line 1 "{env.id}, generated"', made] if (made := env.generated(cfg)) else ()),
        *(piece.text for piece in windowed or rules),
        "}  // namespace gz",
        "#if GZ_THREADS",
        header("rows.cuh"),
        "#endif",
        header("episode.cuh"),
        "#if GZ_THREADS",
        header("walk_gpu.cuh"),
        "#else",
        header("threads.cuh"),
        header("host.cuh"),
        *(["#if GZ_PACK_WIDTH > 1", header("walk_packed.cuh"), "#else"] if env.packed else ()),
        header("walk_cpu.cuh"),
        *["#endif"] * env.packed,
        "#endif",
    ]
    return Program(
        env=env,
        cfg=cfg,
        layout=lay,
        fields=fields,
        scratch=in_memory,
        lanes=lanes,
        form=form,
        per_env=frozenset(per_env),
        params=params,
        tables=tables,
        store=tuple(name for _, name in store),
        indexed=facts["indexed"],
        debug=debug,
        code="\n".join(parts) + "\n",
    )
