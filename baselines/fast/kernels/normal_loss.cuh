// Independent normal components. With z = (action - mean) / std:
//   d log p / d mean = z / std        d log p / d log std = z^2 - 1        d entropy / d log std = 1

namespace gz {

constexpr float HALF_LOG_TWO_PI = 0.918938533f;

// Leaves z in the table.
GZ void evaluate(Lanes &v, Table &table) {
  float distance[W], log_std[W];
  for (int k = 0; k < OUTPUTS; ++k) {
    for (int l = 0; l < W; ++l) {
      distance[l] = v.action[l][k] - v.out[l][k];
      log_std[l] = v.log_std[l][k];
    }
    GZ_INDEPENDENT
    for (int l = 0; l < W; ++l) {
      const float z = distance[l] / exp(log_std[l]);
      cell(v, table, k, l) = z;
      v.log_prob[l] -= 0.5f * z * z + log_std[l] + HALF_LOG_TWO_PI;
      v.entropy[l] += log_std[l] + 0.5f + HALF_LOG_TWO_PI;
    }
  }
}

GZ void chain(Lanes &v, Table &table) {
  float log_std[W], gradient[W];
  for (int k = 0; k < OUTPUTS; ++k) {
    for (int l = 0; l < W; ++l) log_std[l] = v.log_std[l][k];
    GZ_INDEPENDENT
    for (int l = 0; l < W; ++l) {
      const float z = cell(v, table, k, l);
      const float by_mean = v.by_log_prob[l] * z / exp(log_std[l]);
      const float by_log_std = v.by_log_prob[l] * (z * z - 1.f) + v.by_entropy[l];
      cell(v, table, k, l) = v.weight[l] == 0.f ? 0.f : by_mean;
      gradient[l] = v.weight[l] == 0.f ? 0.f : by_log_std;
    }
    for (int l = 0; l < W; ++l) v.log_std_gradient[l][k] = gradient[l];
  }
}

}  // namespace gz
