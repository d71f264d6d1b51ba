#include "instances.cuh"
#include "sets.cuh"

constexpr int NODES = Config::num_nodes, NODES_PER_AGENT = Config::num_nodes_per_agent;
constexpr int UTILITY = -1, NOWHERE = -1;
enum Outcome { MOVED, RETURNED, INVALID, LOST };  // RETURNED: to a node that the agent has connected

template <class Set> GZ void add(Set set, int node) { set[node / 64] |= bit(node); }

GZ bool has_in(Env e, int agent, int node) { return (e.connected(agent, node / 64) & bit(node)) != 0ull; }

GZ bool is_edge(Env e, int from, int to) { return (e.adjacent(from, to / 64) & bit(to)) != 0ull; }

GZ bool can_move(Env e, int agent, int to) {
  return to >= 0 && is_edge(e, e.position[agent], to) && (e.open(agent, to / 64) & bit(to)) != 0ull;
}

// The nodes that an agent may move to.
GZ u64 legal(Env e, int agent, int word) {
  return e.was_finished[agent] ? 0ull : e.adjacent(e.position[agent], word) & e.open(agent, word);
}

GZ void connect(Env e, int from, int to) {
  e.adjacent(from, to / 64) |= bit(to);
  e.adjacent(to, from / 64) |= bit(from);
}

// The nodes are shared out among the agents, in order: `first` of a part, and how many it has.
GZ int first_of(int part) { return part * (NODES / AGENTS) + min(part, NODES % AGENTS); }
GZ int size_of(int part) { return NODES / AGENTS + (int)(part < NODES % AGENTS); }

GZ bool add_edge(Env e, int from, int to) {
  const bool full = e.degree[from] > Config::max_degree || e.degree[to] > Config::max_degree;
  if (e.arc(from, to) || full) return false;
  e.arc(from, to) = true;
  e.degree[from] += 1;
  e.degree[to] += 1;
  e.edges += 1;
  connect(e, from, to);
  return true;
}

// Random edges among some nodes, until there are as many as wanted.
GZ void add_edges(Env e, int first, int nodes, int wanted) {
  for (; e.edges < wanted && e.tries < TRIES; e.tries += 1) {
    const int from = random_int(e, e.tries, 0, nodes), other = random_int(e, e.tries, 1, nodes - 1);
    add_edge(e, first + from, first + other + (int)(other >= from));
  }
}

// A tree over the nodes of a part, by a random walk on the complete graph.
GZ void add_tree(Env e, int part) {
  const int first = first_of(part), nodes = size_of(part);
  int current = random_int(e, e.tries, 2, max(nodes - 1, 1)), left = nodes - 1;
  for (int k = 0; k < nodes; ++k) e.visited[k] = k == current;
  for (; left > 0 && e.tries < TRIES; e.tries += 1) {
    const int next = random_int(e, e.tries, 3, nodes);
    const int low = first + min(current, next), high = first + max(current, next);
    if (!e.visited[next] && add_edge(e, low, high)) {
      e.visited[next] = true;
      --left;
    }
    current = next;
  }
}

GZ void draw_graph(Env e) {
  for (int node = 0; node < NODES; ++node) {
    e.degree[node] = 0;
    for (int other = 0; other < NODES; ++other) e.arc(node, other) = false;
  }
  e.edges = 0;
  e.tries = 0;
  int total = 0;
  for (int part = 0; part < AGENTS; ++part) {
    add_tree(e, part);
    total += e.part_edges[part];
    add_edges(e, first_of(part), size_of(part), total);
  }
  for (int part = 1; part < AGENTS; ++part) {
    const int before = first_of(part);
    total += e.merge_edges[part - 1];
    add_edge(e, random_int(e, part, 4, before), before + random_int(e, part, 5, size_of(part)));
    add_edges(e, 0, before + size_of(part), total);
  }
}

GZ void draw_nodes(Env e, int agent) {
  const int first = first_of(agent), last = first + size_of(agent);
  for (int w = 0; w < WORDS; ++w) e.left[w] = below(last, w) & ~below(first, w);
  for (int k = 0; k < NODES_PER_AGENT; ++k) {
    const int node = chosen_member<WORDS>(e.left, random_bits(e, agent, 6 + k));
    e.left[node / 64] &= ~bit(node);
    e.nodes_to_connect(agent, k) = (i16)node;
  }
}

// Nobody else may enter a utility node on which an agent stands.
GZ void close_nodes(Env e) {
  for (int agent = 0; agent < AGENTS; ++agent) {
    const int node = e.position[agent];
    if (e.node_types[node] != UTILITY) continue;
    for (int other = 0; other < AGENTS; ++other)
      if (other != agent) e.open(other, node / 64) &= ~bit(node);
  }
}

GZ void reset(Env e) {
  once(e, [=] {
    const int given = INSTANCES > 0 ? given_instance(e, 0) : 0;
    for (int k = 0; k < NODES * WORDS; ++k) e.adjacent[k] = 0ull;
    if (INSTANCES > 0) {
      for (int k = 0; k < NODES * NODES; ++k)
        if (e.given_adj_matrix[NODES * NODES * given + k] != 0) connect(e, k / NODES, k % NODES);
    } else {
      draw_graph(e);
    }
    for (int node = 0; node < NODES; ++node) e.node_types[node] = UTILITY;
    for (int agent = 0; agent < AGENTS; ++agent) {
      if (INSTANCES > 0) {
        for (int k = 0; k < NODES_PER_AGENT; ++k)
          e.nodes_to_connect(agent, k) =
              (i16)e.given_nodes_to_connect[(AGENTS * given + agent) * NODES_PER_AGENT + k];
      } else {
        draw_nodes(e, agent);
      }
      for (int k = 0; k < NODES_PER_AGENT; ++k) e.node_types[e.nodes_to_connect(agent, k)] = (i8)agent;
      const int start = e.nodes_to_connect(agent, 0);
      for (int w = 0; w < WORDS; ++w) {
        e.open(agent, w) = ~0ull;
        e.connected(agent, w) = start / 64 == w ? bit(start) : 0ull;
      }
      for (int node = 0; node < NODES; ++node) e.came_from(agent, node) = NOWHERE;
      e.position[agent] = start;
      e.order[agent] = agent;
      e.finished[agent] = false;
      e.was_finished[agent] = false;
    }
    close_nodes(e);
  });
}

