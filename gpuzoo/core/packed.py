"""Games whose rules are packed: what they may declare, and the text that is generated for packs of several envs.

Packs of one env have the text of ordinary rules, from `codegen`. Both stand in a program; ``GZ_PACK_WIDTH`` chooses.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import numpy as np

from gpuzoo.core.definition import EnvDef, Field
from gpuzoo.core.layout import Layout, flat_size

#: dtype of a field -> its type in rules, and that of one number in memory
PACKS: Mapping[str, tuple[str, str]] = {
    "float32": ("Pack", "float"),
    "int32": ("PackInt", "int"),
    "bool": ("PackMask", "u8"),
}


def check_packed(env: EnvDef, lay: Layout, fields: Mapping[str, Field], lanes: int) -> None:
    """Checks that a declaration keeps to what packed rules can do.

    Raises:
        ValueError: what it declares beyond that.
    """
    dtypes = {
        f"field {name} is {field.dtype}; packed rules have fields of {', '.join(PACKS)}": field.dtype not in PACKS
        for name, field in fields.items()
    }
    refused = {
        **dtypes,
        "packed rules have one lane per env": lanes > 1,
        "packed rules have no action masks": env.action_mask,
        "agents of packed rules do not take turns": env.turn is not None,
        f"observations are {lay.observation_dtype}; those of packed rules are float32": (
            lay.observation_dtype != "float32"
        ),
        "the state_space of packed rules is float32": (
            lay.state_space is not None and lay.state_space.dtype != np.float32
        ),
    }
    for sentence, wrong in refused.items():
        if wrong:
            raise ValueError(f"{env.id}: {sentence}.")


def load_config(floats: Iterable[str], per_env: Iterable[str]) -> Iterator[str]:
    """A pack's parameters."""
    own = set(per_env)
    yield "GZ void load_config(const Store &s, const Place &at, Config &c) {\n  (void)s, (void)at, (void)c;"
    for name in floats:
        yield f"  fetch(c.{name}, s.param_{name}, at);" if name in own else f"  c.{name} = s.param_{name}[0];"
    yield "}"


def pack_env(
    lay: Layout,
    single: bool,
    fields: Mapping[str, Field],
    scratch: Mapping[str, Field],
    tables: Mapping[str, str],
) -> Iterator[str]:
    """`State` (what a pack has of its envs), `Env` (what rules see), and the ways between them and memory.

    Args:
        lay: spaces and agents.
        single: whether the game has one agent by its nature.
        fields: the state, with numeric shapes.
        scratch: the scratch fields.
        tables: types of the tables' numbers, by name.
    """
    action = "Pack" if lay.action_dtype == "float32" else "PackInt"
    numbers = lay.agents * lay.action_size
    state_size = 0 if lay.state_space is None else flat_size(lay.state_space)

    yield "struct State {"
    for name, field in {**fields, **scratch}.items():
        yield f"  {PACKS[field.dtype][0]} {name}{_extent(field)};"
    yield f"  Pack reward[AGENTS], observation[AGENTS * OBSERVATION_SIZE]{', state[STATE_SIZE]' * bool(state_size)};"
    yield f"  {action} action[{numbers}];\n  PackMask terminated;\n  PackInt t;\n  PackBits episode;"
    yield "  PackSeed seed;\n  Config cfg;\n};"
    lengths = {flat_size(lay.observation_spaces[group]) for group in lay.groups}
    yield f"constexpr bool PADDED = {str(len(lengths) > 1).lower()};"

    if action == "Pack":
        yield "GZ Pack legal(Pack raw, int agent, int k) {"
        yield "  const Pack x = select(is_nan(raw), Pack((float)INVALID_ACTION), raw);"
        yield "  return clamp(x, action_low(agent, k), action_high(agent, k));\n}"
    else:
        yield "GZ PackInt legal(PackInt raw, int agent, int k) {"
        yield "  return select(PackBits(raw) < PackBits((u32)choices(agent, k)), raw, PackInt(INVALID_ACTION));\n}"

    for call, move in (("load_fields(const Store &s, const Place &at, State &v)", "fetch({pack}, {memory}, at)"),
                       ("save_fields(const Store &s, const Place &at, PackMask here, const State &v)",
                        "keep({memory}, at, here, {pack})")):  # fmt: skip
        yield f"GZ void {call} {{"
        for name, field in fields.items():
            if not field.shape:
                yield f"  {move.format(pack=f'v.{name}', memory=f's.field_{name}')};"
                continue
            size = int(np.prod(field.sizes))
            each = move.format(pack=f"v.{name}[k]", memory=f"s.field_{name} + k * s.num_envs")
            yield f"  for (int k = 0; k < {size}; ++k) {each};"
        yield "}"

    members: list[tuple[str, str, str]] = []  # type, name, value
    for name, field in {**fields, **scratch}.items():
        kind = PACKS[field.dtype][0]
        if field.shape:
            members.append((f"Array<{kind}, {field.sizes[-1]}>", name, f"{{v.{name}, 1}}"))
        else:
            members.append((f"{kind} &", name, f"v.{name}"))
    for name, c_type in tables.items():
        members.append((f"const {c_type} *", name, f"s.table_{name}"))
    if single and numbers == 1 and lay.action_dtype == "int32":
        members.append(("const PackInt &", "action", "v.action[0]"))
    else:
        members.append(("Actions", "action", "{v.action}"))
    members.append(("Pack &", "reward", "v.reward[0]") if single else ("Pack *", "reward", "v.reward"))
    if single:
        members.append(("Pack *", "observation", "v.observation"))
    else:
        members.append(("Rows<Pack>", "observation", "{v.observation, OBSERVATION_SIZE}"))
    if state_size:
        members.append(("Pack *", "state", "v.state"))
    members += [("PackMask &", "terminated", "v.terminated"), ("const Config &", "cfg", "v.cfg")]
    members += [("const PackSeed &", "seed", "v.seed"), ("PackBits", "episode", "v.episode"), ("PackInt", "t", "v.t")]
    members.append(("int", "max_steps", "max_steps"))

    both = "0, k" if single else "k, 0"
    yield f"struct Actions {{\n  const {action} *data;"
    yield f"  GZ_MEMBER {action} operator()(int agent, int k) const {{ return data[agent * ACTION_SIZE + k]; }}"
    yield f"  GZ_MEMBER {action} operator[](int k) const {{ return (*this)({both}); }}\n}};"
    yield "struct Env {\n  using Number = Pack;\n  using Integer = PackInt;"
    yield from (f"  {kind} {name};" for kind, name, _ in members)
    yield "};"
    values = ",\n          ".join(value for _, _, value in members)
    yield f"GZ Env bind(const Store &s, State &v, int max_steps) {{\n  (void)s;\n  return {{{values}}};\n}}"

    yield "GZ void forget(const Env &e) {\n  (void)e;\n#ifdef GZ_LANE_ORDER"
    for name, field in scratch.items():
        kind, c_type = PACKS[field.dtype]
        garbage = f"{kind}(({'bool' if c_type == 'u8' else c_type})garbage<{c_type}>())"
        if field.shape:
            yield f"  for (int k = 0; k < {int(np.prod(field.sizes))}; ++k) e.{name}[k] = {garbage};"
        else:
            yield f"  e.{name} = {garbage};"
    yield "#endif\n}"


def _extent(field: Field) -> str:
    return f"[{int(np.prod(field.sizes))}]" if field.shape else ""
