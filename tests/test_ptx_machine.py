"""The machine that executes PTX in tests: instructions do what the PTX ISA says, and faults are found."""

from __future__ import annotations

import math
import struct
import sys

import numpy as np
import pytest
from ptx.host import load
from ptx.translate import UnknownInstructionError

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the machine is for Linux, as NVRTC is")

SIZES = {"p": 1, "h": 16, "r": 32, "f": 32, "d": 64}
REGISTERS = ".reg .pred %p<9>; .reg .b16 %h<9>; .reg .b32 %r<9>; .reg .b64 %d<9>; .reg .f32 %f<9>;"


def kernel(body, parameters=".param .u64 out", directives="", module=""):
    head = f".version 8.0\n.target sm_90\n.address_size 64\n{module}\n.visible .entry run({parameters}) {directives}"
    return f"{head}\n{{\n{REGISTERS}\nld.param.u64 %d0, [out];\nmov.u32 %r0, %tid.x;\n{body}\nret;\n}}\n"


def run(text, out, *more, grid=(1,), block=(1,), shared=0):
    numbers = np.array([out.ctypes.data, *more], np.uint64)
    load(text, "machine")["run"](grid, block, numbers.tobytes(), shared)
    return out.tolist()


def run_in_all_orders(text, count, block):
    """The results of three launches: each takes another order of the threads."""
    return [run(text, np.zeros(count, np.uint32), block=(block,)) for _ in range(3)]


# ---- instructions ----


def low(x, bits=32):
    return x & (1 << bits) - 1


def signed(x, bits=32):
    return low(x, bits) - (low(x, bits) >> bits - 1 << bits)


def f32(x):
    return np.uint32(low(x)).view(np.float32)


def bits(x):
    """Of a float that the hardware computes."""
    return 0x7FFFFFFF if np.isnan(x) else int(np.float32(x).view(np.uint32))


def integer(x, least, most, rounding):
    x = float(x)
    return 0 if math.isnan(x) else least if x < least else most if x > most else rounding(x)


def smaller(a, b):
    if np.isnan(a) or np.isnan(b):
        return b if np.isnan(a) else a
    return min((a, np.copysign(1, a)), (b, np.copysign(1, b)))[0]


def permuted(a, b, selector):
    source = struct.pack("<II", a, b)
    chosen = [selector >> 4 * k & 15 for k in range(4)]
    return sum((255 * (source[s & 7] >> 7) if s & 8 else source[s]) << 8 * k for k, s in enumerate(chosen))


def field(a, start, length, size, sign):
    start, length = start & 255, length & 255
    fill = sign and length > 0 and a >> min(start + length - 1, size - 1) & 1
    return sum((a >> start + k & 1 if k < length and start + k < size else fill) << k for k in range(size))


def inserted(a, b, start, length):
    for k in range(start & 255, min((start & 255) + (length & 255), 32)):
        b = b & ~(1 << k) | (a >> k - (start & 255) & 1) << k
    return b


def quotient(a, b):
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1) if b else -1


