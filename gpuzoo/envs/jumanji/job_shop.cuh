#include "sized.cuh"

constexpr int JOBS = LARGEST, MACHINES = Config::num_machines, OPS = Config::max_num_ops;
constexpr int NO_OP = JOBS, NOTHING = -1;

// The machine that the next operation of a job needs, or NOTHING if the job is finished, or is busy now.
GZ int wanted_machine(Env e, int job, int now) {
  const int op = e.next_op[job];
  if (op >= e.num_ops[job]) return NOTHING;
  const bool busy = op > 0 && e.scheduled_times(job, op - 1) + e.ops_durations(job, op - 1) > now;
  return busy ? NOTHING : (int)e.ops_machine_ids(job, op);
}

GZ void reset(Env e) {
  once(e, [=] {
    const int given = INSTANCES > 0 ? given_instance(e, 0) : 0;
    e.size = INSTANCES > 0 ? (int)e.given_size[given] : drawn_size(e);
    for (int job = 0; job < JOBS; ++job) {
      int ops = 0;
      if (job < e.size && INSTANCES == 0) ops = 1 + random_int(e, job, 0, OPS);
      for (int op = 0; op < OPS; ++op) {
        int machine = NOTHING, duration = NOTHING;
        if (job < e.size && INSTANCES > 0) {
          machine = e.given_ops_machine_ids[(JOBS * given + job) * OPS + op];
          duration = e.given_ops_durations[(JOBS * given + job) * OPS + op];
          ops += (int)(machine >= 0);
        } else if (op < ops) {
          machine = random_int(e, job, 1 + 2 * op, MACHINES);
          duration = 1 + random_int(e, job, 2 + 2 * op, Config::max_op_duration);
        }
        e.ops_machine_ids(job, op) = (i16)machine;
        e.ops_durations(job, op) = (i16)duration;
        e.scheduled_times(job, op) = -1;
      }
      e.num_ops[job] = (i16)ops;
      e.next_op[job] = 0;
    }
    for (int machine = 0; machine < MACHINES; ++machine) {
      e.machines_job_ids[machine] = NO_OP;
      e.machines_remaining_times[machine] = 0;
    }
  });
}

// A machine begins the next operation of a job, or goes on.
GZ void work(Env e, int machine, int job, int now) {
  int remaining = e.machines_remaining_times[machine];
  if (job != NO_OP) {
    const int op = e.next_op[job];
    e.scheduled_times(job, op) = now;
    e.next_op[job] = (i16)(op + 1);
    e.machines_job_ids[machine] = (i16)job;
    remaining = e.ops_durations(job, op);
  } else if (remaining == 0) {
    e.machines_job_ids[machine] = NO_OP;
  }
  e.machines_remaining_times[machine] = (i16)max(remaining - 1, 0);
}

GZ void step(Env e) {
  once(e, [=] {
    bool legal = true;
    for (int machine = 0; machine < MACHINES; ++machine) legal = legal && e.action[machine] >= 0;
    bool idle = true, running = false;
    if (legal) {
      for (int machine = 0; machine < MACHINES; ++machine) {
        work(e, machine, e.action[machine], e.t - 1);
        const bool works = e.machines_remaining_times[machine] > 0;
        idle = idle && !works && e.machines_job_ids[machine] == NO_OP;
        running = running || works;
      }
    }
    bool left = false;
    for (int job = 0; job < JOBS; ++job) left = left || e.next_op[job] < e.num_ops[job];
    e.reward = idle ? -(float)(e.size * OPS * Config::max_op_duration) : -1.f;
    e.terminated = idle || (!left && !running);
  });
}

GZ void observe(Env e) {
  once(e, [=] {
    Row durations = e.observation + JOBS * OPS, open = durations + JOBS * OPS, jobs = open + JOBS * OPS;
    for (int job = 0; job < JOBS; ++job)
      for (int op = 0; op < OPS; ++op) {
        const int k = OPS * job + op;
        e.observation[k] = e.ops_machine_ids(job, op);
        durations[k] = e.ops_durations(job, op);
        open[k] = (i16)(op >= e.next_op[job] && op < e.num_ops[job]);
      }
    for (int machine = 0; machine < MACHINES; ++machine) {
      jobs[machine] = e.machines_job_ids[machine];
      jobs[MACHINES + machine] = e.machines_remaining_times[machine];
      for (int job = 0; job < JOBS; ++job) e.action_mask[(JOBS + 1) * machine + job] = 0;
      e.action_mask[(JOBS + 1) * machine + NO_OP] = 1;
    }
    for (int job = 0; job < JOBS; ++job) {
      const int machine = wanted_machine(e, job, e.t);
      if (machine >= 0 && e.machines_remaining_times[machine] == 0) e.action_mask[(JOBS + 1) * machine + job] = 1;
    }
  });
}
