// Monte Carlo tree search, many trees side by side: an item is a tree. `tree_select` goes down from the root to an action
// that was not tried yet, and `tree_backup` adds the node behind it and tells its ancestors. What is between the two,
// the model and the evaluation, belongs to the caller.
//
// PUCT: Silver et al., "Mastering the game of Go without human knowledge" (2017), with the constants of Schrittwieser
// et al., "Mastering Atari, Go, chess and shogi by planning with a learned model" (2020).
// GUMBEL: Danihelka et al., "Policy improvement by planning with Gumbel" (2022).
// UCT: Kocsis & Szepesvari, "Bandit based Monte-Carlo planning" (2006), with UCB1 of Auer et al. (2002).

namespace gz {

enum Rule : i64 { PUCT, GUMBEL, UCT };

struct Settings {
  float pb_c_init, pb_c_base;       // PUCT
  float lowest, highest;            // PUCT: the range of values; none where they are equal
  float value_scale, maxvisit_init; // GUMBEL
  float exploration;                // UCT
};

struct Tree {
  i64 items, threads, nodes, actions, rule;
  const Settings *settings;
  // of each node
  i32 *visits, *parent;
  float *value, *raw_value, *reward, *discount;
  u8 *over;
  // of each action of each node
  i32 *child;     // 0 where there is none
  float *logits;  // minus infinity where illegal
  // of each tree
  i32 *size;              // number of nodes
  i64 *from, *to;         // rows of the node that `tree_select` came to, and of the new one behind it; -1: none
  i32 *chosen;            // the action between the two; -1: none, as the episode is over there
  const float *gumbel;    // of each action of the root
  const i32 *considered;  // [numbers of actions][simulations]: visits of the actions that are considered
  i64 simulations, most_considered;
  float *scratch;  // of each action
  // of the new nodes
  const float *new_logits, *new_value, *new_reward, *new_discount;
  const u8 *new_over;
};

// A node and what lies behind its actions.
struct Node {
  const Tree &t;
  i64 first, row;  // of the tree, and of the node

