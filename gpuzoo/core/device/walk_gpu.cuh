// How a GPU goes through a batch: a thread per lane, which finds out its env. The kernels get an argument and the
// number of envs to work on.

namespace gz {

// A small batch has blocks of fewer threads than BLOCK, so that more multiprocessors work on it.
GZ int env_index() { return (int)(((i64)blockIdx.x * blockDim.x + threadIdx.x) / LANES); }

GZ void act(const Store &s, i64 i) {
#if GZ_CHOOSES_PARTS
  for (int agent = lane(); agent < AGENTS; agent += LANES) {
    const int r = agent * ACTION_SIZE;
    const u32 bits = random_bits(s.seed[i], s.episode[i], (u32)s.elapsed_steps[i], CHOOSER, (u32)r);
    choose_parts(s, i, agent, bits, s.action + i * ACTION_NUMBERS + r);
  }
#else
  for (int r = lane(); r < ACTION_NUMBERS; r += LANES) {
    const u32 bits = random_bits(s.seed[i], s.episode[i], (u32)s.elapsed_steps[i], CHOOSER, (u32)r);
    s.action[i * ACTION_NUMBERS + r] = chosen_action(s, i, r / ACTION_SIZE, r % ACTION_SIZE, bits);
  }
#endif
  barrier();
}

// How many blocks an SM is to have registers for, which core/occupancy.py finds out by trial.
#ifndef GZ_BLOCKS_step
#define GZ_BLOCKS_step 1
#endif
#ifndef GZ_BLOCKS_rollout
#define GZ_BLOCKS_rollout 1
#endif
#define GZ_KERNEL(blocks) extern "C" __global__ void __launch_bounds__(BLOCK, blocks)

// A kernel has its Store by value: its pointers are constants beside the code, which cost no load and no register, and
// the compiler knows that they point to global memory.

GZ_KERNEL(1) gz_reset(GZ_STORE s, i64 reset, i64 count) {
  const i64 i = env_index();
  if (i < count) reset_env(s, s.control->max_steps, i, (int)reset, rows::neighbours(nullptr, i, count));
}

// `envs` is null, or as many indices of envs, all different: then these alone are stepped.
GZ_KERNEL(GZ_BLOCKS_step) gz_step(GZ_STORE s, const i64 *envs, i64 count) {
  const int k = env_index();
  if (k >= count) return;
  const i64 chosen = envs ? envs[k] : k;
  const i64 i = GZ_HELP ? anew((int)chosen) : chosen;  // an address is one instruction, so none is kept
  const Together all = rows::neighbours(envs, k, count);
  const int mode = s.control->mode, max_steps = s.control->max_steps;
  const bool finals = finals_after(mode, 0, 1);
  const Halfway at = advance(s, finals, max_steps, i, all);
  keep_last_state(s, finals, max_steps, i);
  settle(s, at, mode, finals, max_steps, i, all);
  show_state(s, max_steps, i);
}

GZ_KERNEL(GZ_BLOCKS_rollout) gz_rollout(GZ_STORE s, i64 steps, i64 count) {
  const i64 i = anew((i64)env_index());
  if (i >= count) return;
  const Together all = rows::neighbours(nullptr, i, count);
  const int mode = s.control->mode, max_steps = s.control->max_steps;
  for (i64 k = 0; k < steps; ++k) {
    const bool finals = finals_after(mode, k, steps), seen = seen_after(k, steps);
    act(s, i);
    const Halfway at = advance(s, finals, max_steps, i, all, seen);
    keep_last_state(s, finals, max_steps, i);
    settle(s, at, mode, finals, max_steps, i, all, seen);
  }
  show_state(s, max_steps, i);
}

GZ_KERNEL(1) gz_act(GZ_STORE s, i64, i64 count) {
  const i64 i = env_index();
  if (i < count) act(s, i);
}

GZ_KERNEL(1) gz_state(GZ_STORE s, StateNumber *rows, i64 count) {
  const i64 i = env_index();
  if (i < count) tell_state(s, rows, i);
}

}  // namespace gz

#ifdef GZ_SIMT

namespace gz {

template <class T> struct SimtArguments {
  void (*kernel)(const Store &, T, i64);
  const Store &store;
  T argument;
  i64 count;
};
template <class T> static void simt_body(const void *pointer) {
  const SimtArguments<T> &x = *(const SimtArguments<T> *)pointer;
  x.kernel(x.store, x.argument, x.count);
}
extern "C" int gz_simt_block;  // threads of a block; tests may choose fewer
int gz_simt_block = BLOCK;
template <class T> static void simt_run(void (*kernel)(const Store &, T, i64), const Store *store, i64 argument, i64 count) {
  const SimtArguments<T> x = {kernel, *store, (T)argument, count};
  const int block = gz_simt_block;
  simt_launch(simt_body<T>, &x, (int)((count * LANES + block - 1) / block), block);
}
extern "C" void gz_launch_reset(const Store *s, i64 reset, i64 count, int) { simt_run(gz_reset, s, reset, count); }
extern "C" void gz_launch_step(const Store *s, i64 envs, i64 count, int) { simt_run(gz_step, s, envs, count); }
extern "C" void gz_launch_rollout(const Store *s, i64 steps, i64 count, int) { simt_run(gz_rollout, s, steps, count); }
extern "C" void gz_launch_act(const Store *s, i64, i64 count, int) { simt_run(gz_act, s, 0, count); }
extern "C" void gz_launch_state(const Store *s, i64 rows, i64 count, int) { simt_run(gz_state, s, rows, count); }

}  // namespace gz

#endif