#: an instruction, the registers of its result and operands, and the result from the operands' bits
CASES = {
    "add.s32 r r r": lambda a, b: a + b,
    "sub.s16 h h h": lambda a, b: a - b,
    "mul.lo.s32 r r r": lambda a, b: a * b,
    "mul.hi.s32 r r r": lambda a, b: signed(a) * signed(b) >> 32,
    "mul.hi.u64 d d d": lambda a, b: a * b >> 64,
    "mul.wide.s32 d r r": lambda a, b: signed(a) * signed(b),
    "mul.wide.u16 r h h": lambda a, b: a * b,
    "mad.lo.s64 d d d d": lambda a, b, c: a * b + c,
    "mad.wide.u32 d r r d": lambda a, b, c: a * b + c,
    "div.s32 r r r": lambda a, b: quotient(signed(a), signed(b)),
    "rem.s32 r r r": lambda a, b: signed(a) - signed(b) * quotient(signed(a), signed(b)),
    "neg.s32 r r": lambda a: -a,
    "abs.s32 r r": lambda a: abs(signed(a)),
    "min.s64 d d d": lambda a, b: min(signed(a, 64), signed(b, 64)),
    "max.u32 r r r": max,
    "not.b64 d d": lambda a: ~a,
    "xor.b16 h h h": lambda a, b: a ^ b,
    "shl.b32 r r r": lambda a, b: a << min(b, 32),
    "shr.s32 r r r": lambda a, b: signed(a) >> min(b, 31),
    "shr.u64 d d r": lambda a, b: a >> min(b, 64),
    "shf.l.wrap.b32 r r r r": lambda a, b, c: (b << 32 | a) << (c & 31) >> 32,
    "shf.r.wrap.b32 r r r r": lambda a, b, c: (b << 32 | a) >> (c & 31),
    "shf.r.clamp.b32 r r r r": lambda a, b, c: (b << 32 | a) >> min(c, 32),
    "popc.b64 r d": lambda a: bin(a).count("1"),
    "clz.b32 r r": lambda a: 32 - a.bit_length(),
    "brev.b32 r r": lambda a: int(f"{a:032b}"[::-1], 2),
    "bfe.s32 r r r r": lambda a, b, c: field(a, b, c, 32, True),
    "bfe.u64 d d r r": lambda a, b, c: field(a, b, c, 64, False),
    "bfi.b32 r r r r r": lambda a, b, c, d: inserted(a, b, c, d),
    "prmt.b32 r r r r": permuted,
    "cvt.s64.s8 d h": lambda a: signed(a, 8),
    "cvt.u16.u32 h r": lambda a: a,
    "cvt.rn.f32.u64 f d": lambda a: bits(np.uint64(a).astype(np.float32)),
    "cvt.rn.f32.s32 f r": lambda a: bits(np.int32(signed(a)).astype(np.float32)),
    "cvt.rzi.s32.f32 r f": lambda a: integer(f32(a), -(2**31), 2**31 - 1, math.trunc),
    "cvt.rni.u16.f32 h f": lambda a: integer(f32(a), 0, 2**16 - 1, round),
    "cvt.rmi.f32.f32 f f": lambda a: bits(np.floor(f32(a))),
    "add.rn.f32 f f f": lambda a, b: bits(f32(a) + f32(b)),
    "mul.rn.f32 f f f": lambda a, b: bits(f32(a) * f32(b)),
    "div.rn.f32 f f f": lambda a, b: bits(f32(a) / f32(b)),
    "rcp.rn.f32 f f": lambda a: bits(np.float32(1) / f32(a)),
    "sqrt.rn.f32 f f": lambda a: bits(np.sqrt(f32(a))),
    "neg.f32 f f": lambda a: bits(-f32(a)),
    "min.f32 f f f": lambda a, b: bits(smaller(f32(a), f32(b))),
    "max.f32 f f f": lambda a, b: bits(-smaller(-f32(a), -f32(b))),
    "mov.b32 f f": lambda a: a,  # every NaN is kept as it is
    "setp.lt.s32 p r r": lambda a, b: signed(a) < signed(b),
    "setp.lt.f32 p f f": lambda a, b: f32(a) < f32(b),
    "setp.ne.f32 p f f": lambda a, b: f32(a) < f32(b) or f32(a) > f32(b),
    "setp.neu.f32 p f f": lambda a, b: f32(a) != f32(b),
    "setp.equ.f32 p f f": lambda a, b: not (f32(a) < f32(b) or f32(a) > f32(b)),
    "setp.ltu.f32 p f f": lambda a, b: not f32(a) >= f32(b),
    "setp.num.f32 p f f": lambda a, b: not (np.isnan(f32(a)) or np.isnan(f32(b))),
}


