"""A table of the kernels of every game: registers, occupancy, loads and stores, and the time that a model predicts.

    python scripts/kernel_report.py [--only REGEX] [--jobs N]    # compiles and traces; writes docs/kernels.json
    python scripts/kernel_report.py --measured FILE              # adds what `gpuzoo bench --device cuda` measured

It needs NVRTC and no GPU. Cases whose programs are those of their rows are left out, and where the compiler makes the
same machine code as before, only that is noted; `--anew` takes all of them.
Registers, local and shared memory are those of the cubin for compute capability 9.0. Kinds of loads and stores are
those of its PTX. Sectors and bytes follow from the addresses of one step, which the host executes (tests/ptx).
docs/kernels.md explains the columns and the model of a step's time.
"""

from __future__ import annotations

import argparse
import ast
import concurrent.futures
import dataclasses
import hashlib
import json
import os
import re
import struct
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from ptx.host import ptx_of  # noqa: E402
from ptx.parse import UnknownInstructionError  # noqa: E402
from ptx.trace import TraceBackend, requests  # noqa: E402

from gpuzoo.core import nvrtc, occupancy  # noqa: E402
from gpuzoo.core.codegen import Program  # noqa: E402
from gpuzoo.core.configuration import split_config  # noqa: E402
from gpuzoo.core.files import replacing  # noqa: E402
from gpuzoo.core.programs import program  # noqa: E402
from gpuzoo.core.simulator import Simulator  # noqa: E402
from gpuzoo.tools import bench, roofline  # noqa: E402

Row = dict[str, Any]

FILE = ROOT / "docs/kernels.json"
ARCH = "sm_90"
COLUMNS = 1  #: counted up when a row says something else of the same kernel; then all rows are made anew
KERNELS = ("step", "rollout")
BANDWIDTH = 4.3e12  #: bytes per second of an H200's memory
SMS, CLOCK = 132, 1.755e9
SECTOR = 32
SECTORS_PER_CLOCK = 2  #: between an SM and the L2 cache
MOST_BLOCKS = 32  #: of an SM


def program_of(case: bench.Case) -> Program:
    """The program of a case."""
    cfg, per_env = split_config(case.env, 1, dict(case.config))
    return program(case.env, cfg, per_env)


def rules(path: str) -> str:
    """A module's code, without comments and docstrings."""
    tree = ast.parse(Path(path).read_text())
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(node) is not None:
            node.body[0] = ast.Pass()
    return ast.unparse(tree)


def program_text(code: str) -> str:
    """A translation unit without comments, line marks and blank lines."""
    lines = (re.sub(r"\s*//.*", "", line) for line in code.splitlines() if not line.startswith("#line"))
    return "\n".join(filter(None, lines))


