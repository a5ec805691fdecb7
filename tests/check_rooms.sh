#!/usr/bin/env bash
# Who may include whom: every library is called from its named rooms, every room includes only what stands below it.
#
#   tests/check_rooms.sh [ROOT]       prints each violation as FILE:LINE:TEXT and a reason; exit status 1 if there is one
#   tests/check_rooms.sh --self-test  plants violations in a made-up tree and expects every one to be found
set -euo pipefail

# One line per library: name, its headers, and the files that may include them (extended regular expressions).
libraries=(
  'MPI    mpi(-ext)?\.h                    (topology|src/comm)/'
  'hwloc  hwloc(\.h|/.*)                   topology/'
  'HDF5   (hdf5.*|H5.*)\.h                 src/trace/|src/job/input[a-z_]*\.cpp'
  'Boost  boost/.*                         src/job/command_line\.cpp'
  'CUDA   (cuda|cublas|cudnn|nvml|nvtx).*  kernels/(cuda/|buffer\.cpp|stopwatch\.cpp)|src/comm/(nccl|staged)_[a-z_]*\.[ch]pp'
  'NCCL   nccl.*\.h                        src/comm/nccl_[a-z_]*\.[ch]pp'
)

# One line per room: its files, and what their quoted includes may begin with. Paths start at the repository root.
rooms=(
  'topology/       topology/'
  'kernels/        kernels/'
  'src/comm/       (topology|kernels|src/comm)/'
  'src/exchange/   (topology|kernels|src/comm|src/exchange)/'
  'src/attention/  (topology|kernels|src/comm|src/exchange|src/attention)/'
  'src/plan/       (topology|kernels|src/exchange|src/plan)/'
  'src/trace/      src/trace/'
  'src/job/        (topology|kernels|src/[a-z]+)/|git_revision\.hpp' # the latter is written by the build
  'src/main\.cpp   (topology|kernels|src/[a-z]+)/'
)

# report REASON: prints what comes in, if anything, with the reason, and notes the failure.
report() {
  local found
  found=$(cat)
  if [[ -n $found ]]; then
    printf '%s\n  -> %s\n' "$found" "$1"
    violations=$((violations + 1))
  fi
}

check_tree() {
  local line name headers files room allowed includes
  violations=0
  includes=$(grep -rnE '^[[:space:]]*#[[:space:]]*include' --include=*.[ch]pp --include=*.cu --include=*.cuh \
    topology kernels src) # FILE:LINE:TEXT
  for line in "${libraries[@]}"; do
    read -r name headers files <<<"$line"
    report "$name may be included only in $files" < <(
      grep -E "include[[:space:]]*[<\"]${headers}[>\"]" <<<"$includes" | grep -vE "^($files)")
  done
  for line in "${rooms[@]}"; do
    read -r room allowed <<<"$line"
    report "$room may include only $allowed" < <(
      grep -E "^${room}.*include[[:space:]]*\"" <<<"$includes" | grep -vE "include[[:space:]]*\"$allowed")
  done
  report 'a header has no #if: back ends are chosen by which file is built' < <(
    grep -rnE '^[[:space:]]*#[[:space:]]*(if|ifdef|ifndef)\b' --include=*.hpp topology kernels src 2>/dev/null)
  report 'analysis, jobs and inputs hold no C++' < <(
    find analysis jobs inputs -name '*.[ch]pp' -o -name '*.cu' 2>/dev/null)
  report 'the top level of the repository is fixed' < <(
    find . -mindepth 1 -maxdepth 1 ! -name '.*' ! -name 'build*' ! -name 'hcp-*.h5*' | sort | grep -vxE \
      './(CMakeLists\.txt|README\.md|src|kernels|topology|jobs|inputs|analysis|tests)')
  ((violations == 0))
}

