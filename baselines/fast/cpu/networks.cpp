// Multi-layer perceptrons on the CPU, many of one shape side by side: a block of rows passes through all layers, and
// back, while it is in the cache. Compiled behind base.cuh, threads.cuh and products.h.

#include <stdlib.h>

namespace gz {

constexpr int MAX_LAYERS = 4, MAX_NETWORKS = 8;
constexpr i64 BLOCK = 96;         // rows that pass through the layers together
constexpr i64 CHUNK = 2 * BLOCK;  // at least so many rows are one task and one partial sum of the weights' gradients
constexpr i64 MAX_CHUNKS = 64, MAX_FORWARD_CHUNKS = 1 << 16;
constexpr i64 ALONE = 1 << 19;  // multiplications that are not worth waking a thread for

// baselines/fast/fused_calls.py packs these four, as 64-bit words in this order. Strides count floats.
struct Shape {
  i64 layers, relu, activate_last;
  i64 sizes[MAX_LAYERS + 1];
  i64 weight[MAX_LAYERS], weight_member[MAX_LAYERS];  // bytes behind Call::parameters
  i64 bias[MAX_LAYERS], bias_member[MAX_LAYERS];
};

struct Results {
  float *out, *hidden;  // hidden: the activations between the layers, or null
  const float *grad_out;
  float *grad_x;
};

// Callback: turns the outputs of the rows [begin, end) of all members into gradients, in place.
struct Loss {
  void (*rows)(const void *arguments, i64 offset, i64 begin, i64 end);
  const void *arguments;
};

struct Call {
  i64 members, rows, threads;
  const Shape *shapes;
  i64 networks;
  const float *x;
  i64 x_member, x_row;
  const char *parameters;
  float *grads;  // of each member the networks; of each network the layers; of each layer the weight, then the bias
  i64 grads_member;
  Loss loss;  // of mlp_whole
  Results results[MAX_NETWORKS];
};

static i64 max64(i64 a, i64 b) { return a > b ? a : b; }

struct Scratch {
  float *memory, *next;
  explicit Scratch(i64 floats) : memory((float *)malloc((floats + 16) * sizeof(float))) {
    next = (float *)(((u64)memory + 63) / 64 * 64);
  }
  ~Scratch() { free(memory); }
  float *take(i64 floats) {
    float *taken = next;
    next += (floats + 15) / 16 * 16;
    return taken;
  }
  float *zeros(i64 floats) { return (float *)__builtin_memset(take(floats), 0, floats * sizeof(float)); }
};

struct Network : Shape, Results {
  const Call *call;
  i64 at[MAX_LAYERS];
  i64 widest, workspace, parameters, units;     // workspace: floats of a padded gradient
  i64 saved_member, saved_first, saved_rows;  // whose activations lie in `hidden`
  bool narrow;
  float *grads, *sums;

  void plan(const Shape &shape, const Call &call, const Results &results, float *grads) {
    (Shape &)*this = shape;
    (Results &)*this = results;
    this->call = &call;
    this->grads = grads;
    saved_member = saved_first = 0;
    saved_rows = call.rows;
    narrow = layers > 1 && sizes[layers] <= NARROW && !activate_last;
    widest = workspace = parameters = units = 0;
    for (i64 l = 0; l < layers; ++l) {
      at[l] = units;
      if (!is_last(l)) units += width(l + 1);
      widest = max64(widest, max64(width(l), width(l + 1)));
      workspace += weight_workspace(l) + width(l + 1);
      parameters += (sizes[l] + 1) * sizes[l + 1];
    }
  }
  i64 width(i64 l) const { return padded(sizes[l]); }
  i64 weight_workspace(i64 l) const { return max64(width(l), NARROW) * width(l + 1); }
  bool is_last(i64 l) const { return l + 1 == layers; }
  bool is_narrow(i64 l) const { return narrow && is_last(l); }
  const float *inputs(i64 member, i64 row) const { return call->x + member * call->x_member + row * call->x_row; }
  const float *place(i64 bytes, i64 floats) const { return (const float *)(call->parameters + bytes) + floats; }
  const float *weights_of(i64 l, i64 member) const { return place(weight[l], member * weight_member[l]); }
  const float *biases_of(i64 l, i64 member) const { return place(bias[l], member * bias_member[l]); }
  float *activations(i64 l, i64 member, i64 row) const {
    return hidden + saved_rows * ((member - saved_member) * units + at[l]) + (row - saved_first) * width(l + 1);
  }
  // Keeps hidden activations of these rows of one member only.
  void keep(i64 member, i64 first, i64 last, float *memory) {
    saved_member = member;
    saved_first = first;
    saved_rows = last - first;
    hidden = memory;
  }

