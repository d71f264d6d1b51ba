#!/usr/bin/env bash
# Tests and measures gpuzoo on a machine with an NVIDIA GPU, phase by phase, each bounded in time and useful alone:
#
#   scripts/gpu.sh smoke      one wide game, one capture, one training iteration, doctor: under a minute
#   scripts/gpu.sh bits       golden rollouts; the tests marked gpu, in parallel: equality with the CPU and captures first
#   scripts/gpu.sh sanitize   compute-sanitizer's memcheck, racecheck and synccheck on a few games
#   scripts/gpu.sh bench      steps per second: the headline cases, then all games, robots last
#   scripts/gpu.sh train      PPO, a population, and where an iteration's time goes
#   scripts/gpu.sh profile    Nsight Compute on six step kernels
#   scripts/gpu.sh all        these one after another, each with its share of TOTAL seconds
#   scripts/gpu.sh prepare    on a machine with a network: wheels and compiled kernels, to be carried there
#
# What comes out lies in "$OUT" (./out): rows of JSON, a file for each phase, and logs.tar.gz. `scripts/gpu_figures.py
# --show` prints a table of them; without --show it writes them into the documentation.
#
# All phases share one folder, .gpu: compiled kernels, wheels that the machine lacks, logs. `prepare` fills it, and where
# it is carried along nothing is compiled twice. The machine needs a python3 with torch, CuPy, pytest and pytest-timeout;
# with pytest-xdist the tests take all cores. A tool of NVIDIA's that is missing is named, and the script goes on.
#
# Variables: OUT; PYTHON (python3); LIMIT (seconds for a phase, in place of its own); TOTAL (seconds for all, 570);
# DEVICE (cuda; cpu and simt try the phases where there is no GPU) and SMALL=1, which makes their work small; for prepare
# TARGET_PYTHON (3.12), ARCH (sm_90) and NVRTC, the machine's version of nvidia-cuda-nvrtc: kernels compiled by another
# one are not used.
set -uo pipefail
cd "$(dirname "$0")/.."

phases=(smoke bits sanitize bench train profile)
declare -A limits=([smoke]=60 [bits]=240 [sanitize]=90 [bench]=240 [train]=240 [profile]=90 [prepare]=3000)

out=${OUT:-out}
python=${PYTHON:-python3}
device=${DEVICE:-cuda}
seconds=1.5
few=()
[[ ${SMALL:-} ]] && seconds=0.02 few=(--num-envs 64)
folder=$PWD/.gpu
logs=$folder/logs
export PYTHONUNBUFFERED=1 GPUZOO_CACHE_DIR="$folder/cache" CUPY_CACHE_DIR="$folder/cupy"
export PYTHONPATH="$PWD:$folder/site${PYTHONPATH:+:$PYTHONPATH}"
work=("$python" scripts/gpu_work.py)
status=0

say() { echo "$@" | tee -a "$logs/summary.txt"; }

# part NAME SECONDS log|rows COMMAND...: runs the command for so long at most, or for as much less as the phase has less
# than its own time. What it prints goes to its log; with `rows` it prints rows of JSON, which go to the phase's file.
part() {
  local name=$1 limit=$(( $2 * shorter / 100 )) sink=$3 start=$SECONDS log="$logs/$phase/$1.log" code word=ok
  shift 3
  (( limit < 5 )) && limit=5
  (( limit > deadline - SECONDS )) && limit=$(( deadline - SECONDS ))
  if (( limit < 3 )); then
    say "$phase/$name: no time left"
    status=1
    return 124
  fi
  if [[ $sink == rows ]]; then
    timeout --signal=INT --kill-after=12 "$limit" "$@" >> "$out/$phase.jsonl" 2> "$log"
    code=$?
    echo >> "$out/$phase.jsonl" # ends a row that was cut off
  else
    timeout --signal=INT --kill-after=12 "$limit" "$@" > "$log" 2>&1
    code=$?
  fi
  (( code == 0 )) || { word="status $code"; status=1; }
  (( code == 124 || code == 137 )) && word="cut off"
  say "$(printf '%-36s %-10s %4d s' "$phase/$name" "$word" $(( SECONDS - start )))"
  (( code == 0 )) || tail -n 5 "$log"
  # Now, as the machine may be gone in a minute.
  tar -czf "$out/logs.new" -C "$folder" logs && mv "$out/logs.new" "$out/logs.tar.gz"
  return "$code"
}