def operands():
    """Four words of 64 bits per row, of which instructions take the low bits."""
    rng = np.random.default_rng(1)
    edges = [0, 1, 5, 31, 32, 33, 64, 0x7FFF, 0x8000, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 2**63, 2**64 - 1]
    floats = [1, -1, 0.5, 1.5, -2.5, 3.1e9, -3.1e9, 65535.5, 1e-40, math.inf, -math.inf]
    edges += [0x7FC00000, 0xFFC00001, *(bits(x) for x in floats)]
    words = rng.choice(np.array(edges, np.uint64), (300, 4))
    words[150:] ^= rng.integers(0, 2**64, (150, 4), np.uint64) * (rng.random((150, 4)) < 0.5).astype(np.uint64)
    return words


def test_instructions_compute_what_the_isa_says():
    words = operands()
    body = ["ld.param.u64 %d7, [words];", "mul.wide.u32 %d6, %r0, 32;", "add.s64 %d7, %d7, %d6;"]
    body += ["ld.global.v2.u64 {%d1, %d2}, [%d7]; ld.global.nc.v2.b64 {%d3, %d4}, [%d7+16];"]
    for k in range(1, 5):
        body += [f"cvt.u32.u64 %r{k}, %d{k};", f"cvt.u16.u64 %h{k}, %d{k};", f"mov.b32 %f{k}, %r{k};"]
    body += [f"mul.wide.u32 %d6, %r0, {8 * len(CASES)};", "add.s64 %d0, %d0, %d6;"]
    widen = {"d": "", "r": "cvt.u64.u32 %d8, %r8;", "h": "cvt.u64.u16 %d8, %h8;", "p": "selp.u64 %d8, 1, 0, %p8;"}
    widen["f"] = f"mov.b32 %r8, %f8; {widen['r']}"
    for k, case in enumerate(CASES):
        opcode, result, *kinds = case.split()
        body.append(f"{opcode} %{result}8, {', '.join(f'%{kind}{n}' for n, kind in enumerate(kinds, 1))};")
        body.append(f"{widen[result]} st.global.u64 [%d0+{8 * k}], %d8;")
    found = np.zeros((len(words), len(CASES)), np.uint64)
    run(kernel("\n".join(body), ".param .u64 out, .param .u64 words"), found, words.ctypes.data, block=(len(words),))
    with np.errstate(all="ignore"):
        for k, (case, compute) in enumerate(CASES.items()):
            _, result, *kinds = case.split()
            for row, value in zip(words.tolist(), found[:, k].tolist(), strict=True):
                taken = [low(word, SIZES[kind]) for word, kind in zip(row, kinds, strict=False)]
                assert value == low(int(compute(*taken)), SIZES[result]), (case, list(map(hex, taken)))


