"""Scratch arrays: where they lie, and garbage in them for tests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from gpuzoo.core.definition import C_TYPES, Config, EnvDef, Field
from gpuzoo.core.dialect import counts
from gpuzoo.core.layout import Layout, resolve_constants
from gpuzoo.core.tokens import DialectError, Piece
from gpuzoo.core.values import config_types

#: a CPU keeps scratch arrays of up to so many bytes in local variables, as no unknown pointer can lead to them
_NEAR = 1024


def is_near(field: Field) -> bool:
    """Whether a CPU has this array in `State`."""
    return field.scratch and int(np.prod(field.sizes)) * np.dtype(field.dtype).itemsize <= _NEAR


def scratch_code(fields: Mapping[str, Field]) -> Iterable[str]:
    """Where the scratch arrays of an env begin: a GPU's envs run side by side, a CPU's thread runs one at a time."""
    yield "GZ i64 scratch_stride(const Store &s) { return GZ_THREADS ? s.num_envs : 1; }"
    for name, field in fields.items():
        c_type, size, near = C_TYPES[field.dtype], int(np.prod(field.sizes)), is_near(field)
        if not near:
            yield f"#if !GZ_THREADS\nalignas(64) static thread_local {c_type} {name}_of_thread[{size}];\n#endif"
        yield f"GZ {c_type} *scratch_{name}(const Store &s, State &v, i64 i) {{\n  (void)s; (void)v; (void)i;"
        yield f"#if GZ_THREADS\n  return s.field_{name} + field_offset(i, {size});\n#else"
        yield f"  return {f'v.{name}' if near else f'found_once({name}_of_thread)'};\n#endif\n}}"


def forget_code(fields: Mapping[str, Field]) -> Iterable[str]:
    """Fills scratch with garbage before rules are called, in tests and with debug=True: nothing may depend on it."""
    yield "GZ void forget(const Env &e) {\n  (void)e;\n#if defined(GZ_LANE_ORDER) || defined(GZ_DEBUG)"
    for name, field in fields.items():
        c_type, size = C_TYPES[field.dtype], int(np.prod(field.sizes))
        place = f"e.{name}" if field.shape == () else f"e.{name}.data[element_offset(k, e.{name}.num_envs)]"
        yield f"  lanes(e, {size}, [=](int k) {{ (void)k, {place} = garbage<{c_type}>(); }});"
    yield "#endif\n}"


def random_order(rules: Sequence[Piece], env: EnvDef, cfg: Config, lay: Layout) -> dict[str, Field]:
    """The scratch of ``in_random_order``: keys, order, who takes part, and a CPU's buckets and keys in order."""
    sizes = {"AGENTS": lay.agents, **{f"{group.upper()}S": n for group, n in lay.groups.items() if group != "agent"}}
    sizes |= resolve_constants(env, cfg)
    for name, kind in config_types(env.Config).items():
        if kind is int:
            sizes |= dict.fromkeys((f".cfg.{name}", f"Config::{name}"), getattr(cfg, name))
    most = 0
    for place, text in counts(rules, "in_random_order"):
        known = text[text.find(".cfg.") :] if ".cfg." in text else text
        if not text.isdigit() and known not in sizes:
            raise DialectError(
                f"{place}: in_random_order(e, {text}, ...): give AGENTS, the size of a group, a name of constants(), "
                "e.cfg.name where it is an int, or a number, so that there is room for as many."
            )
        most = max(most, 1, int(text) if text.isdigit() else sizes[known])
    return {"random_order": Field("uint32", (5, most), scratch=True)} if most else {}