have() { command -v "$1" > /dev/null || { say "$phase: there is no $1 on this machine"; return 1; }; }

smoke() {
  { nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader || echo "no nvidia-smi"; } 2>&1 |
    tee -a "$logs/summary.txt"
  part work 50 rows "${work[@]}" smoke --device "$device"
  part doctor 25 log "$python" -m gpuzoo doctor
}

bits() {
  local first='equals_cpu or equals_the_cpus or graph or lanes or illegal' files tests file
  # By name, because pytest would import all files to look for the mark, and many need what the machine lacks.
  mapfile -t files < <(grep -lE 'mark\.gpu' tests/test_*.py)
  # A warning of another library is none of ours.
  tests=(env TEST_TURN=all "$python" -m pytest -m gpu -v -rfE -W default -p no:cacheprovider)
  tests+=(--continue-on-collection-errors)
  "$python" -c 'import xdist' 2> /dev/null && tests+=(-n "$(nproc)" --dist loadgroup)
  [[ $device == cuda* ]] && part compile 60 log "${work[@]}" compile # or several processes would compile the same game
  part golden 60 rows "${work[@]}" golden --device "$device" # needs no program for the CPU, so it is first
  part first 120 log "${tests[@]}" tests/test_gpu.py tests/test_fast_capture.py -k "($first) and not packed"
  part rest 90 log "${tests[@]}" "${files[@]}" -k "not ($first) and not packed"
  part robots 120 log "${tests[@]}" "${files[@]}" -k packed # they take minutes to compile for the CPU, too
  for file in "$logs"/bits/{first,rest,robots}.log; do
    [[ -s $file ]] && say "$(tail -n 1 "$file")"
    # Where all tests are skipped, pytest is content.
    [[ $device != cuda* ]] || grep -qs ' passed' "$file" || status=1
  done
}

sanitize() {
  have compute-sanitizer || return
  local tool
  for tool in memcheck racecheck synccheck; do
    # In parts of one large allocation a wrong address would go unseen.
    part "$tool" 40 log env PYTORCH_NO_CUDA_MEMORY_CACHING=1 compute-sanitizer --tool "$tool" --error-exitcode 9 \
      "${work[@]}" equal CartPole-v1 TagContinuous-v0 TagGridWorld-v0 Pursuit-v0 --apart --num-envs 3 --steps 3 \
      --device "$device"
  done
}

bench() {
  local options=(--device "$device" --seconds "$seconds" "${few[@]}")
  [[ $device == cuda* ]] && part compile 60 rows "${work[@]}" compile
  part headlines 90 rows "${work[@]}" headlines "${options[@]}"
  part games 240 rows "${work[@]}" games "${options[@]}"
}

train() {
  local ppo=("$python" -m baselines.ppo CartPole-v1 --device "$device") large=(--num-envs 4096 --total-steps 5e8)
  local many=(--population 2048 --num-envs 4 --total-steps 5e5) spread=(--num-envs 4096) steps=1e9
  [[ ${SMALL:-} ]] && large=(--num-envs 64 --num-steps 32 --total-steps 2e4) spread=(--num-envs 8)
  [[ ${SMALL:-} ]] && many=(--population 4 --num-envs 4 --num-steps 32 --total-steps 2e3)
  local runs="$folder/runs"
  rm -rf "$runs"
  part ppo 75 log "${ppo[@]}" "${large[@]}" --out "$runs/ppo"
  part population 90 log "${ppo[@]}" "${many[@]}" --out "$runs/population"
  part speeds 20 rows "${work[@]}" training "$runs/ppo" "$runs/population"
  phases_of() { part "phases-$1" 40 rows "$python" scripts/bench_phases.py "$1" "${@:2}" --device "$device" --total-steps $steps; }
  phases_of CartPole-v1 "${spread[@]}"
  phases_of Breakout-MinAtar-v1 "${spread[@]}"
  phases_of TagContinuous-v0 "${few[@]:---num-envs=2000}" --num-steps 32
  phases_of SimpleSpread-v0 "${spread[@]}" --num-steps 32
}