  void deliver(const float *sum, i64 member) const {
    float *to = grads + member * call->grads_member;
    for (i64 l = 0; l < layers; ++l) {
      const i64 n = sizes[l], m = sizes[l + 1];
      if (is_narrow(l))
        for (i64 i = 0; i < n; ++i)
          for (i64 j = 0; j < m; ++j) to[i * m + j] = sum[j * width(l) + i];
      else
        copy(to, m, sum, width(l + 1), n, m);
      copy(to + n * m, m, sum + weight_workspace(l), m, 1, m);
      sum += weight_workspace(l) + width(l + 1);
      to += (n + 1) * m;
    }
  }
};

static void forward_chunk(const Network &net, i64 member, i64 begin, i64 end) {
  Scratch scratch(net.workspace + 3 * BLOCK * net.widest);
  const float *weights[MAX_LAYERS], *biases[MAX_LAYERS];
  for (i64 l = 0; l < net.layers; ++l) {
    const i64 n = net.sizes[l], m = net.sizes[l + 1], width = net.width(l + 1);
    weights[l] = net.weights_of(l, member);
    biases[l] = net.biases_of(l, member);
    if (net.is_narrow(l)) {
      float *across = scratch.take(m * net.width(l));
      transpose(n, m, weights[l], across, net.width(l));
      weights[l] = across;
    } else if (m != width) {
      float *weight = scratch.zeros(n * width), *bias = scratch.zeros(width);
      copy(weight, width, weights[l], m, n, m);
      copy(bias, width, biases[l], m, 1, m);
      weights[l] = weight;
      biases[l] = bias;
    }
  }
  float *buffers[] = {scratch.take(BLOCK * net.widest), scratch.take(BLOCK * net.widest)};
  for (i64 row = begin; row < end; row += BLOCK) {
    const i64 rows = end - row < BLOCK ? end - row : BLOCK;
    const float *in = net.inputs(member, row);
    i64 stride = net.call->x_row;
    for (i64 l = 0; l < net.layers; ++l) {
      const i64 m = net.sizes[l + 1], width = net.width(l + 1);
      float *result = net.out + (member * net.call->rows + row) * m, *to = buffers[l % 2];
      if (net.is_narrow(l)) {
        narrow_product(m, rows, net.width(l), in, stride, weights[l], net.width(l), biases[l], result);
        break;
      }
      if (net.is_last(l) && m == width) to = result;
      if (!net.is_last(l) && net.hidden) to = net.activations(l, member, row);
      product<false>(rows, width, net.sizes[l], in, stride, weights[l], width, biases[l], 0, to, width);
      if (!net.is_last(l) || net.activate_last) activate(net.relu, to, rows * width);
      if (net.is_last(l) && m != width) copy(result, m, to, width, rows, m);
      in = to;
      stride = width;
    }
  }
}

static void backward_chunk(const Network &net, i64 member, i64 begin, i64 end, float *grads) {
  Scratch scratch(net.workspace + 3 * (BLOCK + 1) * net.widest);
  const float *across[MAX_LAYERS];
  for (i64 l = net.grad_x ? 0 : 1; l < net.layers; ++l) {
    float *to = scratch.take(net.sizes[l + 1] * net.width(l));
    transpose(net.sizes[l], net.sizes[l + 1], net.weights_of(l, member), to, net.width(l));
    across[l] = to;
  }
  const float *zeros = scratch.zeros(net.widest);
  float *buffers[] = {scratch.take(BLOCK * net.widest), scratch.take(BLOCK * net.widest)};
  for (i64 row = begin; row < end; row += BLOCK) {
    const i64 rows = end - row < BLOCK ? end - row : BLOCK, outputs = net.sizes[net.layers];
    const i64 first = (member * net.call->rows + row) * outputs;
    const float *grad = net.grad_out + first;
    i64 stride = outputs;
    if (!net.narrow) {
      float *to = buffers[net.layers % 2];
      stride = net.width(net.layers);
      if (outputs != stride) __builtin_memset(to, 0, rows * stride * sizeof(float));
      copy(to, stride, grad, outputs, rows, outputs);
      if (net.activate_last && outputs == stride) differentiate(net.relu, net.out + first, to, rows * stride);
      if (net.activate_last && outputs != stride)
        for (i64 r = 0; r < rows; ++r)
          for (i64 j = 0; j < outputs; ++j) {
            const float y = net.out[first + r * outputs + j], g = to[r * stride + j];
            to[r * stride + j] = net.relu ? (y > 0 ? g : 0) : g - g * (y * y);
          }
      grad = to;
    }
    float *grad_weight = grads + net.workspace;
    for (i64 l = net.layers - 1; l >= 0; --l) {
      const i64 n = net.sizes[l], m = net.sizes[l + 1], below = net.width(l), above = net.width(l + 1);
      const float *h = l ? net.activations(l - 1, member, row) : net.inputs(member, row);
      const i64 h_stride = l ? below : net.call->x_row;
      grad_weight -= net.weight_workspace(l) + above;
      float *grad_bias = grad_weight + net.weight_workspace(l);
      if (net.is_narrow(l))
        product<true>(m, below, rows, grad, stride, h, h_stride, grad_weight, below, grad_weight, below);
      else
        product<true>(n, above, rows, h, h_stride, grad, stride, grad_weight, above, grad_weight, above);
      add_rows(rows, m, grad, stride, grad_bias);
      if (l == 0 && !net.grad_x) break;
      float *to = buffers[l % 2];
      product<false>(rows, below, m, grad, stride, across[l], below, zeros, 0, to, below);
      if (l > 0)
        differentiate(net.relu, h, to, rows * below);
      else
        copy(net.grad_x + (member * net.call->rows + row) * n, n, to, below, rows, n);
      grad = to;
      stride = below;
    }
  }
}

// Networks of one (members, rows); a task is a chunk of rows of one member of one of them.
struct Job {
  const Network *networks;
  i64 members, rows, chunk, chunks;

