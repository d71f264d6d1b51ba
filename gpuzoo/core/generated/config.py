"""The constants of a game, and the struct `Config` of its parameters."""

from __future__ import annotations

import typing
from collections.abc import Iterable
from typing import Any, Literal

from gpuzoo.core import packed
from gpuzoo.core.configuration import PerEnv
from gpuzoo.core.definition import C_TYPES, Config, EnvDef
from gpuzoo.core.generated.expressions import by_width
from gpuzoo.core.headers import taken
from gpuzoo.core.layout import Layout, flat_size, resolve_constants
from gpuzoo.core.uniform import Uniform
from gpuzoo.core.values import config_types


def constants_code(program: dict[str, Any]) -> Iterable[str]:
    """Numbers of agents, sizes of spaces, and the game's own constants."""
    lay: Layout = program["layout"]
    yield f"constexpr Const<{lay.agents}> AGENTS;"
    yield f"constexpr Const<{lay.observers}> OBSERVERS;"
    for group, count in lay.groups.items():
        if group != "agent":
            yield f"constexpr Const<{count}> {group.upper()}S;"
        yield f"constexpr int FIRST_{group.upper()} = {lay.first[group]};"
    for name, value in resolve_constants(program["env"], program["cfg"]).items():
        if name in taken():
            raise ValueError(
                f"{program['env'].id}: the engine has a name {name} of its own: call the constant otherwise."
            )
        yield f"constexpr Const<{value}> {name};"
    yield f"constexpr int OBSERVATION_SIZE = {lay.observation_size};"
    yield f"constexpr int ACTION_SIZE = {lay.action_size};"
    yield f"constexpr int MASK_SIZE = {lay.mask_size};"
    yield f"constexpr int INVALID_ACTION = {type(program['env']).invalid_action};"
    size = 0 if lay.state_space is None else flat_size(lay.state_space)
    yield f"constexpr int STATE_SIZE = {size};"
    yield f"using StateNumber = {C_TYPES[str(lay.state_space.dtype)] if lay.state_space else 'u8'};"
    yield f"constexpr int TILE = {program['tile']};"
    yield f"using Observation = {C_TYPES[lay.observation_dtype]};"
    yield f"using Action = {C_TYPES[lay.action_dtype]};"
    number = "Pack" if program["form"].packed else "Observation"
    yield f"using Row = {f'Pointer<{number}>' if program['debug'] else f'{number} *'};"


def config_code(env: EnvDef, cfg: Config, per_env: PerEnv) -> Iterable[str]:
    """`Config`; after ``//LOAD_CONFIG``, which `Store` goes before, what loads and draws one."""
    members, loads, draws = [], [], []
    number = "Pack" if env.packed else "float"
    for name, kind in config_types(env.Config).items():
        value = getattr(cfg, name)
        if kind is float:
            members.append(f"  {number} {name};")
            loads.append(f"  c.{name} = s.param_{name}[{'i' if name in per_env else '0'}];")
            drawn = per_env.get(name)
            if isinstance(drawn, Uniform):
                value = f"drawn(s.seed[i], episode, {len(loads) - 1}, {str(drawn.log).lower()}, s.ends_{name})"
                draws.append(f"  f(s.param_{name}[i], {value});")
        elif typing.get_origin(kind) is Literal:
            options = typing.get_args(kind)
            for k, option in enumerate(options):
                yield f"constexpr int {name.upper()}_{str(option).upper().replace('-', '_')} = {k};"
            members.append(f"  static constexpr int {name} = {options.index(value)};")
        elif kind is not str:
            c_type = "bool" if kind is bool else "int"
            members.append(f"  static constexpr {c_type} {name} = {str(value).lower()};")
    yield "struct Config {"
    yield from members
    yield "};"
    yield "struct Store;\n#if GZ_PACK_WIDTH == 1\nGZ Config load_config(const Store &s, i64 i);\n#endif"
    program = "\n".join(["GZ Config load_config(const Store &s, i64 i) {", "  Config c;", *loads, "  return c;", "}"])
    if env.packed:
        names = [name for name, kind in config_types(env.Config).items() if kind is float]
        program = by_width([program], packed.load_config(names, per_env))
    yield f"//LOAD_CONFIG\n{program}"
    yield "template <class F> GZ void draw_parameters(const Store &s, i64 i, u32 episode, F f) {"
    yield "\n".join(["  (void)s, (void)i, (void)episode, (void)f;", *draws, "}"])