  GZ_MEMBER bool legal(i64 a) const { return logit(a) > -infinity(); }
  GZ_MEMBER float logit(i64 a) const { return t.logits[row * t.actions + a]; }
  GZ_MEMBER i64 child(i64 a) const { return t.child[row * t.actions + a]; }
  GZ_MEMBER int visits(i64 a) const { return child(a) ? t.visits[first + child(a)] : 0; }
  GZ_MEMBER float q(i64 a) const {
    const i64 k = first + child(a);
    return t.reward[k] + t.discount[k] * t.value[k];
  }
};

GZ Node node_of(const Tree &t, i64 tree, i64 node) { return {t, tree * t.nodes, tree * t.nodes + node}; }

struct Softmax {
  float highest, sum;
  GZ_MEMBER float of(float logit) const { return math::exp(logit - highest) / sum; }
};

template <class Logit> GZ Softmax softmax(i64 n, Logit logit) {
  float highest = -infinity(), sum = 0.f;
  for (i64 a = 0; a < n; ++a) highest = max(highest, logit(a));
  for (i64 a = 0; a < n; ++a) sum += math::exp(logit(a) - highest);
  return {highest, sum};
}

// The legal action with the largest score, the first of several; -1: there is no legal one.
template <class Score> GZ i64 best(const Node &node, Score score) {
  i64 found = -1;
  float highest = -infinity();
  for (i64 a = 0; a < node.t.actions; ++a) {
    if (!node.legal(a)) continue;
    const float x = score(a);
    if (found < 0 || x > highest) {
      found = a;
      highest = x;
    }
  }
  return found;
}

// ---- PUCT ----

GZ i64 select_puct(const Node &node) {
  const Tree &t = node.t;
  const Settings &s = *t.settings;
  const Softmax prior = softmax(t.actions, [&](i64 a) { return node.logit(a); });
  const float own = t.value[node.row], visits = (float)t.visits[node.row];
  float lowest = s.lowest, highest = s.highest;
  if (lowest == highest) {
    lowest = highest = own;
    for (i64 a = 0; a < t.actions; ++a)
      if (node.child(a)) {
        lowest = min(lowest, node.q(a));
        highest = max(highest, node.q(a));
      }
  }
  const float width = max(highest - lowest, 1e-8f);
  const float weight = sqrt(visits) * (s.pb_c_init + math::log((visits + s.pb_c_base + 1.f) / s.pb_c_base));
  return best(node, [&](i64 a) {
    const float value = node.child(a) ? (node.q(a) - lowest) / width : 0.f;
    return value + weight * prior.of(node.logit(a)) / (float)(node.visits(a) + 1);
  });
}

// ---- Gumbel ----

// Writes the completed and scaled value of each action to `out`: what was not tried has the value of the node, mixed from
// its own estimate and those of the actions that were.
GZ void complete(const Node &node, float *out) {
  const Tree &t = node.t;
  const Softmax prior = softmax(t.actions, [&](i64 a) { return node.logit(a); });
  float visits = 0.f, most = 0.f, tried = 0.f, mean = 0.f;
  for (i64 a = 0; a < t.actions; ++a) {
    const int n = node.visits(a);
    if (n == 0) continue;
    const float p = max(prior.of(node.logit(a)), 1.17549435e-38f);
    visits += (float)n;
    most = max(most, (float)n);
    tried += p;
    mean += p * node.q(a);
  }
  const float raw = t.raw_value[node.row];
  const float mixed = visits > 0.f ? (raw + visits * (mean / tried)) / (visits + 1.f) : raw;
  float lowest = infinity(), highest = -infinity();
  for (i64 a = 0; a < t.actions; ++a) {
    out[a] = node.child(a) ? node.q(a) : mixed;
    lowest = min(lowest, out[a]);
    highest = max(highest, out[a]);
  }
  const float width = max(highest - lowest, 1e-8f);
  const float scale = (t.settings->maxvisit_init + most) * t.settings->value_scale;
  for (i64 a = 0; a < t.actions; ++a) out[a] = scale * ((out[a] - lowest) / width);
}

// Sequential halving: of the actions that have had the number of visits which is due, the best by Gumbel noise, prior and
// value.
GZ i64 select_gumbel_root(const Node &node, i64 tree, float *completed) {
  const Tree &t = node.t;
  complete(node, completed);
  const Softmax prior = softmax(t.actions, [&](i64 a) { return node.logit(a); });
  i64 legal = 0;
  for (i64 a = 0; a < t.actions; ++a) legal += node.legal(a);
  const i64 done = min((int)t.simulations - 1, t.visits[node.row] - 1);
  const int due = t.considered[min((int)t.most_considered, (int)legal) * t.simulations + done];
  return best(node, [&](i64 a) {
    const float score = t.gumbel[tree * t.actions + a] + (node.logit(a) - prior.highest) + completed[a];
    return node.visits(a) == due ? max(score, -1e9f) : -infinity();
  });
}

// Visits follow the improved policy.
GZ i64 select_gumbel(const Node &node, float *completed) {
  const Tree &t = node.t;
  complete(node, completed);
  const Softmax improved = softmax(t.actions, [&](i64 a) { return node.logit(a) + completed[a]; });
  const float visits = (float)t.visits[node.row];  // one more than those of its actions
  return best(node, [&](i64 a) {
    return improved.of(node.logit(a) + completed[a]) - (float)node.visits(a) / visits;
  });
}

// ---- UCT ----

GZ i64 select_uct(const Node &node) {
  const Tree &t = node.t;
  const float spread = t.settings->exploration * sqrt(math::log((float)t.visits[node.row]));
  return best(node, [&](i64 a) {
    return node.child(a) ? node.q(a) + spread / sqrt((float)node.visits(a)) : infinity();
  });
}

// ---- what the caller launches ----

GZ i64 select_action(const Tree &t, i64 tree, i64 k) {
  const Node node = node_of(t, tree, k);
  if (t.over[node.row]) return -1;
  if (t.rule == PUCT) return select_puct(node);
  if (t.rule == UCT) return select_uct(node);
  float *scratch = t.scratch + tree * t.actions;
  return k == 0 ? select_gumbel_root(node, tree, scratch) : select_gumbel(node, scratch);
}

GZ void tree_select(const Tree &t, i64, i64 begin, i64 end) {
  for (i64 tree = begin; tree < end; ++tree) {
    i64 k = 0, action;
    for (;;) {
      action = select_action(t, tree, k);
      if (action < 0) break;
      const i64 next = t.child[(tree * t.nodes + k) * t.actions + action];
      if (!next) break;
      k = next;
    }
    const bool grows = action >= 0 && t.size[tree] < t.nodes;
    t.from[tree] = tree * t.nodes + k;
    t.to[tree] = grows ? tree * t.nodes + t.size[tree] : -1;
    t.chosen[tree] = grows ? (i32)action : -1;
  }
}

// Writes what is known of a node of its own.
GZ void fill(const Tree &t, i64 tree, i64 row) {
  const bool over = t.new_over[tree];
  t.visits[row] = 1;
  t.value[row] = t.raw_value[row] = over ? 0.f : t.new_value[tree];
  t.over[row] = over;
  for (i64 a = 0; a < t.actions; ++a) {
    t.child[row * t.actions + a] = 0;
    t.logits[row * t.actions + a] = t.new_logits[tree * t.actions + a];
  }
}

GZ void tree_begin(const Tree &t, i64, i64 begin, i64 end) {
  for (i64 tree = begin; tree < end; ++tree) {
    const i64 root = tree * t.nodes;
    fill(t, tree, root);
    t.parent[root] = -1;
    t.reward[root] = 0.f;
    t.discount[root] = 1.f;
    t.size[tree] = 1;
  }
}

GZ void tree_backup(const Tree &t, i64, i64 begin, i64 end) {
  for (i64 tree = begin; tree < end; ++tree) {
    const i64 first = tree * t.nodes;
    i64 row = t.from[tree];
    float value = 0.f;
    if (t.chosen[tree] >= 0) {
      const i64 parent = row;
      row = t.to[tree];
      fill(t, tree, row);
      t.parent[row] = (i32)(parent - first);
      t.reward[row] = t.new_reward[tree];
      t.discount[row] = t.new_discount[tree];
      t.child[parent * t.actions + t.chosen[tree]] = t.size[tree]++;
      value = t.value[row];
    } else {
      ++t.visits[row];  // an episode that is over stays worth nothing
      value = t.value[row];
    }
    while (row != first) {
      value = t.reward[row] + t.discount[row] * value;
      row = first + t.parent[row];
      const float visits = (float)t.visits[row];
      t.value[row] = (t.value[row] * visits + value) / (visits + 1.f);
      ++t.visits[row];
    }
  }
}

// The completed values of the roots.
GZ void tree_complete(const Tree &t, i64, i64 begin, i64 end) {
  for (i64 tree = begin; tree < end; ++tree) complete(node_of(t, tree, 0), t.scratch + tree * t.actions);
}

GZ_KERNEL(tree_begin, Tree, 16)
GZ_KERNEL(tree_select, Tree, 16)
GZ_KERNEL(tree_backup, Tree, 16)
GZ_KERNEL(tree_complete, Tree, 16)

// ---- states of envs, as rows of bytes ----

// An array of the envs, and its place in a row.
struct Column {
  u8 *array;
  i64 env_stride, stride;  // bytes from env to env, and from element to element
  i64 elements, size;      // of an env, and bytes of an element
  i64 place;
};

struct Carrying {
  i64 items, threads;  // columns of all envs
  i64 columns;
  const Column *column;
  u8 *rows;
  i64 row_bytes;
  const i64 *row;  // of each env; -1: none
  i64 share;       // so many envs in turn have one row
  i64 out;         // from the envs into the rows, or back
};

template <class T> GZ void carry_elements(const Carrying &c, const Column &column, T *array, T *row) {
  const i64 stride = column.stride / (i64)sizeof(T);
  for (i64 k = 0; k < column.elements; ++k)
    if (c.out)
      row[k] = array[k * stride];
    else
      array[k * stride] = row[k];
}

GZ void state_carry(const Carrying &c, i64, i64 begin, i64 end) {
  for (i64 item = begin; item < end; ++item) {
    const i64 env = item / c.columns, number = c.row[env / c.share];
    if (number < 0) continue;
    const Column &column = c.column[item % c.columns];
    u8 *array = column.array + env * column.env_stride, *row = c.rows + number * c.row_bytes + column.place;
    if (column.size == 8)
      carry_elements(c, column, (u64 *)array, (u64 *)row);
    else if (column.size == 4)
      carry_elements(c, column, (u32 *)array, (u32 *)row);
    else if (column.size == 2)
      carry_elements(c, column, (i16 *)array, (i16 *)row);
    else
      carry_elements(c, column, array, row);
  }
}

GZ_KERNEL(state_carry, Carrying, 256)

}  // namespace gz
