#!/usr/bin/env bash
# Tests the adapter of each RL library in a virtual environment of its own, .venvs/NAME: their pins collide. Each folder
# of tests/integrations has its tests, requirements.txt (what is tested) and constraints.txt (with which versions). It may
# have tests.txt with arguments of pytest, one a line: "oldest" runs tests of the main environment.
#
#   scripts/test_integrations.sh                those of what changed lately, and a sixth of the rest by turns
#   TEST_TURN=all scripts/test_integrations.sh  all, with their long learning runs
#   scripts/test_integrations.sh rllib ...      some
#
# What comes by turns is chosen by the commit, or by TEST_TURN (tests/rotation.py).
#
# JOBS of them run at a time, by default 2. What one prints is shown when it is through; all run, even if one fails.
# DISCARD=1 removes each virtual environment after its tests: one takes one to two gigabytes.
set -euo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}
folders=tests/integrations
export CMAKE_POLICY_VERSION_MINIMUM=3.5 # for packages that are built, and are older than CMake 4
export PYTHONDONTWRITEBYTECODE=         # what Python compiles is kept, or each process would compile it anew

install() { # of NAME into VENV
  local name=$1 venv=$2 folder=$folders/$1
  # Python compiles what is imported, which is a small part of what torch installs.
  local pip=("$venv/bin/python" -m pip install --quiet --no-compile)
  "$python" -m venv --clear "$venv"
  # torch comes first and in the tested version, so that no other package chooses one.
  "${pip[@]}" "$(grep -h '^torch==' "$folder/constraints.txt" constraints.txt | head -1)"
  "${pip[@]}" -c "$folder/constraints.txt" -r "$folder/requirements.txt"
  if [ -f "$folder/no_deps.txt" ]; then
    "${pip[@]}" --no-deps --ignore-requires-python -r "$folder/no_deps.txt"
  fi
}

run() { # the tests of NAME
  local name=$1 folder=$folders/$1 venv=.venvs/$1 stamp arguments
  stamp=$venv/$(cat pyproject.toml "$folder"/*.txt | sha256sum | cut -c1-16).done
  if [ ! -f "$stamp" ]; then
    install "$name" "$venv"
    touch "$stamp"
  fi
  arguments=("$folder" tests/integrations/test_docs_of_library.py)
  [ ! -f "$folder/tests.txt" ] || mapfile -t arguments < <(grep -v '^#' "$folder/tests.txt")
  "$venv/bin/python" -m pytest "${arguments[@]}"
}

if [ "${1:-}" = --one ]; then
  name=$2 log=.venvs/$2.log
  echo "== $name: see $log"
  set +e
  (set -e; run "$name") >"$log" 2>&1
  code=$?
  [ -z "${DISCARD:-}" ] || rm -rf ".venvs/$name"
  flock .venvs bash -c 'cat "$1"; echo "== $0: exit code $2"' "$name" "$log" "$code"
  exit "$code"
fi

names=("$@")
there=$(cd $folders && ls -- */requirements.txt | xargs -n 1 dirname)
if [ $# -eq 0 ]; then
  chosen=$("$python" tests/rotation.py)
  mapfile -t names <<<"$chosen"
  echo "== ${names[*]} (of" $there")"
fi
for name in "${names[@]}"; do
  if [ ! -f "$folders/$name/requirements.txt" ]; then
    echo "there is no $folders/$name/requirements.txt; there are:" $there >&2
    exit 2
  fi
done
mkdir -p .venvs
printf '%s\n' "${names[@]}" | xargs -n 1 -P "${JOBS:-2}" scripts/test_integrations.sh --one
