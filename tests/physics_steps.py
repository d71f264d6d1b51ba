"""A model's generated step as a function on arrays: without an engine, in any width, in float32 or in double
precision."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuzoo.core.backend_cpu import compile_host
from gpuzoo.core.headers import DEVICE
from gpuzoo.physics.generate import generate
from gpuzoo.physics.model import Model

ENTRY = """
extern "C" int width() { return sizeof(gz::Vec) / sizeof(gz::Real); }
static __attribute__((noinline)) void step(gz::Physics &state, const gz::Vec *ctrl) { gz::physics_step(state, ctrl); }
extern "C" void run(gz::Vec *states, const gz::Vec *ctrl, const gz::Vec *factors, int packs, int steps) {
  using P = gz::Physics;
  (void)factors;
  for (int i = 0; i < packs; ++i) {
    P state;
    gz::Vec *const qpos = states + i * (P::NQ + 2 * P::NV), *const qvel = qpos + P::NQ, *const qacc = qvel + P::NV;
    for (int k = 0; k < P::NQ; ++k) state.qpos[k] = qpos[k];
    for (int k = 0; k < P::NV; ++k) state.qvel[k] = qvel[k], state.qacc[k] = qacc[k];
    VARY
    for (int n = 0; n < steps; ++n) step(state, ctrl + i * P::NU);
    for (int k = 0; k < P::NQ; ++k) qpos[k] = state.qpos[k];
    for (int k = 0; k < P::NV; ++k) qvel[k] = state.qvel[k], qacc[k] = state.qacc[k];
  }
}
"""


def program(model: Model, double: bool = False, width: int | None = None, vary: tuple[str, ...] = ()) -> str:
    """The text that a compiler gets."""
    given = [f"state.{name} = factors[{len(vary)} * i + {k}];" for k, name in enumerate(vary)]
    given += ["gz::physics_derive(state);"] * bool(vary)
    parts = ["#define LANES 1", f"#define VARY {' '.join(given)}"]
    parts += ["#define GZ_PACKED_DOUBLE"] * double + [f"#define GZ_PACK_WIDTH {width}"] * (width is not None)
    parts += [(DEVICE / f"{name}.cuh").read_text() for name in ("base", "math", "rng", "packed")]
    return "\n".join([*parts, "namespace gz {", generate(model, vary=vary), "}", ENTRY])


class Steps:
    """A compiled step."""

    def __init__(
        self,
        model: Model,
        double: bool = False,
        width: int | None = None,
        optimise: str = "-O3",
        vary: tuple[str, ...] = (),
    ) -> None:
        self.vary = vary
        self.model, self.dtype = model, np.dtype(np.float64 if double else np.float32)
        path = compile_host(program(model, double, width, vary), "physics", (optimise,))
        self.library = ctypes.CDLL(str(path))
        self.width: int = self.library.width()

    def _packed(self, x: NDArray[Any]) -> NDArray[Any]:
        """(n, k) -> (packs, k, width), where a vector instruction may read it."""
        n, k = x.shape
        raw = np.zeros(n * k * self.dtype.itemsize + 64, np.uint8)
        start = -raw.ctypes.data % 64
        out = raw[start : start + n * k * self.dtype.itemsize].view(self.dtype).reshape(n // self.width, k, self.width)
        out[:] = x.reshape(n // self.width, self.width, k).swapaxes(1, 2)
        return out

    def __call__(
        self,
        qpos: NDArray[Any],
        qvel: NDArray[Any],
        ctrl: NDArray[Any],
        steps: int = 1,
        qacc: Any = None,
        factors: Any = None,
    ) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """Positions, velocities and where the solver starts next, after some steps of ``(n, ...)`` states.

        ``n`` is a multiple of `width`; ``factors`` are those of `vary`.
        """
        qacc = np.zeros_like(qvel) if qacc is None else qacc
        state, actions = self._packed(np.concatenate([qpos, qvel, qacc], 1)), self._packed(ctrl)
        varied = self._packed(np.zeros((len(qpos), 1)) if factors is None else factors)
        address = [ctypes.c_void_p(x.ctypes.data) for x in (state, actions, varied)]
        self.library.run(*address, len(state), steps)
        flat = state.swapaxes(1, 2).reshape(len(qpos), -1)
        first, second, third = np.cumsum([self.model.nq, self.model.nv, self.model.nv])
        return flat[:, :first], flat[:, first:second], flat[:, second:third]
