// Copies what some envs have in an array to rows that lie one after the other, and back.

namespace gz {

struct Moves {
  i64 items;  // numbers
  u8 *array;
  i64 env_stride, stride;  // bytes from env to env, and from number to number of an env
  u8 *rows;
  i64 row_stride, size, numbers;  // bytes from row to row, bytes of a number, numbers of an env
  const i64 *envs;                // null: all
};

GZ void move(const Moves &m, i64 item, bool take) {
  const i64 row = item / m.numbers, k = item % m.numbers, env = m.envs ? m.envs[row] : row;
  u8 *const place = m.array + env * m.env_stride + k * m.stride, *const other = m.rows + row * m.row_stride + k * m.size;
  u8 *const to = take ? other : place, *const from = take ? place : other;
  if (m.size == 4)
    *(u32 *)to = *(const u32 *)from;
  else
    for (int b = 0; b < (int)m.size; ++b) to[b] = from[b];
}

#ifdef GZ_CUDA
GZ void move_own(const Moves &m, bool take) {
  const i64 item = (i64)blockIdx.x * blockDim.x + threadIdx.x;
  if (item < m.items) move(m, item, take);
}
extern "C" __global__ void gz_take(const __grid_constant__ Moves m, i64) { move_own(m, true); }
extern "C" __global__ void gz_put(const __grid_constant__ Moves m, i64) { move_own(m, false); }
#else
static void move_all(const Moves &m, bool take) {
  for (i64 item = 0; item < m.items; ++item) move(m, item, take);
}
extern "C" void gz_launch_take(const Moves *m, i64) { move_all(*m, true); }
extern "C" void gz_launch_put(const Moves *m, i64) { move_all(*m, false); }
#endif

}  // namespace gz
