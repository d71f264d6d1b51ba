"""What PTX's instructions compute, as C++ over the words of machine.h.

Each is called by its name without types. Forms that may give other bits than IEEE arithmetic are not here, so the
translator refuses them: ``add.f32`` without ``.rn``, which ptxas may fuse with a multiplication; ``.ftz``, ``.approx``,
``.full`` and ``.sat``; doubles, which can only be rounded to floats.

An entry has letters for the types of the result and of the operands, and an expression. `t` is the type that the
instruction ends with, `u` the unsigned type of its size, `w` the type of twice its size, `n` u32, `p` a predicate.
"""

from __future__ import annotations

INTEGERS = {
    "add": ("u=uu", "{0} + {1}"),
    "sub": ("u=uu", "{0} - {1}"),
    "mul.lo": ("u=uu", "(u64){0} * {1}"),
    "mul.hi": ("t=tt", "mul_hi({0}, {1})"),
    "mul.wide": ("w=tt", "({w}){0} * ({w}){1}"),
    "mad.lo": ("u=uuu", "(u64){0} * {1} + {2}"),
    "mad.hi": ("t=ttt", "mul_hi({0}, {1}) + {2}"),
    "mad.wide": ("w=ttw", "({w}){0} * ({w}){1} + {2}"),
    "div": ("t=tt", "quotient({0}, {1})"),
    "rem": ("t=tt", "rest({0}, {1})"),
    "neg": ("u=u", "0 - {0}"),
    "abs": ("t=t", "{0} < 0 ? 0 - {0} : {0}"),
    "min": ("t=tt", "{1} < {0} ? {1} : {0}"),
    "max": ("t=tt", "{1} > {0} ? {1} : {0}"),
    "and": ("u=uu", "{0} & {1}"),
    "or": ("u=uu", "{0} | {1}"),
    "xor": ("u=uu", "{0} ^ {1}"),
    "not": ("u=u", "~{0}"),
    "shl": ("u=un", "shl({0}, {1})"),
    "shr": ("t=tn", "shr({0}, {1})"),
    "shf.l.wrap": ("n=nnn", "shf_l({0}, {1}, {2} & 31)"),
    "shf.r.wrap": ("n=nnn", "shf_r({0}, {1}, {2} & 31)"),
    "shf.l.clamp": ("n=nnn", "shf_l({0}, {1}, clamped({2}))"),
    "shf.r.clamp": ("n=nnn", "shf_r({0}, {1}, clamped({2}))"),
    "popc": ("n=u", "__builtin_popcountll({0})"),
    "clz": ("n=u", "clz({0})"),
    "brev": ("u=u", "brev({0})"),
    "bfe": ("t=tnn", "bfe({0}, {1}, {2})"),
    "bfi": ("u=uunn", "bfi({0}, {1}, {2}, {3})"),
    "prmt": ("n=nnn", "prmt({0}, {1}, {2})"),
    "lop3": ("n=nnnn", "lop3({0}, {1}, {2}, {3})"),
    "selp": ("t=ttp", "{2} ? {0} : {1}"),
    "cvta.shared": ("u=u", "(u64)shared_memory + {0}"),
    "cvta.to.shared": ("u=u", "{0} - (u64)shared_memory"),
    # all other spaces have the host's addresses
    **{f"cvta{way}.{space}": ("u=u", "{0}") for way in ("", ".to") for space in ("global", "const", "local", "param")},
}
FLOATS = {
    "add.rn": ("t=tt", "number({0} + {1})"),
    "sub.rn": ("t=tt", "number({0} - {1})"),
    "mul.rn": ("t=tt", "number({0} * {1})"),
    "fma.rn": ("t=ttt", "number(__builtin_fmaf({0}, {1}, {2}))"),
    "div.rn": ("t=tt", "number({0} / {1})"),
    "rcp.rn": ("t=t", "number(1.f / {0})"),
    "sqrt.rn": ("t=t", "number(__builtin_sqrtf({0}))"),
    "neg": ("t=t", "number(-{0})"),
    "abs": ("t=t", "number(__builtin_fabsf({0}))"),
    "min": ("t=tt", "min_f32({0}, {1})"),
    "max": ("t=tt", "max_f32({0}, {1})"),
    "selp": ("t=ttp", "{2} ? {0} : {1}"),
}
PREDICATES = {
    "and": ("p=pp", "{0} & {1}"),
    "or": ("p=pp", "{0} | {1}"),
    "xor": ("p=pp", "{0} ^ {1}"),
    "not": ("p=p", "!{0}"),
    "mov": ("p=p", "{0}"),
}
ROUNDINGS = {"rni": "rintf", "rzi": "truncf", "rmi": "floorf", "rpi": "ceilf"}
COMPARISONS = {
    "eq": "{0} == {1}", "ne": "{0} != {1}", "lt": "{0} < {1}", "le": "{0} <= {1}", "gt": "{0} > {1}",
    "ge": "{0} >= {1}", "lo": "{0} < {1}", "ls": "{0} <= {1}", "hi": "{0} > {1}", "hs": "{0} >= {1}",
}  # fmt: skip
FLOAT_COMPARISONS = {
    "eq": "{0} == {1}", "lt": "{0} < {1}", "le": "{0} <= {1}", "gt": "{0} > {1}", "ge": "{0} >= {1}",
    "ne": "{0} < {1} || {0} > {1}", "equ": "!({0} < {1} || {0} > {1})", "neu": "!({0} == {1})",
    "ltu": "!({0} >= {1})", "leu": "!({0} > {1})", "gtu": "!({0} <= {1})", "geu": "!({0} < {1})",
    "num": "{0} == {0} && {1} == {1}", "nan": "{0} != {0} || {1} != {1}",
}  # fmt: skip
BOOLEANS = {"and": "&", "or": "|", "xor": "^"}
ATOMICS = {
    "add": "x + {0}", "min": "{0} < x ? {0} : x", "max": "{0} > x ? {0} : x", "and": "x & {0}", "or": "x | {0}",
    "xor": "x ^ {0}", "exch": "{0}", "cas": "x == {0} ? {1} : x",
}  # fmt: skip
SPECIAL = {f"%{name}.{axis}": f"t.{name}.{axis}" for name in ("tid", "ctaid", "ntid", "nctaid") for axis in "xyz"}
SPECIAL |= {"%laneid": "t.index % WARP", "WARP_SZ": "WARP"}
