#!/usr/bin/env bash
# Times attention of PyTorch on the CPU against hcp, in turn on this machine, and prints the tables in Markdown.
#
#   tests/bench/peers/run.sh --install         PyTorch from PyPI into build/peers (0.6 GB to load, 1.5 GB there)
#   tests/bench/peers/run.sh                   both tables, about ten minutes
#   tests/bench/peers/run.sh --quick           a few cases of both, one to two minutes
#   tests/bench/peers/run.sh attention         one table: attention or ring
#   tests/bench/peers/run.sh --threads N       of each side in the first table (default all cores)
#   tests/bench/peers/run.sh --build DIRECTORY where hcp is built (default build/tests, as tests/run.sh makes it)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../../.."

readonly here=tests/bench/peers environment=build/peers
build=build/tests
forwarded=()
while (($#)); do
  case $1 in
    --help | -h)
      sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$here/run.sh"
      exit 0
      ;;
    --install) exec "$here/install_torch.sh" "$environment" ;;
    --build)
      build=${2:?--build needs a directory}
      shift
      ;;
    *) forwarded+=("$1") ;;
  esac
  shift
done

if [[ ! -x $environment/bin/python ]] || ! "$environment/bin/python" -c 'import torch' 2>/dev/null; then
  echo "run.sh: PyTorch is missing; install it with  $here/run.sh --install" >&2
  exit 2
fi
if [[ ! -f $build/CMakeCache.txt ]]; then
  echo "run.sh: hcp is not configured in $build; do  cmake -S . -B $build  or name another directory with --build" >&2
  exit 2
fi
cmake --build "$build" --target hcp bench_attention_once --parallel "$(nproc)" >&2
exec "$environment/bin/python" -B "$here/compare.py" --build "$build" "${forwarded[@]}"