  template <typename F>
  void each(i64 begin, i64 end, F work) const {
    for (i64 k = begin; k < end; ++k) {
      const i64 first = k % chunks * chunk, member = k / chunks % members;
      work(networks[k / chunks / members], member, first, first + chunk < rows ? first + chunk : rows, k % chunks);
    }
  }
};

static void forward_task(const void *job, i64 begin, i64 end) {
  ((const Job *)job)->each(begin, end, [](const Network &net, i64 member, i64 first, i64 last, i64) {
    forward_chunk(net, member, first, last);
  });
}

static void backward_task(const void *job, i64 begin, i64 end) {
  const i64 chunks = ((const Job *)job)->chunks;
  ((const Job *)job)->each(begin, end, [chunks](const Network &net, i64 member, i64 first, i64 last, i64 k) {
    float *sums = net.sums + (member * chunks + k) * net.workspace;
    __builtin_memset(sums, 0, net.workspace * sizeof(float));
    backward_chunk(net, member, first, last, sums);
  });
}

static void reduce_task(const void *arguments, i64 begin, i64 end) {
  const Job &job = *(const Job *)arguments;
  for (i64 k = begin; k < end; ++k) {
    const i64 member = k % job.members;
    const Network &net = job.networks[k / job.members];
    float *sum = net.sums + member * job.chunks * net.workspace;
    for (i64 chunk = 1; chunk < job.chunks; ++chunk)
      for (i64 j = 0; j < net.workspace; ++j) sum[j] += sum[chunk * net.workspace + j];
    net.deliver(sum, member);
  }
}

// Both ways at once: some rows go through all networks, to the loss and back, while their activations are in the cache.
static void whole_rows(const Job &job, Network *networks, float *const *saved, float *const *sums, i64 member, i64 first,
                         i64 last) {
  const Call &call = *job.networks->call;
  for (i64 n = 0; n < call.networks; ++n) {
    networks[n].keep(member, first, last, saved[n]);
    forward_chunk(networks[n], member, first, last);
  }
  call.loss.rows(call.loss.arguments, 0, member * job.rows + first, member * job.rows + last);
  for (i64 n = 0; n < call.networks; ++n) backward_chunk(networks[n], member, first, last, sums[n]);
}

static void whole_task(const void *arguments, i64 begin, i64 end) {
  const Job &job = *(const Job *)arguments;
  const i64 count = job.networks->call->networks;
  i64 floats = 0;
  for (i64 n = 0; n < count; ++n) floats += CHUNK * job.networks[n].units + job.networks[n].workspace + 32;
  Scratch scratch(floats);
  Network networks[MAX_NETWORKS];
  float *saved[MAX_NETWORKS], *own[MAX_NETWORKS], *sums[MAX_NETWORKS];
  for (i64 n = 0; n < count; ++n) {
    networks[n] = job.networks[n];
    saved[n] = scratch.take(CHUNK * networks[n].units);
    own[n] = scratch.take(networks[n].workspace);
  }
  for (i64 k = begin; k < end; ++k) {
    const i64 member = k / job.chunks, start = k % job.chunks * job.chunk;
    const i64 stop = start + job.chunk < job.rows ? start + job.chunk : job.rows;
    const bool whole = job.chunks == 1;
    for (i64 n = 0; n < count; ++n) {
      sums[n] = whole ? own[n] : networks[n].sums + k * networks[n].workspace;
      __builtin_memset(sums[n], 0, networks[n].workspace * sizeof(float));
    }
    for (i64 first = start; first < stop; first += CHUNK)
      whole_rows(job, networks, saved, sums, member, first, first + CHUNK < stop ? first + CHUNK : stop);
    for (i64 n = 0; n < count && whole; ++n) networks[n].deliver(sums[n], member);
  }
}

struct Networks {
  Network list[MAX_NETWORKS];
  Job job;
  i64 count, workspace = 0, parameters = 0;