GZ int choose(Env e, int agent, u32 bits) {
  int count = 0;
  for (int w = 0; w < WORDS; ++w) count += popcount(legal(e, agent, w));
  int left = (int)mulhi(bits, (u32)count);
  for (int w = 0; w < WORDS; ++w) {
    const u64 word = legal(e, agent, w);
    const int here = popcount(word);
    if (left < here) return 64 * w + bit_at(word, left);
    left -= here;
  }
  return 0;
}

// Of agents who go to the same node the first one in a random order has it.
GZ void settle(Env e) {
  for (int agent = 0; agent < AGENTS; ++agent) {
    const int other = random_int(e, agent, 0, agent + 1);
    e.order[agent] = e.order[other];
    e.order[other] = agent;
  }
  for (int k = 0; k < AGENTS; ++k) {
    const int agent = e.order[k], to = can_move(e, agent, e.action[agent]) ? e.action[agent] : NOWHERE;
    bool taken = false;
    for (int before = 0; before < k; ++before) taken = taken || (to >= 0 && e.target[e.order[before]] == to);
    const bool known = has_in(e, agent, to < 0 ? NODES - 1 : to);
    e.goal[agent] = to;
    e.target[agent] = taken ? NOWHERE : to;
    e.outcome[agent] = e.finished[agent] ? INVALID : known ? RETURNED : to < 0 ? INVALID : taken ? LOST : MOVED;
  }
}

GZ void move(Env e, int agent) {
  const int to = e.goal[agent];
  if (to < 0 || e.outcome[agent] == INVALID || e.outcome[agent] == LOST) return;
  if (e.outcome[agent] == MOVED) e.came_from(agent, to) = (i16)e.position[agent];
  e.connected(agent, to / 64) |= bit(to);
  e.position[agent] = to;
}

GZ float reward_of(Env e, int agent) {
  const int outcome = e.outcome[agent];
  if (e.was_finished[agent] || outcome == LOST) return 0.f;
  if (outcome == MOVED && e.node_types[e.position[agent]] == agent) return e.cfg.reward_connected;
  return outcome == INVALID ? e.cfg.reward_time_step + e.cfg.reward_noop : e.cfg.reward_time_step;
}

GZ bool is_finished(Env e, int agent) {
  bool all = true;
  for (int k = 0; k < NODES_PER_AGENT; ++k) all = all && has_in(e, agent, e.nodes_to_connect(agent, k));
  return all;
}

GZ void step(Env e) {
  once(e, [=] {
    settle(e);
    for (int agent = 0; agent < AGENTS; ++agent) move(e, agent);
    close_nodes(e);
    float total = 0.f;
    bool over = true;
    for (int agent = 0; agent < AGENTS; ++agent) {
      e.was_finished[agent] = e.finished[agent];
      e.reward[agent] = reward_of(e, agent);
      total += e.reward[agent];
      e.finished[agent] = is_finished(e, agent);
      over = over && e.finished[agent];
    }
    if (Config::reward == REWARD_TEAM)
      for (int agent = 0; agent < AGENTS; ++agent) e.reward[agent] = total;
    if (over) e.terminate_all();
  });
}

// 2 k for a node that the k-th agent after this one has connected, 2 k + 1 for one that it still has to.
GZ int seen_type(Env e, int agent, int node) {
  const int type = e.node_types[node];
  int seen = type == UTILITY ? UTILITY : 2 * ((type - agent + AGENTS) % AGENTS) + 1;
  for (int other = 0; other < AGENTS; ++other)
    seen = has_in(e, other, node) ? 2 * ((other - agent + AGENTS) % AGENTS) : seen;
  return seen;
}

GZ int seen_position(Env e, int agent, int k) { return e.position[(agent + k) % AGENTS]; }

GZ void observe(Env e) {
  lanes(e, AGENTS, NODES, [=](int agent, int node) { e.observation[agent][node] = (i8)seen_type(e, agent, node); });
  lanes_of_bits(
      e, AGENTS, NODES, [=](int agent) { return e.action_mask[agent]; },
      [=](int agent, int word) { return legal(e, agent, word); });
  for (int agent = 0; agent < AGENTS; ++agent)
    lanes_of_bits(
        e, NODES, NODES, [=](int node) { return e.observation[agent] + NODES * (1 + node); },
        [=](int node, int word) { return e.adjacent(node, word); });
  lanes(e, AGENTS, AGENTS, [=](int agent, int k) {
    e.observation[agent][NODES * (NODES + 1) + k] = (i8)seen_position(e, agent, k);
  });
}

GZ void state(Env e) {
  lanes(e, NODES, [=](int node) { e.state[node] = (i8)seen_type(e, 0, node); });
  lanes_of_bits(
      e, NODES, NODES, [=](int node) { return e.state + NODES * (1 + node); },
      [=](int node, int word) { return e.adjacent(node, word); });
  lanes(e, AGENTS, [=](int k) { e.state[NODES * (NODES + 1) + k] = (i8)seen_position(e, 0, k); });
}
