"""What rules see: `State`, `Env`, and what moves an env between memory and registers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from gpuzoo.core.definition import C_TYPES, Field
from gpuzoo.core.generated.expressions import pick
from gpuzoo.core.generated.scratch import forget_code, is_near, scratch_code
from gpuzoo.core.layout import Layout, choices, flat_size

#: what rules reach by an index, beside fields and tables
INDEXED = ("action", "terminate", "reward", "terminated", "alive", "observation", "action_mask")
#: so many numbers of a table are compared with its index sooner than a vector gathers them
SHORT_TABLE = 8


def lengths(lay: Layout) -> Iterable[str]:
    """How many numbers an agent's observation and mask have, without padding."""
    observations = {g: flat_size(s) for g, s in lay.observation_spaces.items()}
    masks = {g: sum(choices(s)) if lay.mask_size else 0 for g, s in lay.action_spaces.items()}
    for name, size, by_group in (
        ("observation", lay.observation_size, observations),
        ("action_mask", lay.mask_size, masks),
    ):
        values = [str(by_group[group]) for group, count in lay.groups.items() for _ in range(count)]
        yield f"struct Length_{name} {{"
        yield f"  static constexpr bool PADDED = {str(min(by_group.values()) < size).lower()};"
        yield "  GZ_MEMBER static int of(int agent) {"
        yield f"    (void)agent;\n    return {pick('agent', values)};\n  }}\n}};"