@pytest.mark.one_case
@pytest.mark.parametrize(("mode", "by", "limits", "source"), [
    ("bfly", 5, 31, lambda k: k ^ 5),
    ("bfly", 2, 0x1C03, lambda k: k ^ 2),
    ("up", 3, 0, lambda k: k - 3 if k >= 3 else k),
    ("down", 3, 31, lambda k: k + 3 if k < 29 else k),
    ("idx", 6, 31, lambda k: 6),
    ("idx", 6, 0x1807, lambda k: k // 8 * 8 + 6),
])  # fmt: skip
def test_shuffles(mode, by, limits, source):
    body = f"""mul.lo.u32 %r1, %r0, 7; shfl.sync.{mode}.b32 %r2|%p1, %r1, {by}, {limits}, -1;
               mul.wide.u32 %d1, %r0, 4; add.s64 %d1, %d0, %d1; st.global.u32 [%d1], %r2;"""
    assert run_in_all_orders(kernel(body), 32, 32) == [[7 * source(k) for k in range(32)]] * 3


BARRIER = "bar.sync 0;"
#: each thread writes a word of shared memory, and reads its neighbour's
NEIGHBOURS = """shl.b32 %r1, %r0, 2; mov.u32 %r2, cells; add.s32 %r3, %r2, %r1; st.shared.u32 [%r3], %r0;
{}
xor.b32 %r4, %r1, 4; add.s32 %r3, %r2, %r4; ld.shared.u32 %r5, [%r3];
mul.wide.u32 %d1, %r0, 4; add.s64 %d1, %d0, %d1; st.global.u32 [%d1], %r5;"""


@pytest.mark.one_case
@pytest.mark.parametrize("barrier", [BARRIER, "bar.warp.sync -1;", "bar.warp.sync 15;", ""])
def test_a_missing_barrier_shows_in_some_order(barrier):
    block = 4 if "15" in barrier else 64
    text = kernel(NEIGHBOURS.format(barrier), module=".shared .align 4 .b8 cells[256];")
    results = run_in_all_orders(text, block, block)
    assert (results == [[k ^ 1 for k in range(block)]] * 3) == bool(barrier)


def test_dynamic_shared_memory_and_three_axes():
    module = ".shared .align 4 .b8 before[4]; .extern .shared .align 16 .b8 cells[];"
    body = """mov.u32 %r1, %tid.y; mov.u32 %r2, %ntid.x; mad.lo.s32 %r0, %r1, %r2, %r0; shl.b32 %r1, %r0, 2;
              mov.u32 %r2, cells; add.s32 %r3, %r2, %r1; st.shared.u32 [%r3], %r0; bar.sync 0;
              xor.b32 %r4, %r1, 4; add.s32 %r3, %r2, %r4; cvt.u64.u32 %d2, %r3; cvta.shared.u64 %d2, %d2;
              ld.u32 %r5, [%d2]; mul.wide.u32 %d1, %r0, 4; add.s64 %d1, %d0, %d1; st.global.u32 [%d1], %r5;"""
    out = run(kernel(body, module=module), np.zeros(8, np.uint32), block=(4, 2), shared=32)
    assert out == [k ^ 1 for k in range(8)]


def test_structs_by_value():
    """Read directly, and at an address that is computed."""
    body = """ld.param.u32 %r1, [some+8]; mov.b64 %d1, some; cvta.param.u64 %d2, %d1; ld.u32 %r2, [%d2+12];
              add.s64 %d3, %d1, 16; ld.param.v2.u32 {%r3, %r4}, [%d3];
              st.global.v2.u32 [%d0], {%r1, %r2}; st.global.v2.u32 [%d0+8], {%r3, %r4};"""
    text = kernel(body, ".param .u64 .ptr .align 8 out, .param .align 8 .b8 some[24]")
    words = np.arange(6, dtype=np.uint32).view(np.uint64)
    assert run(text, np.zeros(4, np.uint32), *words.tolist()) == [2, 3, 4, 5]


def test_an_indexed_branch_atomics_and_votes():
    body = """and.b32 %r1, %r0, 3; $T: .branchtargets $A, $B, $A, $C; brx.idx.uni %r1, $T;
              $A: mov.u32 %r2, 10; bra.uni $E; $B: mov.u32 %r2, 20; bra $E; $C: mov.u32 %r2, 30;
              $E: atom.global.add.u32 %r3, [%d0], %r2; red.global.max.u32 [%d0+4], %r2;
              setp.eq.u32 %p1, %r2, 20; vote.sync.ballot.b32 %r4, %p1, -1; @%p1 st.global.u32 [%d0+8], %r4;"""
    assert run_in_all_orders(kernel(body), 3, 32) == [[17 * 10 - 10 + 20 * 8 + 30 * 8, 30, 0x22222222]] * 3


@pytest.mark.parametrize("inside", [False, True])
def test_functions(inside):
    """With arguments and a result, called by another function, with a barrier and perhaps shared memory inside."""
    shared = ".shared .align 4 .b8 cells[256];"
    module = """OUTSIDE
    .func (.param .b32 back) swapped(.param .b32 index, .param .align 8 .b8 pair[16]);
    .func (.param .b32 back) swapped(.param .b32 index, .param .align 8 .b8 pair[16]) {
      INSIDE
      .reg .b32 %r<9>; ld.param.u32 %r1, [index]; ld.param.u32 %r6, [pair+12]; shl.b32 %r1, %r1, 2; mov.u32 %r2, cells;
      add.s32 %r3, %r2, %r1; st.shared.u32 [%r3], %r6; bar.sync 0; xor.b32 %r4, %r1, 4; add.s32 %r3, %r2, %r4;
      ld.shared.u32 %r5, [%r3]; st.param.b32 [back], %r5; ret;
    }
    .func stored(.param .b64 place, .param .b32 index) {
      .reg .b32 %r<9>; .reg .b64 %d<9>; ld.param.u32 %r1, [index]; ld.param.u64 %d1, [place]; cvt.u64.u32 %d2, %r1;
      { .param .b32 first; st.param.b32 [first], %r1;
        .param .align 8 .b8 second[16]; st.param.v2.b32 [second+8], {%r1, %r1};
        .param .b32 result; call.uni (result), swapped, (first, second); ld.param.b32 %r2, [result]; }
      mul.lo.s64 %d2, %d2, 4; add.s64 %d1, %d1, %d2; st.u32 [%d1], %r2; ret;
    }"""
    module = module.replace("INSIDE", shared * inside).replace("OUTSIDE", shared * (not inside))
    body = """{ .param .b64 first; st.param.b64 [first], %d0; .param .b32 second; st.param.b32 [second], %r0;
                call.uni stored, (first, second); }"""
    assert run_in_all_orders(kernel(body, module=module), 64, 64) == [[k ^ 1 for k in range(64)]] * 3


# ---- faults ----


@pytest.mark.parametrize("line", [
    "add.f32 %f1, %f2, %f3;", "add.rn.ftz.f32 %f1, %f2, %f3;", "div.approx.f32 %f1, %f2, %f3;",
    "fma.rn.f64 %d1, %d2, %d3, %d4;", "cvt.sat.f32.f32 %f1, %f2;", "atom.global.add.f32 %f1, [%d0], %f2;",
    "cp.async.ca.shared.global [%r1], [%d0], 16;", "bar.sync 1;", "mov.u32 %r1, %clock;", "ld.global.u32 %r1, [%x];",
    "call.uni vprintf, ();", "add.s32 %r1, %r2;",
])  # fmt: skip
def test_an_unknown_instruction_is_named(line):
    with pytest.raises(UnknownInstructionError) as error:
        load(kernel(line), "unknown")
    assert "which is in run" in str(error.value)
    assert any(word.strip("[];,") in str(error.value) for word in (line.split()[0], line.split()[-1]))


@pytest.mark.one_case
@pytest.mark.parametrize(("body", "message"), [
    ("add.s64 %d0, %d0, 2; st.global.u32 [%d0], %r0;", "run: an address is no multiple of the size that is accessed"),
    ("ld.global.v2.u32 {%r1, %r2}, [%d0+4];", "run: an address is no multiple"),
    ("setp.eq.u32 %p1, %r0, 1; @%p1 bra $E; bar.warp.sync -1; $E:", "thread 0 waits at bar.warp.sync with mask ffff"),
    ("setp.eq.u32 %p1, %r0, 1; @%p1 bra $A; bar.sync 0; bra $E; $A: bar.sync 0; $E:", "at two different bar.sync"),
    ("shfl.sync.idx.b32 %r1, %r0, 20, 31, 65535;", "lane 16 waits at shfl.sync and is not in its mask"),
    ("setp.lt.u32 %p1, %r0, 16; @!%p1 bra $E; shfl.sync.idx.b32 %r1, %r0, 20, 31, 65535; $E:", "from lane 20"),
    ("trap;", "run: it came to a trap"),
])  # fmt: skip
def test_a_fault_is_found(body, message):
    with pytest.raises(RuntimeError, match=message):
        run(kernel(body), np.zeros(64, np.uint64), block=(32,))


@pytest.mark.parametrize(("grid", "block", "more", "message"), [
    ((0,), (32,), (), r"run: grid \(0,\) and block"),
    ((1,), (65,), (), "with at most 64 threads"),
    ((1,), (32,), (1,), "takes 8 bytes of arguments, not 16"),
])  # fmt: skip
def test_a_launch_that_a_driver_would_refuse(grid, block, more, message):
    with pytest.raises(ValueError, match=message):
        run(kernel("", directives=".maxntid 64, 1, 1"), np.zeros(1, np.uint64), *more, grid=grid, block=block)
