// Adam (Kingma, Ba, "Adam: a method for stochastic optimization", 2015, algorithm 1), for the parameters of many members,
// each with a learning rate and a factor on its gradient of its own.

namespace gz {

struct Adam {
  i64 items, threads, size;  // size: parameters of a member
  float *parameters;
  const float *gradient;
  float *momentum, *square;
  const float *factor, *rate, *count;  // count: steps, this one included
};

constexpr float BETA1 = 0.9f, BETA2 = 0.999f, EPSILON = 1e-5f;

GZ void adam(const Adam &a, i64, i64 begin, i64 end) {
  for (i64 i = begin; i < end;) {
    const i64 member = i / a.size, after = (member + 1) * a.size, stop = after < end ? after : end;
    const float count = a.count[member], correction2 = 1.f / (1.f - pow(BETA2, count));
    const float factor = a.factor[member], rate = a.rate[member] / (1.f - pow(BETA1, count));
    const i64 first = i;
    i = stop;
    GZ_INDEPENDENT
    for (i64 k = first; k < stop; ++k) {
      const float g = a.gradient[k] * factor;
      const float m = BETA1 * a.momentum[k] + (1.f - BETA1) * g, v = BETA2 * a.square[k] + (1.f - BETA2) * g * g;
      a.momentum[k] = m;
      a.square[k] = v;
      a.parameters[k] -= rate * m / (sqrt(v * correction2) + EPSILON);
    }
  }
}

GZ_KERNEL(adam, Adam, 16384)

}  // namespace gz
