#!/usr/bin/env bash
# Tests and measures gpuzoo on a machine with an NVIDIA GPU, within TOTAL seconds, and leaves logs and JSON in "$OUT"
# (by default ./out). Every part runs whatever became of the others; the exit status is that of the tests.
#
#   scripts/gpu.sh
#
# The machine needs a python3 with torch and CuPy, and pytest with pytest-timeout. What else is missing there (gymnasium,
# pettingzoo, ...) can be brought as wheels in ./.whl; they are installed into a temporary folder, without network. To
# prepare them, anywhere, for the machine's version of Python:
#
#   python3 -m pip download --no-deps --only-binary=:all: --python-version 3.12 --implementation cp \
#     --platform manylinux_2_28_x86_64 --platform manylinux2014_x86_64 -d .whl \
#     gymnasium pettingzoo farama-notifications cloudpickle platformdirs typer rich safetensors
#
# Without network --no-deps means just that: name every requirement that the machine lacks.
#
# Variables: OUT, PYTHON (python3), TOTAL (560 seconds), PPO (options of the training run).
set -uo pipefail
cd "$(dirname "$0")/.."

out=${OUT:-out}
python=${PYTHON:-python3}
total=${TOTAL:-560}
ppo=${PPO:---num-envs 4096 --total-steps 4e6}
mkdir -p "$out"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export PYTHONUNBUFFERED=1 PYTHONPATH="$PWD${PYTHONPATH:+:$PYTHONPATH}" GPUZOO_CACHE_DIR="$scratch/cache"
: > "$out/summary.txt"

# part NAME SECONDS FILE COMMAND...: runs the command for so long at most, with its output in FILE
part() {
  local name=$1 limit=$2 file=$3 start=$SECONDS status
  shift 3
  (( limit > total - SECONDS )) && limit=$(( total - SECONDS ))
  if (( limit < 5 )); then
    echo "$name: no time left" | tee -a "$out/summary.txt"
    return 124
  fi
  echo "== $name: $*"
  case $file in
    *.log) timeout --signal=INT --kill-after=10 "$limit" "$@" 2>&1 | tee "$out/$file"; status=${PIPESTATUS[0]} ;;
    *) timeout --signal=INT --kill-after=10 "$limit" "$@" > "$out/$file"; status=$? ;;
  esac
  printf '%-14s status %3d, %3d s\n' "$name" "$status" $(( SECONDS - start )) | tee -a "$out/summary.txt"
  return "$status"
}

# table FILE: rows of JSON for the eye
table() {
  "$python" - "$out/$1" <<'EOF'
import json, sys
for line in open(sys.argv[1]):
    row = json.loads(line)
    if "steps_per_second" not in row:
        print(" ", row.get("error") or row["gpu"] or row["cpu"])
        continue
    name = row.get("name") or f"{row['id']} {row['case']}"
    more = [f"{row['roofline_fraction']:7.1%} of {row['copy_bandwidth'] / 1e9:.0f} GB/s"] if "roofline_fraction" in row else []
    more += [f"rollout {row['rollout_steps_per_second']:.3g}/s"] if "rollout_steps_per_second" in row else []
    more += [f"first step {row[k]:.2f} s" for k in row if k.startswith("first_step")]
    print(f"  {name:44} {row['num_envs']:8} envs {row['steps_per_second']:10.3g} steps/s", *more)
EOF
}

if compgen -G '.whl/*.whl' > /dev/null; then
  "$python" -m pip install -q --no-index --no-deps --no-compile --upgrade --target "$scratch/site" .whl/*.whl ||
    echo "the wheels in .whl could not be installed" | tee -a "$out/summary.txt"
  export PYTHONPATH="$PYTHONPATH:$scratch/site"
fi

nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader || echo "no nvidia-smi"
part doctor 60 doctor.log "$python" -m gpuzoo doctor
part tests 210 tests.log env TEST_TURN=all "$python" -m pytest -m gpu -q -p no:cacheprovider --durations=10
tests=$?
part bench-cuda 110 bench_cuda.jsonl "$python" -m gpuzoo bench --json --device cuda --no-startup --seconds 1.5
table bench_cuda.jsonl
part start-up 40 startup_cuda.jsonl \
  "$python" -m gpuzoo bench '^(CartPole|TagContinuous)-v. default' --json --device cuda --num-envs 4096 --seconds 0.3
table startup_cuda.jsonl
phases() {
  part "phases-$1" 50 "phases_$1.jsonl" "$python" scripts/bench_phases.py "${@:2}" --device cuda --total-steps 1e9
  cat "$out/phases_$1.jsonl"
}
phases cartpole CartPole-v1 --num-envs 4096
phases tag TagContinuous-v0 --num-envs 2000 --num-steps 32 --config.num_runners 100 --config.num_other_agents_observed 10
phases spread SimpleSpread-v0 --num-envs 4096 --num-steps 32
phases population CartPole-v1 --population 2048 --num-envs 4
# shellcheck disable=SC2086 # several words
part ppo 60 ppo.log "$python" -m baselines.ppo CartPole-v1 --device cuda $ppo
part population 90 population.log \
  "$python" -m baselines.ppo CartPole-v1 --device cuda --population 2048 --num-envs 4 --total-steps 5e5
part bench-cpu 70 bench_cpu.jsonl "$python" -m gpuzoo bench --json --device cpu --no-startup --seconds 1
table bench_cpu.jsonl
part peers 40 peers.jsonl "$python" scripts/bench_peers.py --json --seconds 0.5
table peers.jsonl

echo
cat "$out/summary.txt"
exit "$tests"
