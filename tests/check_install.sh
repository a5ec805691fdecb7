#!/usr/bin/env bash
# tests/check_install.sh BUILD_DIRECTORY
# Installs a finished build into a temporary prefix and uses it there as a person on a cluster would: the version, a
# small verified run, the quick start of the installed tree, and the trace read by the installed analysis.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=$(realpath "$1")
prefix=$(mktemp -d)
trap 'rm -rf "$prefix"' EXIT

cmake --install "$build" --prefix "$prefix" >/dev/null
mkdir "$prefix/work"
cd "$prefix/work" # so that nothing is found by chance in the source tree
# shellcheck source=jobs/setup.sh
source "$prefix/share/hcp/jobs/setup.sh"
# shellcheck source=jobs/mpi_environment.sh
source "$prefix/share/hcp/jobs/mpi_environment.sh"
hcp=$prefix/bin/hcp
analysis() { PYTHONPATH=$prefix/share/hcp "$(hcp_python)" -m analysis "$@"; }

expect() { # expect WHAT PATTERN FILE: the file has a line that matches the whole pattern
  if ! grep -qxE "$2" "$3"; then
    echo "check_install: no line '$2' in the output of $1:"
    cat "$3"
    exit 1
  fi
}

"$hcp" --version >version.txt
project_version=$(sed -n 's/^project(hcp VERSION \([0-9.]*\).*/\1/p' "$root/CMakeLists.txt")
expect 'hcp --version' ".*${project_version//./\\.}.*" version.txt

hcp_mpirun 2 "$hcp" run --seq-length 48 --num-attention-heads 4 --kv-channels 16 --simulate-ranks-per-node 1 \
  --iterations 2 --warmup 1 --trace tiny.h5 >tiny.txt
expect 'a small run' 'PASS' tiny.txt
analysis summary tiny.h5 >summary.txt

"$prefix/share/hcp/jobs/quickstart.sh" >quickstart.txt
expect 'the installed quickstart.sh' 'PASS' quickstart.txt
expect 'the installed quickstart.sh' "The trace is $prefix/work/hcp-quickstart-.*\.h5" quickstart.txt

if [[ -n $(find "$prefix" -name CMakeCache.txt) ]]; then
  echo 'check_install: the installed quickstart.sh has built something'
  exit 1
fi
echo "installed: $(head -1 version.txt); a small run and the quick start pass from the prefix"