def env_code(program: dict[str, Any]) -> Iterable[str]:
    """`State`, `Env` and what moves an env's scalars between memory and registers."""
    lay: Layout = program["layout"]
    fields: dict[str, Field] = program["fields"] | program["scratch"]
    one_lane, single, branchless = program["lanes"] == 1, program["single"], program["branchless"]
    debug, indexed = program["debug"], program["indexed"]
    scalars = {n: C_TYPES[f.dtype] for n, f in fields.items() if f.shape == ()}
    arrays = {n: f for n, f in fields.items() if f.shape != ()}
    held = {n: c_type for n, c_type in scalars.items() if not fields[n].scratch} if one_lane else {}
    few = {n: f.sizes[0] for n, f in arrays.items()} if branchless else {}
    extra = {"over": "u8"} | {n: c_type for n, c_type in scalars.items() if n not in held} if one_lane else {}
    if branchless:
        extra["terminated"] = "u8"
    parts = {n: f"s.field_{n}[i]" for n in held}  # of State that are kept in memory, and where
    for name, size in few.items():
        place = f"s.field_{name}[field_offset(i, {size}) + element_offset"
        parts |= {f"{name}[{k}]": f"{place}({k}, s.num_envs)]" for k in range(size)}

    yield "struct State {"
    yield from (f"  {c_type} {name};" for name, c_type in (held | extra).items())
    yield from (f"  {C_TYPES[fields[name].dtype]} {name}[{size}];" for name, size in few.items())
    if branchless:
        yield "  float reward[AGENTS];"
    near = {n: f for n, f in program["in_memory"].items() if n not in few and is_near(f)}
    yield "#if !GZ_THREADS"
    yield from (f"  alignas(64) {C_TYPES[f.dtype]} {name}[{int(np.prod(f.sizes))}];" for name, f in near.items())
    yield "#endif\n};"
    yield from scratch_code(program["in_memory"])
    yield "template <class Read> GZ State load(const Store &s, i64 i, Read read) {"
    yield "  (void)s; (void)i; (void)read;\n  State v;"
    yield from (f"  v.{part} = read({place});" for part, place in parts.items())
    yield from (f"  v.{name} = 0;" for name in extra)
    yield "  return v;\n}"
    yield "GZ State load(const Store &s, i64 i) { return load(s, i, [](auto x) { return x; }); }"
    yield "GZ void save(const Store &s, i64 i, const State &v) {\n  (void)s; (void)i; (void)v;"
    yield from (f"  {place} = v.{part};" for part, place in parts.items())
    yield "}"
    yield "GZ State keep(bool kept, const State &before, const State &after) {"
    yield "  State v = after; (void)kept; (void)before;"
    yield from (f"  v.{part} = kept ? before.{part} : after.{part};" for part in parts)
    yield "  return v;\n}"
    yield "GZ void clear(const Store &s, State &v, i64 i) {\n  (void)s; (void)v; (void)i;"
    yield "  v.over = 0;\n}" if one_lane else "  if (lane() == 0) s.over[i] = 0;\n}"

    def pointer(c_type: str, name: str, place: str, size: str | int, part: str = "FLAT") -> tuple[str, str, str]:
        if not debug:
            return f"{c_type} *", name, place
        return f"Pointer<{c_type}> ", name, f"{{{place}, {size}, watch, {indexed.index(name)}, {part}, 0, 0, 0}}"

    def rows(c_type: str, name: str, place: str, columns: str) -> tuple[str, str, str]:
        if not debug:
            return f"Rows<{c_type}> ", name, f"{{{place}, {columns}}}"
        value = f"{{{place}, {columns}, watch, {indexed.index(name)}, OBSERVERS}}"
        return f"Rows<{c_type}, Length_{name}> ", name, value

    members: list[tuple[str, str, str]] = []  # declaration, name, value
    watch = ", watch" if debug else ""
    for name, c_type in scalars.items():
        place = f"*scratch_{name}(s, v, i)" if fields[name].scratch else f"s.field_{name}[i]"
        members.append((f"{c_type} &", name, f"v.{name}" if one_lane else place))
    for name, field in arrays.items():
        size, columns = int(np.prod(field.sizes)), field.sizes[-1]
        place = f"scratch_{name}(s, v, i)" if field.scratch else f"s.field_{name} + field_offset(i, {size})"
        checked = f"{watch}, {indexed.index(name)}, {size}" if debug else ""
        stride = "scratch_stride(s)" if field.scratch else "s.num_envs"
        if name in few:
            place, stride = f"v.{name}", "1"
        members.append((f"Array<{C_TYPES[field.dtype]}, {columns}> ", name, f"{{{place}, {stride}{checked}}}"))
    for name, table in program["tables"].items():
        c_type = C_TYPES[str(table.dtype)]
        if branchless and table.size <= SHORT_TABLE and not debug:
            members.append((f"ShortTable<{c_type}, {table.size}> ", name, f"{{s.table_{name}}}"))
        else:
            members.append(pointer(f"const {c_type}", name, f"s.table_{name}", table.size))
    agent = "i" if lay.agents == 1 else "i * AGENTS"
    observer = "i" if lay.observers == 1 else "i * OBSERVERS"
    masks = f"s.action_mask + {observer} * MASK_SIZE"
    mask = masks if lay.mask_size else "nullptr"
    seen = "s.observation + i * row_size(s)"
    if single:
        if lay.action_size == 1 and lay.action_dtype == "int32":
            members.append(("const int ", "action", f"legal_action(s.action[i], {mask}, 0, 0)"))
        else:
            members.append(("Actions ", "action", f"{{s.action + i * ACTION_SIZE, {mask}{watch}}}"))
        members.append(("float &", "reward", "v.reward[0]" if branchless else "s.reward[i]"))
        members.append(("u8 &", "terminated", "v.terminated" if branchless else "s.terminated[i]"))
        members.append(pointer("Observation", "observation", seen, "OBSERVATION_SIZE", "NUMBER_OF"))
        if lay.mask_size:
            members.append(pointer("i8", "action_mask", "s.action_mask + i * MASK_SIZE", "MASK_SIZE", "NUMBER_OF"))
    else:
        members.append(("Actions ", "action", f"{{s.action + {agent} * ACTION_SIZE, {mask}{watch}}}"))
        reward = "v.reward" if branchless else f"s.reward + {agent}"
        members.append(pointer("float", "reward", reward, "AGENTS"))
        if program["form"].packed:
            members.append(("u8 &", "terminated", "v.over"))
        elif not branchless:
            members.append(pointer("u8", "terminated", f"s.terminated + {agent}", "AGENTS"))
            members.append(pointer("const u8", "alive", f"s.alive + {agent}", "AGENTS"))
        members.append(rows("Observation", "observation", seen, "OBSERVATION_SIZE"))
        if lay.mask_size:
            members.append(rows("i8", "action_mask", masks, "MASK_SIZE"))
    if program["windowed"]:  # where rows belong whose parts are assembled elsewhere
        members.append(("Observation *", "gz_rows", seen))
        if lay.mask_size:
            members.append(("i8 *", "gz_mask_rows", masks))
    if lay.state_space is not None:
        members.append(pointer("StateNumber", "state", "nullptr", "STATE_SIZE"))
    members.append(("u8 &", "over", "v.over" if one_lane else "s.over[i]"))
    members.append(("Config ", "cfg", "load_config(s, i)"))
    members.append(("u64 ", "seed", "s.seed[i]"))
    members.append(("u32 ", "episode", "episode"))
    members.append(("int ", "t", "t"))
    members.append(("int ", "max_steps", "max_steps"))
    if debug:
        members.append(("Watch ", "gz_watch", "watch"))

    # GCC vectorises rows of 1, 2, 3, 4, 8, ... values; others only where it does not know how long they are.
    size = lay.observers * lay.observation_size
    unknown = branchless and size & (size - 1) and size != 3
    yield "GZ i64 row_size(const Store &s) {"
    yield f"  (void)s;\n  return {size}{' + (s.num_envs < 0)' if unknown else ''};\n}}"
    yield from lengths(lay)
    yield "struct Env {\n  using Number = float;\n  using Integer = int;"
    yield from (f"  {c_type}{name};" for c_type, name, _ in members)
    if single or branchless or program["form"].packed:
        pass
    elif not debug:
        yield "  GZ_MEMBER void terminate(int agent) const { terminated[agent] = 1; }"
    else:
        number = indexed.index("terminate")
        yield "  GZ_MEMBER void terminate(const Subscript &agent) const {"
        yield f"    if (gz_watch.admits(agent, AGENTS, {number}, FLAT, 0)) terminated.data[agent.value] = 1;\n  }}"
    yield "  GZ_MEMBER void terminate_all() const { over = 1; }"
    yield "};"
    if (turn := program["env"].turn) is not None:
        all_observe = lay.observers == lay.agents
        yield "GZ int observer(Env e, int row) {"
        yield f"  (void)e; (void)row;\n  return {'row' if all_observe else f'e.{turn}'};\n}}"
        yield "GZ int row_of_mover(Env e) {"
        yield f"  (void)e;\n  return {f'e.{turn}' if all_observe else '0'};\n}}"
    yield "GZ void see(Env &e, Observation *row) {"
    yield f"  e.observation{'' if single and not debug else '.data'} = row;\n}}"
    if lay.mask_size:
        yield "GZ void see_masks(Env &e, i8 *row) {"
        yield f"  e.action_mask{'' if single and not debug else '.data'} = row;\n}}"
    if lay.state_space is not None:
        yield "GZ void see_state(Env &e, StateNumber *row) {"
        yield f"  e.state{'.data' if debug else ''} = row;\n}}"
    yield "GZ Env bind(const Store &s, State &v, i64 i, u32 episode, int t, int max_steps) {\n  (void)v;"
    if debug:
        yield "  const Watch watch = {s.faults + i * LANES + lane(), t};"
    yield "  return {" + ",\n          ".join(value for _, _, value in members) + "};\n}"
    yield from forget_code(program["scratch"])