def source(made: Program) -> str:
    """What its kernels depend on: the program, NVRTC and its options, and the rules by which bounds are chosen."""
    parts = [program_text(made.code), nvrtc.version(), *nvrtc.OPTIONS, rules(occupancy.__file__), str(COLUMNS)]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def simulator(case: bench.Case, head: str = "") -> Simulator:
    """A batch whose kernels can be traced: two blocks, or two envs. ``head`` stands before the programs' code."""
    lanes = case.env.lanes(case.env.Config(**case.config)) if case.config else case.env.lanes(case.env.Config())
    return Simulator(
        case.env, max(2, 256 // lanes), backend=TraceBackend(head), autoreset_mode="same_step", **case.config
    )


def resident_threads(usage: occupancy.Usage, block: int) -> float:
    """The share of an SM's threads that a kernel can have at a time."""
    most = occupancy.most_threads(ARCH)
    by_memory = occupancy.resident(usage.registers, block), occupancy.roomy(usage.shared, ARCH)
    blocks = min(*by_memory, most // block, MOST_BLOCKS)
    return blocks * block / most


def instructions(ptx: str, kernel: str) -> tuple[dict[str, int], dict[str, int], int]:
    """Loads and stores of global memory in the text of a kernel, by bytes; and those without a state space."""
    start = ptx.index(f".entry gz_{kernel}(")
    end = ptx.find(".entry", start + 1)
    found: dict[str, Counter[str]] = {"ld": Counter(), "st": Counter()}
    generic = 0
    pattern = r"^\s*(?:@!?%p\d+\s+)?(ld|st|atom|red)((?:\.\w+)*?)(?:\.v(\d))?\.[busf](\d+)\s"
    for what, words, vector, bits in re.findall(pattern, ptx[start:end], re.M):
        spaces = set(words.split(".")) & {"global", "shared", "local", "param", "const"}
        generic += not spaces
        if spaces == {"global"} and what in found:
            found[what][str(int(bits) // 8 * int(vector or 1))] += 1
    return dict(found["ld"]), dict(found["st"]), generic


def addresses(sim: Simulator) -> dict[str, tuple[int, int]]:
    """Where the arrays of a batch lie: first address and bytes."""
    members = dict(zip(sim.program.store, sim._members.tolist(), strict=True))
    sizes = {sim.backend.address(array): int(array.nbytes) for array in sim._owned}
    return {name: (start, sizes[start]) for name, start in members.items() if start in sizes}


def traced(sim: Simulator) -> Row:
    """Requests and bytes of one step in the middle of episodes."""
    backend = sim.backend
    assert isinstance(backend, TraceBackend)
    sim.reset(seed=0)
    for step in range(4):
        sim.random_actions()
        if step == 3:
            backend.start()
        sim.step()
    accesses = backend.stop()
    places = addresses(sim)
    loads, stores = (requests(accesses, store, places) for store in (False, True))
    # An env whose episode ends writes a second row. Where all of them end, as those of bandits, it is no exception.
    ended = np.asarray(sim.arrays["ended"])
    goes_on = np.where(ended.all(), True, ~ended)
    rows = {}
    for name in ("observation", "action_mask"):
        if name not in places:
            continue
        row_bytes = places[name][1] // sim.num_envs
        env = (accesses["address"] - np.uint64(places[name][0])) // np.uint64(row_bytes)
        chosen = accesses[goes_on[np.minimum(env, np.uint64(sim.num_envs - 1))]]
        found = requests(chosen, True, {name: places[name]})
        rows[name] = row_bytes, found.sectors / max(1, found.distinct) / (1 + ended.all())
    moved = SECTOR * (loads.distinct + stores.distinct) / sim.num_envs
    requested = (loads.sectors + stores.sectors) / sim.num_envs
    return {
        "sectors_per_load": loads.sectors / max(1, loads.requests),
        "sectors_per_store": stores.sectors / max(1, stores.requests),
        "row_bytes": rows["observation"][0],
        "row_sectors": rows["observation"][1],
        "mask_bytes": rows.get("action_mask", (0, 1.0))[0],
        "mask_sectors": rows.get("action_mask", (0, 1.0))[1],
        "bytes": moved,
        "fewest_bytes": roofline.step_bytes(sim.program),
        "predicted_steps_per_second": 1 / max(moved / BANDWIDTH, requested / (SMS * CLOCK * SECTORS_PER_CLOCK)),
    }


def machine_code(cubin: bytes) -> dict[str, bytes]:
    """The instructions of each kernel, with those of the functions that it calls, from an ELF file."""
    (start,) = struct.unpack_from("<Q", cubin, 40)
    size, count, named = struct.unpack_from("<HHH", cubin, 58)
    sections = [struct.unpack_from("<IIQQQQIIQQ", cubin, start + k * size) for k in range(count)]
    found, names = {}, sections[named][4]
    for name, _, _, _, offset, length, *_ in sections:
        text = cubin[names + name : cubin.index(b"\0", names + name)].decode()
        if text.startswith(".text.gz_"):
            found[text.removeprefix(".text.gz_")] = cubin[offset : offset + length]
    return found


def code_of(cubin: bytes) -> dict[str, Row]:
    """How many bytes each kernel's code has, and which they are."""
    codes = {kernel: machine_code(cubin)[kernel] for kernel in KERNELS}
    return {k: {"code": len(code), "text": hashlib.sha256(code).hexdigest()[:16]} for k, code in codes.items()}


def compiled(made: Program, cubin: occupancy.Bounded | None = None) -> tuple[dict[str, Row], str]:
    """What the compiler made of a program, by kernel, and the macros that it was given as a head of the code."""
    cubin = cubin or nvrtc.bounded_cubin(made.code, made.env.id, ARCH, made.block)
    head = "".join(f"#define {option[2:].replace('=', ' ')}\n" for option in cubin.options)
    usage, ptx = occupancy.usage(cubin.log), ptx_of(head + made.code, made.env.id)
    rows = {}
    for kernel in KERNELS:
        loads, stores, generic = instructions(ptx, kernel)
        rows[kernel] = {
            **dataclasses.asdict(usage[kernel]),
            **code_of(cubin.cubin)[kernel],
            "occupancy": resident_threads(usage[kernel], made.block),
            "rolled": occupancy.ROLLED[0] in cubin.options,
            "loads": loads,
            "stores": stores,
            "generic": generic,
        }
    return rows, head


def renewed(case: bench.Case, made: Program, cubin: bytes) -> list[Row]:
    """The rows of a case if the compiler made the same machine code again: then what they say holds. Else none."""
    rows = [row for row in read() if (row["id"], row["case"]) == (case.env.id, case.name)]
    codes = code_of(cubin)
    if len(rows) < len(KERNELS) or any(row.get("text") != codes[row["kernel"]]["text"] for row in rows):
        return []
    return [row | {"source": source(made)} for row in rows]


def report(case: bench.Case, anew: bool = True) -> list[Row]:
    """The rows of one case, one per kernel; the step is traced, if the host can execute it.

    Args:
        case: the case.
        anew: whether it is traced even if its machine code is that of its rows.
    """
    made = program_of(case)
    cubin = nvrtc.bounded_cubin(made.code, made.env.id, ARCH, made.block)
    if not anew and (rows := renewed(case, made, cubin.cubin)):
        return rows
    of_kernels, head = compiled(made, cubin)
    first = {"id": case.env.id, "case": case.name, "source": source(made), "lanes": made.lanes, "block": made.block}
    rows = [{**first, "kernel": kernel, **row} for kernel, row in of_kernels.items()]
    try:
        sim = simulator(case, head)
    except UnknownInstructionError as error:
        print(f"{case.env.id} {case.name} is not traced: {error}", file=sys.stderr)
        return rows
    rows[0] |= traced(sim)
    sim.close()
    return rows


def report_by_name(env_id: str, name: str, anew: bool) -> list[Row]:
    """For another process."""
    return report(next(case for case in bench.cases(f"^{re.escape(env_id)} ") if case.name == name), anew)


def read() -> list[Row]:
    """The rows that are in the documentation."""
    rows: list[Row] = json.loads(FILE.read_text()) if FILE.exists() else []
    return rows


def write(rows: list[Row]) -> None:
    """Puts rows into the documentation; of a kernel that has one it takes the place, and keeps what was measured."""
    by_key = {(row["id"], row["case"], row["kernel"]): row for row in read()}
    for row in rows:
        key = (row["id"], row["case"], row["kernel"])
        kept = {name: x for name, x in by_key.get(key, {}).items() if name.startswith("measured")}
        by_key[key] = {name: round(x, 4) if isinstance(x, float) else x for name, x in {**kept, **row}.items()}
    known = {(case.env.id, case.name) for case in bench.cases()}
    lines = [json.dumps(row) for key, row in sorted(by_key.items()) if key[:2] in known]
    with replacing(FILE) as file:  # other processes of the report read it meanwhile
        file.write(("[\n" + ",\n".join(lines) + "\n]\n").encode())


def measured(path: Path) -> None:
    """Adds the figures of a GPU, from the rows of `gpuzoo bench`."""
    names = {"step": "steps_per_second", "rollout": "rollout_steps_per_second"}
    rows = read()
    for line in path.read_text().splitlines():
        try:
            found = json.loads(line)
        except ValueError:  # a file that was cut off
            continue
        if found.get("kind") != "game" or not str(found.get("device")).startswith("cuda"):
            continue
        for row in rows:
            rate = found.get(names[row["kernel"]])
            if (row["id"], row["case"]) == (found["id"], found["case"]) and rate:
                row["measured_steps_per_second"] = rate
    write(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", default="", help="cases whose id and name this expression matches")
    parser.add_argument("--measured", type=Path, help="rows of `gpuzoo bench --device cuda --json FILE`")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes")
    parser.add_argument("--anew", action="store_true", help="also those whose source has not changed")
    args = parser.parse_args()
    if args.measured:
        measured(args.measured)
        return
    known = set() if args.anew else {(row["id"], row["case"], row.get("source")) for row in read()}
    write([])  # without cases that are gone
    cases = [case for case in bench.cases(args.only) if (case.env.id, case.name, source(program_of(case))) not in known]
    failed: list[str] = []
    with concurrent.futures.ProcessPoolExecutor(args.jobs) as pool:
        pending = {pool.submit(report_by_name, case.env.id, case.name, args.anew): case for case in cases}
        for done in concurrent.futures.as_completed(pending):
            case = pending[done]
            if error := done.exception():
                failed.append(f"{case.env.id} {case.name}: {error}")
                continue
            write(done.result())
            print(case.env.id, case.name, json.dumps(done.result()[0]), flush=True)
    if failed:
        sys.exit("\n".join(failed))


if __name__ == "__main__":
    main()
