// The loss of a minibatch, row by row, and its derivatives by what the networks said: `evaluate` makes of their outputs
// what the formula knows, `loss` differentiates by that, and `chain` carries the derivatives on to the outputs.
// Generated above: OUTPUTS and PARTS of a row, COLUMNS, HYPERS and NUMBERS with their structs, hyper_place, and the type Action.

namespace gz {

// Rows that are computed beside each other, and whether their outputs have room for that.
constexpr int W = OUTPUTS <= 512 ? WIDE : 1;
constexpr bool HELD = W > 1;
typedef float Table[HELD ? OUTPUTS : 1][W];

struct Stride {
  i64 member, row;
};

struct Minibatch {
  i64 items, threads;
  const float *out, *value, *weight, *columns, *hyper, *log_std;
  const Action *action;
  const i8 *mask;
  i64 rows;  // of one member
  Stride out_stride, value_stride, weight_stride, column_stride, action_stride, mask_stride;
  i64 log_std_stride;
  float *out_gradient, *value_gradient, *log_std_gradient, *numbers;
};

struct Lanes {
  i64 index[W];
  const float *out[W], *log_std[W];
  const Action *action[W];
  const i8 *mask[W];
  float *out_gradient[W], *log_std_gradient[W];
  float column[COLUMNS][W], hyper[HYPERS][W], number[NUMBERS][W], value[W], weight[W];
  float log_prob[W], entropy[W];
  float by_log_prob[W], by_entropy[W], by_value[W];
};

// A row's numbers on the way stand in the table, or where its gradients will be.
GZ float &cell(Lanes &v, Table &table, int k, int l) { return HELD ? table[HELD ? k : 0][l] : v.out_gradient[l][k]; }

// Of the distribution, below. `chain` leaves the gradients in the table.
GZ void evaluate(Lanes &v, Table &table);
GZ void chain(Lanes &v, Table &table);

GZ void locate(const Minibatch &a, i64 member, i64 row, int l, Lanes &v) {
  const auto place = [&](Stride s) { return member * s.member + row * s.row; };
  v.index[l] = member * a.rows + row;
  v.out[l] = a.out + place(a.out_stride);
  v.action[l] = a.action + place(a.action_stride);
  v.mask[l] = a.mask + place(a.mask_stride);
  v.log_std[l] = a.log_std + member * a.log_std_stride;
  v.out_gradient[l] = a.out_gradient + v.index[l] * OUTPUTS;
  v.log_std_gradient[l] = a.log_std_gradient + v.index[l] * PARTS;
  v.value[l] = a.value[place(a.value_stride)];
  v.weight[l] = a.weight[place(a.weight_stride)];
  GZ_UNROLL
  for (int k = 0; k < COLUMNS; ++k) v.column[k][l] = a.columns[place(a.column_stride) + k];
  GZ_UNROLL
  for (int k = 0; k < HYPERS; ++k) v.hyper[k][l] = a.hyper[member * HYPER_TABLE + hyper_place(k)];
  v.log_prob[l] = v.entropy[l] = 0.f;
}

// Lanes beyond the last row repeat it.
GZ void locate(const Minibatch &a, i64 begin, i64 end, Lanes &v) {
  i64 member = begin / a.rows, row = begin % a.rows;
  for (int l = 0; l < W; ++l) {
    locate(a, member, row, l, v);
    if (begin + l + 1 < end && ++row == a.rows) {
      row = 0;
      ++member;
    }
  }
}

GZ void differentiate(Lanes &v) {
  GZ_INDEPENDENT
  for (int l = 0; l < W; ++l) {
    const Columns columns = Columns::of([&](int k) { return v.column[k][l]; });
    const Hyper hyper = Hyper::of([&](int k) { return v.hyper[k][l]; });
    Numbers numbers{};
    const Dual y = loss(transition(columns, v.log_prob[l], v.entropy[l], v.value[l]), hyper, numbers);
    const float weight = v.weight[l];
    const auto weighted = [&](float x) { return weight == 0.f ? 0.f : weight * x; };
    v.by_log_prob[l] = weighted(y.log_prob);
    v.by_entropy[l] = weighted(y.entropy);
    v.by_value[l] = weighted(y.value);
    v.number[0][l] = weighted(y.x);
    numbers.each([&](int k, float x) { v.number[1 + k][l] = weighted(x); });
  }
}

GZ void save(const Minibatch &a, Lanes &v, Table &table) {
  for (int l = 0; l < W; ++l) {
    for (int k = 0; k < OUTPUTS && HELD; ++k) v.out_gradient[l][k] = cell(v, table, k, l);
    a.value_gradient[v.index[l]] = v.by_value[l];
    GZ_UNROLL
    for (int k = 0; k < NUMBERS; ++k) a.numbers[v.index[l] * NUMBERS + k] = v.number[k][l];
  }
}

GZ void gradients(const Minibatch &a, i64, i64 begin, i64 end) {
  for (i64 i = begin; i < end; i += W) {
    Lanes v;
    Table table;
    locate(a, i, end, v);
    evaluate(v, table);
    differentiate(v);
    chain(v, table);
    save(a, v, table);
  }
}

GZ_KERNEL(gradients, Minibatch, (16384 / (OUTPUTS + 8) + WIDE) / WIDE * WIDE)

}  // namespace gz