  Networks(const Call &call, i64 max_chunks) : count(call.networks) {
    for (i64 k = 0; k < count; ++k) {
      list[k].plan(call.shapes[k], call, call.results[k], call.grads + parameters);
      workspace += list[k].workspace;
      parameters += list[k].parameters;
    }
    const i64 chunk = max64((call.rows + max_chunks - 1) / max_chunks, CHUNK);
    job = {list, call.members, call.rows, (chunk + BLOCK - 1) / BLOCK * BLOCK, 0};
    job.chunks = (call.rows + job.chunk - 1) / job.chunk;
  }
  void run(Task task, i64 tasks, i64 passes) const {
    const bool alone = passes * job.members * job.rows * parameters < ALONE;
    if (tasks) parallel(task, &job, tasks, 1, alone ? 1 : (int)list->call->threads);
  }
};

extern "C" void mlp_forward(const Call *call, i64) {
  Networks nets(*call, MAX_FORWARD_CHUNKS);
  nets.run(forward_task, nets.count * nets.job.members * nets.job.chunks, 1);
}

// The gradients' partial sums, one for each chunk of each member.
struct Sums {
  Scratch scratch;
  explicit Sums(Networks &nets) : scratch(count(nets) * nets.workspace + 16 * nets.count) {
    for (i64 k = 0; k < nets.count; ++k) {
      Network &net = nets.list[k];
      net.sums = scratch.take(count(nets) * net.workspace);
      if (!nets.job.chunks) __builtin_memset(net.sums, 0, count(nets) * net.workspace * sizeof(float));
    }
  }
  static i64 count(const Networks &nets) { return max64(nets.job.chunks, 1) * nets.job.members; }
};

extern "C" void mlp_backward(const Call *call, i64) {
  Networks nets(*call, MAX_CHUNKS);
  const Sums sums(nets);
  nets.run(backward_task, nets.count * nets.job.members * nets.job.chunks, 2);
  nets.run(reduce_task, nets.count * nets.job.members, 1);
}

extern "C" void mlp_whole(const Call *call, i64) {
  Networks nets(*call, MAX_CHUNKS);
  if (nets.job.chunks == 1) return nets.run(whole_task, nets.job.members, 3);
  const Sums sums(nets);
  nets.run(whole_task, nets.job.members * nets.job.chunks, 3);
  nets.run(reduce_task, nets.count * nets.job.members, 1);
}

}  // namespace gz
