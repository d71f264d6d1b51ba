// Choices from the softmax of their logits. With p the probabilities of one component, H its entropy and a the choice:
//   d log p_a / d logit_c = [c = a] - p_c        d H / d logit_c = -p_c (log p_c + H)
// Generated above: WIDTH (logits of one component), MASK_SIZE (0 without masks), choices(part).

namespace gz {

struct Part {
  int number, first, choices, mask_offset;
};

// Leaves log p in the table.
GZ void evaluate(Lanes &v, Table &table, const Part &part) {
  float top[W], whole[W], moment[W], chosen[W];
  int action[W], possible[W];
  for (int l = 0; l < W; ++l) {
    top[l] = -infinity();
    whole[l] = moment[l] = chosen[l] = 0.f;
    action[l] = v.action[l][part.number];
    possible[l] = MASK_SIZE == 0;
    for (int c = 0; c < part.choices; ++c) {
      const bool legal = MASK_SIZE == 0 || v.mask[l][part.mask_offset + c] != 0;
      cell(v, table, part.first + c, l) = legal ? v.out[l][part.first + c] : -infinity();
      possible[l] |= (int)legal;
    }
  }
  for (int c = 0; c < part.choices; ++c) {
    GZ_INDEPENDENT
    for (int l = 0; l < W; ++l) top[l] = max(top[l], cell(v, table, part.first + c, l));
  }
  for (int l = 0; l < W; ++l) top[l] = possible[l] ? top[l] : 0.f;
  for (int c = 0; c < part.choices; ++c) {
    GZ_INDEPENDENT
    for (int l = 0; l < W; ++l) {
      const float y = cell(v, table, part.first + c, l) - top[l], e = exp(y);
      cell(v, table, part.first + c, l) = y;
      whole[l] += e;
      moment[l] += e == 0.f ? 0.f : e * y;
    }
  }
  GZ_INDEPENDENT
  for (int l = 0; l < W; ++l) {
    const float sum = possible[l] ? whole[l] : 1.f;
    whole[l] = log(sum);
    v.entropy[l] += whole[l] - moment[l] / sum;
  }
  for (int c = 0; c < part.choices; ++c) {
    GZ_INDEPENDENT
    for (int l = 0; l < W; ++l) {
      const float y = cell(v, table, part.first + c, l) - whole[l], old = chosen[l];
      cell(v, table, part.first + c, l) = y;
      chosen[l] = c == action[l] ? y : old;
    }
  }
  for (int l = 0; l < W; ++l) v.log_prob[l] += possible[l] ? chosen[l] : 0.f;
}

// Leaves the gradients in the table.
GZ void chain(Lanes &v, Table &table, const Part &part) {
  float entropy[W];
  int action[W];
  for (int l = 0; l < W; ++l) {
    action[l] = v.action[l][part.number];
    entropy[l] = PARTS == 1 ? v.entropy[l] : 0.f;
  }
  for (int c = 0; c < part.choices && PARTS > 1; ++c) {
    GZ_INDEPENDENT
    for (int l = 0; l < W; ++l) {
      const float y = cell(v, table, part.first + c, l), p = exp(y);
      entropy[l] -= p == 0.f ? 0.f : p * y;
    }
  }
  for (int c = 0; c < part.choices; ++c) {
    GZ_INDEPENDENT
    for (int l = 0; l < W; ++l) {
      const float y = cell(v, table, part.first + c, l), p = exp(y);
      const float taken = c == action[l] ? v.by_log_prob[l] : 0.f;
      const float gradient = taken - p * (v.by_log_prob[l] + v.by_entropy[l] * (y + entropy[l]));
      cell(v, table, part.first + c, l) = v.weight[l] == 0.f || y == -infinity() ? 0.f : gradient;
    }
  }
  for (int c = part.choices; c < WIDTH; ++c)
    for (int l = 0; l < W; ++l) cell(v, table, part.first + c, l) = 0.f;
}

template <class F> GZ void each_part(F f) {
  int mask_offset = 0;
  for (int p = 0; p < PARTS; ++p) {
    f(Part{p, p * WIDTH, choices(p), mask_offset});
    mask_offset += choices(p);
  }
}

GZ void evaluate(Lanes &v, Table &table) {
  each_part([&](const Part &part) { evaluate(v, table, part); });
}

GZ void chain(Lanes &v, Table &table) {
  each_part([&](const Part &part) { chain(v, table, part); });
}

}  // namespace gz