self_test() {
  local tree planted path text wrong=0
  tree=$(mktemp -d)
  # shellcheck disable=SC2064  # the name of now
  trap "rm -rf '$tree'" EXIT
  mkdir -p "$tree"/{topology,kernels/cuda,src/{comm,exchange,attention,plan,trace,job},analysis,jobs,inputs,tests}
  cd "$tree"
  local right=(
    'topology/a.cpp|#include <mpi.h>' 'topology/b.cpp|#include <hwloc.h>' 'src/comm/a.cpp|#include "kernels/buffer.hpp"'
    'src/exchange/a.cpp|#include "src/comm/transport.hpp"' 'src/trace/a.cpp|#include <hdf5.h>'
    'src/job/input.cpp|#include <hdf5.h>' 'src/job/command_line.cpp|#include <boost/program_options.hpp>'
    'src/main.cpp|#include "src/job/run_job.hpp"' 'kernels/cuda/a.cu|#include <cuda_runtime.h>'
    'src/comm/nccl_groups.hpp|#include <nccl.h>' 'src/comm/staged_chunks.cpp|#include <cuda_runtime_api.h>'
  )
  for planted in "${right[@]}"; do
    IFS='|' read -r path text <<<"$planted"
    printf '%s\n' "$text" >"$path"
  done
  if ! check_tree; then
    echo "check_rooms self-test: a tree without violations is refused"
    wrong=1
  fi
  local violation=(
    'kernels/x.cpp|#include <mpi.h>' 'src/attention/x.hpp|  #  include "mpi.h"' 'src/job/x.cpp|#include <mpi-ext.h>'
    'src/job/run_job.cpp|#include <hdf5.h>' 'src/plan/x.cpp|#include <H5Cpp.h>' 'src/main.cpp|#include <boost/any.hpp>'
    'src/comm/x.cpp|#include <hwloc/helper.h>' 'src/attention/x.cpp|#include <cuda_runtime.h>' 'src/job/x.cpp|#include <nvtx3/nvToolsExt.h>'
    'kernels/cuda/x.cu|#include <nccl.h>' 'src/comm/x.hpp|#include <nccl.h>' 'src/comm/staged_x.cpp|#include "nccl.h"'
    'src/exchange/nccl_x.cpp|#include <nccl.h>' 'src/comm/x.cpp|#include <cuda_runtime_api.h>'
    'kernels/x.hpp|#include "topology/rank_grid.hpp"'
    'topology/x.hpp|#include "kernels/tensor.hpp"' 'src/comm/x.hpp|#include "src/exchange/scheme.hpp"'
    'src/exchange/x.cpp|#include "src/attention/a.hpp"' 'src/attention/x.cpp|#include "src/job/a.hpp"'
    'src/plan/x.cpp|#include "src/comm/transport.hpp"' 'src/trace/x.cpp|#include "topology/rank_grid.hpp"'
    'src/job/x.cpp|#include "run_job.hpp"' 'src/job/x.cpp|#include "tests/a.hpp"' 'kernels/x.hpp|#ifdef HCP_WITH_CUDA'
    'analysis/x.cpp|int main() {}' 'util|'
  )
  for planted in "${violation[@]}"; do
    IFS='|' read -r path text <<<"$planted"
    local before=
    if [[ -f $path ]]; then before=$(<"$path"); fi
    printf '%s\n' "$text" >"$path"
    local answer
    if answer=$(check_tree) || [[ $answer != *"$path"* ]]; then
      echo "check_rooms self-test: not found: '$text' in $path"
      wrong=1
    fi
    if [[ -n $before ]]; then printf '%s\n' "$before" >"$path"; else rm "$path"; fi
  done
  if ((wrong)); then return 1; fi
  echo "check_rooms self-test: ${#violation[@]} planted violations found, ${#right[@]} right includes accepted"
}

if [[ ${1:-} == --self-test ]]; then
  self_test
else
  cd "${1:-$(dirname "${BASH_SOURCE[0]}")/..}"
  if check_tree; then echo "rooms: every include stays within its room"; else exit 1; fi
fi
