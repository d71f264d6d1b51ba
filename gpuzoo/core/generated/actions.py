"""How a game reads its actions, and random ones."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from gymnasium import spaces

from gpuzoo.core.generated.env import INDEXED
from gpuzoo.core.generated.expressions import float_literal, per_agent
from gpuzoo.core.layout import Layout, choices


def row_of(agent: str, lay: Layout) -> str:
    """The row of an agent's mask; where only the agent to move has one, nobody reads those of the others."""
    return agent if lay.observers == lay.agents else "0"


def actions_code(lay: Layout, single: bool, debug: bool, chooses: bool) -> Iterable[str]:
    """How a game reads actions: illegal values never reach it."""
    spaces_ = lay.action_spaces
    if lay.action_dtype == "int32":
        rows = {g: [str(n) for n in choices(s)] for g, s in spaces_.items()}
        yield "GZ int choices(int agent, int k) {"
        yield f"  (void)agent; (void)k;\n  return {per_agent(lay, rows, '1')};\n}}"
        offsets = {g: [str(sum(choices(s)[:k])) for k in range(len(choices(s)))] for g, s in spaces_.items()}
        yield "GZ int mask_offset(int agent, int k) {"
        yield f"  (void)agent; (void)k;\n  return {per_agent(lay, offsets, '0')};\n}}"
        yield "GZ int legal_action(Action raw, const i8 *mask, int agent, int k) {"
        yield "  const bool inside = (u32)raw < (u32)choices(agent, k);"
        if lay.mask_size and not chooses:
            yield "  if (!inside || !mask[mask_offset(agent, k) + raw]) return INVALID_ACTION;\n  return raw;\n}"
        else:  # in bits, as g++ makes comparisons of `inside ? raw : INVALID_ACTION` such as it does not vectorise
            yield "  (void)mask;\n  return (raw & -(int)inside) | (INVALID_ACTION & (int)inside - 1);\n}"
    else:
        boxes = {g: s for g, s in spaces_.items() if isinstance(s, spaces.Box)}
        low = {g: [float_literal(x) for x in np.ravel(s.low)] for g, s in boxes.items()}
        high = {g: [float_literal(x) for x in np.ravel(s.high)] for g, s in boxes.items()}
        yield "GZ float action_low(int agent, int k) {"
        yield f"  (void)agent; (void)k;\n  return {per_agent(lay, low, '0.f')};\n}}"
        yield "GZ float action_high(int agent, int k) {"
        yield f"  (void)agent; (void)k;\n  return {per_agent(lay, high, '0.f')};\n}}"
        yield "GZ float legal_action(Action raw, const i8 *, int agent, int k) {"
        yield "  const float x = is_nan(raw) ? (float)INVALID_ACTION : raw;"
        yield "  return clamp(x, action_low(agent, k), action_high(agent, k));\n}"
    index = "const Subscript &" if debug else "int "
    yield "#if GZ_PACK_WIDTH == 1\nstruct Actions {"
    yield "  const Action *data;\n  const i8 *mask;"
    if debug:
        number = INDEXED.index("action")
        yield "  Watch watch;"
        yield "  GZ_MEMBER Action operator()(const Subscript &agent, const Subscript &k) const {"
        yield f"    if (!watch.admits(agent, AGENTS, {number}, AGENT_OF, k.value)) return 0;"
        yield f"    if (!watch.admits(k, ACTION_SIZE, {number}, NUMBER_OF, agent.value)) return 0;"
        yield "    return legal((int)agent.value, (int)k.value);\n  }"
    yield f"  GZ_MEMBER Action {'legal' if debug else 'operator()'}(int agent, int k) const {{"
    yield "#if GZ_BRANCHLESS && !GZ_THREADS  // an index that depends on the state is a gather: slow, or not vectorised"
    yield "    Action raw = data[k];"
    yield "    unrolled<1, AGENTS>([&](int a) { put(Blend{(u8)(agent == a)}, raw, data[a * ACTION_SIZE + k]); });"
    yield "#else\n    const Action raw = data[agent * ACTION_SIZE + k];\n#endif"
    yield f"    return legal_action(raw, mask + {row_of('agent', lay)} * MASK_SIZE, agent, k);\n  }}"
    both = "0, k" if single else "k, 0"
    yield f"  GZ_MEMBER Action operator[]({index}k) const {{ return (*this)({both}); }}\n}};\n#endif"


def chosen_action_code(lay: Layout, chooses: bool, turn: str | None) -> Iterable[str]:
    """A legal action from random bits."""
    if chooses:
        yield "GZ int choose(Env e, int agent, u32 bits);"
    if chooses and lay.action_size > 1:
        yield "GZ void choose_parts(const Store &s, i64 i, int agent, u32 bits, Action *parts) {"
        yield "  State v = load(s, i);"
        yield "  const Env e = bind(s, v, i, s.episode[i], s.elapsed_steps[i], s.control->max_steps);"
        yield "  int number = choose(e, agent, bits);"
        yield "  for (int k = ACTION_SIZE - 1; k >= 0; --k) {"
        yield "    parts[k] = number % choices(agent, k);\n    number /= choices(agent, k);\n  }\n}"
        return
    yield "GZ Action chosen_action(const Store &s, i64 i, int agent, int k, u32 bits) {\n  (void)s; (void)i;"
    if lay.action_dtype == "float32":
        yield "  const float low = action_low(agent, k), high = action_high(agent, k);"
        yield "  return low + (high - low) * unit_float(bits);"
    elif chooses:
        yield "  (void)k;\n  State v = load(s, i);"
        yield "  const Env e = bind(s, v, i, s.episode[i], s.elapsed_steps[i], s.control->max_steps);"
        yield "  return choose(e, agent, bits);"
    elif lay.mask_size:
        if lay.observers < lay.agents:
            yield f"  if (agent != s.field_{turn}[i]) return 0;"
        row = f"i * OBSERVERS + {row_of('agent', lay)}"
        yield f"  const i8 *mask = s.action_mask + ({row}) * MASK_SIZE + mask_offset(agent, k);"
        yield "  return chosen_of(mask, choices(agent, k), bits);"
    else:
        yield "  return (int)mulhi(bits, (u32)choices(agent, k));"
    yield "}"