profile() {
  local game
  if have ncu; then
    for game in CartPole-v1 Breakout-MinAtar-v1 'TagGridWorld-v0:1000 agents, partial observation' \
      'TagContinuous-v0:1024 agents' SimpleSpread-v0 SpaceInvaders-MinAtar-v1; do
      part "$game" 30 log ncu --csv --log-file "$logs/profile/$game.csv" --print-units base --clock-control none \
        --metrics "$("${work[@]}" metrics)" --kernel-name gz_step --launch-skip 10 --launch-count 1 \
        "${work[@]}" steps "$game" --device "$device" "${few[@]}"
      part "row of $game" 15 rows "${work[@]}" profile "$logs/profile/$game.csv"
    done
  fi
}

prepare() {
  local needed read='import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["dependencies"], sep="\n")'
  rm -rf "$folder/wheels" "$folder/site"
  mkdir -p "$folder/wheels"
  mapfile -t needed < <("$python" -c "$read")
  part wheels 600 log "$python" -m pip download --only-binary=:all: --implementation cp \
    --python-version "${TARGET_PYTHON:-3.12}" --platform manylinux_2_28_x86_64 --platform manylinux2014_x86_64 \
    -c constraints.txt -d "$folder/wheels" "${needed[@]}" safetensors
  rm -f "$folder"/wheels/numpy-* # torch and CuPy have theirs
  if [[ ${NVRTC:-} ]]; then
    local compiler # not in .gpu: it is larger than all else, and the machine has it
    compiler=$(mktemp -d)
    part nvrtc 600 log "$python" -m pip install -q --no-deps --target "$compiler" "nvidia-cuda-nvrtc==$NVRTC"
    export PYTHONPATH="$compiler:$PYTHONPATH"
  fi
  part compile 3000 rows "${work[@]}" compile --arch "${ARCH:-sm_90}"
  rm -rf "${compiler:-}"
  say "$(du -sh "$folder" | cut -f1) in .gpu, with $(find "$folder/cache" -name '*.cubin' 2> /dev/null | wc -l) compiled programs"
}

# Runs one phase within so many seconds.
run() {
  phase=$1
  deadline=$(( SECONDS + $2 ))
  shorter=$(( $2 < limits[$phase] ? 100 * $2 / limits[$phase] : 100 ))
  rm -rf "${logs:?}/$phase" "$out/$phase.jsonl"
  mkdir -p "$logs/$phase" "$out"
  say "== $phase, at most $2 s, $(date -u +%FT%TZ)"
  "$phase"
}

phase=${1:-}
if [[ $# != 1 || ( -z ${limits[$phase]:-} && $phase != all ) ]]; then
  echo "usage: scripts/gpu.sh ${phases[*]// /|}|all|prepare" >&2
  exit 2
fi
mkdir -p "$logs" "$out"
unpacking=$SECONDS
if compgen -G "$folder/wheels/*.whl" > /dev/null && [[ $phase != prepare && ! -d $folder/site ]]; then
  rm -rf "$folder/unpacked" # of a call that was cut off
  "$python" -m pip install -q --no-index --no-deps --no-compile --target "$folder/unpacked" "$folder"/wheels/*.whl &&
    mv "$folder/unpacked" "$folder/site" || say "the wheels in .gpu/wheels could not be installed"
fi
if [[ $phase != prepare ]] && ! told=$(timeout 40 "${work[@]}" ready --device "$device" 2>&1); then
  say "scripts/gpu.sh $phase cannot run: $(tail -n 1 <<< "${told:-$device does not answer}")"
  exit 2
fi
unpacking=$(( SECONDS - unpacking ))
table=()
if [[ $phase == all ]]; then
  total=$(( ${TOTAL:-570} - unpacking )) sum=0
  for phase in "${phases[@]}"; do sum=$(( sum + limits[$phase] )); done
  (( total > sum )) && total=$sum
  for phase in "${phases[@]}"; do run "$phase" $(( limits[$phase] * total / sum )); done
else
  run "$phase" "${LIMIT:-${limits[$phase]}}"
  table=(--phase "$phase")
fi
[[ $phase != prepare && ( -e $out/$phase.jsonl || ! ${table[*]} ) ]] && "$python" scripts/gpu_figures.py --show --out "$out" "${table[@]}"
exit "$status"
