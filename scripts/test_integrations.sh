#!/usr/bin/env bash
# Tests the adapter of each RL library in a virtual environment of its own, .venvs/NAME: their pins collide. Each folder
# of tests/integrations has its tests, requirements.txt (what is tested) and constraints.txt (with which versions). It may
# have tests.txt with arguments of pytest, one a line: "oldest" runs tests of the main environment.
#
#   scripts/test_integrations.sh            all
#   scripts/test_integrations.sh rllib ...  some
set -euo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}
folders=tests/integrations
names=("$@")
there=$(cd $folders && ls -- */requirements.txt | xargs -n 1 dirname)
[ $# -gt 0 ] || mapfile -t names <<<"$there"

for name in "${names[@]}"; do
  folder=$folders/$name venv=.venvs/$name
  if [ ! -f "$folder/requirements.txt" ]; then
    echo "there is no $folder/requirements.txt; there are:" $there >&2
    exit 2
  fi
  stamp=$venv/$(cat pyproject.toml "$folder"/*.txt | sha256sum | cut -c1-16).done
  if [ ! -f "$stamp" ]; then
    echo "== $name: installing"
    "$python" -m venv --clear "$venv"
    "$venv/bin/python" -m pip install --quiet --upgrade pip
    # torch comes first and in the tested version, so that no other package chooses one.
    "$venv/bin/python" -m pip install --quiet "$(grep -h '^torch==' "$folder/constraints.txt" constraints.txt | head -1)"
    "$venv/bin/python" -m pip install --quiet -c "$folder/constraints.txt" -r "$folder/requirements.txt"
    if [ -f "$folder/no_deps.txt" ]; then
      "$venv/bin/python" -m pip install --quiet --no-deps --ignore-requires-python -r "$folder/no_deps.txt"
    fi
    touch "$stamp"
  fi
  echo "== $name"
  arguments=("$folder" tests/integrations/test_docs_of_library.py)
  [ ! -f "$folder/tests.txt" ] || mapfile -t arguments < <(grep -v '^#' "$folder/tests.txt")
  "$venv/bin/python" -m pytest "${arguments[@]}"
done
