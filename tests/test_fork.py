"""The child of a fork: its workers are its own before any thread of it uses them."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from gpuzoo.core.backend_cpu import compile_host
from gpuzoo.core.headers import DEVICE

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")

# Forks from the main thread while another thread uses the workers. A child must find the pool untouched, and then uses
# it from two threads at once: each item must be seen once by each call.
_CHILDREN = """
#include <sys/wait.h>
#include <unistd.h>

using namespace gz;

constexpr i64 ITEMS = 1024, TILE_ = 16;
static int stop = 0, ready = 0;

static void count(const void *counts, i64 begin, i64 end) {
  for (i64 i = begin; i < end; ++i) ((int *)counts)[i] += 1;
}

static void *work(void *) {
  int counts[ITEMS] = {};
  __atomic_fetch_add(&ready, 1, __ATOMIC_SEQ_CST);
  while (__atomic_load_n(&ready, __ATOMIC_SEQ_CST) < 2) {}
  for (int call = 1; call <= 20; ++call) {
    parallel(count, counts, ITEMS, TILE_, 3);
    for (i64 i = 0; i < ITEMS; ++i)
      if (counts[i] != call) return (void *)1;
  }
  return nullptr;
}

static void *play(void *) {
  int counts[ITEMS] = {};
  while (!__atomic_load_n(&stop, __ATOMIC_SEQ_CST)) parallel(count, counts, ITEMS, TILE_, 3);
  return nullptr;
}

static int child() {
  if (pool.workers || pool.busy || pool.sleeping || pool.joined || pool.open || pool.call) return 2;
  pthread_t threads[2];
  void *wrong = nullptr, *also = nullptr;
  for (pthread_t &thread : threads) pthread_create(&thread, nullptr, work, nullptr);
  pthread_join(threads[0], &wrong);
  pthread_join(threads[1], &also);
  return wrong || also ? 3 : 0;
}

int main() {
  pthread_t other;
  pthread_create(&other, nullptr, play, nullptr);
  int result = 0;
  for (int k = 0; k < 200 && !result; ++k) {
    const pid_t pid = fork();
    if (pid == 0) {
      alarm(20);
      _exit(child());
    }
    int status = 0;
    waitpid(pid, &status, 0);
    result = WIFEXITED(status) ? WEXITSTATUS(status) : 4;
  }
  __atomic_store_n(&stop, 1, __ATOMIC_SEQ_CST);
  pthread_join(other, nullptr);
  return result;
}
"""


def test_two_threads_of_a_child_share_its_new_workers() -> None:
    """A child that hangs is killed after 20 seconds, and all of it after 120."""
    headers = "\n".join((DEVICE / name).read_text() for name in ("base.cuh", "threads.cuh"))
    done = subprocess.run([str(compile_host(headers + _CHILDREN, "fork", ("-O1",), ".exe"))], timeout=120)
    what = {2: "the pool was as in the parent", 3: "a call left envs out, or took some twice", 4: "a child died"}
    assert done.returncode == 0, what.get(done.returncode, done.returncode)


_THREADS = """
import os, signal, sys, threading
import gpuzoo
from gpuzoo import Simulator

game = gpuzoo.get("CartPole-v1")
old = Simulator(game, 3000, device="cpu", threads=3)
old.reset(seed=0)
old.rollout(5)
want = old.state()["x"]
if (pid := os.fork()) == 0:
    signal.alarm(60)
    results = []
    def play():
        new = Simulator(game, 3000, device="cpu", threads=3)
        new.reset(seed=0)
        new.rollout(5)
        results.append((new.state()["x"] == want).all())
    threads = [threading.Thread(target=play) for _ in range(2)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    if (grandchild := os.fork()) == 0:
        signal.alarm(60)
        play()
        os._exit(not results[-1])
    os._exit(not (len(results) == 2 and all(results) and os.waitpid(grandchild, 0)[1] == 0))
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""


def test_children_and_their_children_play_the_same_bits() -> None:
    """A process that hangs is killed after 60 seconds."""
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", _THREADS]
    assert subprocess.run(command, timeout=120).returncode == 0
