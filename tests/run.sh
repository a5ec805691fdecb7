#!/usr/bin/env bash
# Builds hcp with its tests and runs them. Sets the machine up first, as jobs/quickstart.sh does.
#
#   tests/run.sh               the quick tests
#   tests/run.sh --all         everything that CI runs: also slow tests, the sanitizers, the emulated network,
#                              format, rooms, and the installed tree; where there is no nvcc, it is installed to
#                              build/cuda from PyPI
#   tests/run.sh --exhaustive  with whole products of cases where else samples run (hours); goes with --all
#
# Build directories: build/tests, build/sanitize. A part that cannot run here says "skipped: reason". The closing lines
# are a table of the parts with verdict and seconds, their sum, and PASS or FAIL. Exit status 0, 1, or 2 if the
# machine could not be set up. Tests carry labels: unit (no ranks), mpi, device (need a GPU, else they skip), slow (only
# with --all), cluster (network namespaces; only with --all).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=jobs/setup.sh
source jobs/setup.sh
# shellcheck source=jobs/cuda_toolkit.sh
source jobs/cuda_toolkit.sh
# shellcheck source=jobs/mpi_environment.sh
source jobs/mpi_environment.sh

all=false
test_timeout=300 # seconds for one test program
for option in "$@"; do
  case $option in
    --all) all=true ;;
    --exhaustive)
      export HCP_TEST_EXHAUSTIVE=1
      test_timeout=14400
      ;;
    *)
      sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "${BASH_SOURCE[0]}" >&2
      exit 2
      ;;
  esac
done

readonly skipped=77 # exit status of a part that cannot run here
names=()
declare -A verdict seconds

# part NAME COMMAND...: runs one part and notes its verdict.
part() {
  local name=$1 begin=$SECONDS status
  shift
  printf '\n== %s\n' "$name"
  set +e # and not `|| status=$?`, inside which a part would not stop at its first error
  (set -e && "$@")
  status=$?
  set -e
  names+=("$name")
  seconds[$name]=$((SECONDS - begin))
  case $status in
    0) verdict[$name]=passed ;;
    "$skipped") verdict[$name]=skipped ;;
    *) verdict[$name]=failed ;;
  esac
}

# Runs on every way out, so that the last line is never missing.
finish() {
  local status=$? name passed=0 failed=0 left_out=0
  printf '\n== summary\n'
  for name in "${names[@]}"; do
    printf '%-10s %-8s %5d s\n' "$name" "${verdict[$name]}" "${seconds[$name]}"
    case ${verdict[$name]} in
      passed) passed=$((passed + 1)) ;;
      skipped) left_out=$((left_out + 1)) ;;
      failed) failed=$((failed + 1)) ;;
    esac
  done
  printf '%-10s %-8s %5d s\n' total '' "$SECONDS"
  printf 'parts: %d passed, %d failed, %d skipped\n' "$passed" "$failed" "$left_out"
  if ((status == 0 && failed == 0 && passed > 0)); then
    echo PASS
    exit 0
  fi
  echo FAIL
  exit $((status > 0 ? status : 1))
}

# build DIRECTORY TARGET CMAKE_OPTION...: configures and builds; the log is shown where it fails.
build() {
  local directory=$1 target=$2 generator=()
  shift 2
  if command -v ninja >/dev/null; then generator=(-G Ninja); fi
  mkdir -p "$directory"
  if ! { cmake -S . -B "$directory" "${generator[@]}" "$@" &&
    cmake --build "$directory" --target "$target" --parallel "$(nproc)"; } >"$directory/build.log" 2>&1; then
    tail -n 60 "$directory/build.log"
    return 1
  fi
  if $all && grep -A 5 'warning:' "$directory/build.log"; then # a person's newer compiler may warn of more
    echo 'the build has warnings'
    return 1
  fi
}

# run_tests DIRECTORY CTEST_OPTION...: test programs with several ranks have the cores to themselves (PROCESSORS).
run_tests() {
  local directory=$1
  shift
  ctest --test-dir "$directory" --parallel "$(nproc)" --output-on-failure --no-tests=error \
    --timeout "$test_timeout" "$@"
}

build_tests() { build build/tests all -DHCP_TEST_TIMEOUT="$test_timeout"; }

main_tests() {
  local left_out=cluster
  if ! $all; then left_out='cluster|slow'; fi
  run_tests build/tests -LE "$left_out"
}

# Tests without ranks: an MPI library reports leaks of its own under AddressSanitizer.
sanitized_tests() {
  build build/sanitize hcp_unit_tests -DHCP_SANITIZE=ON -DHCP_BUILD_BENCHMARKS=OFF
  run_tests build/sanitize -L unit
}

network_tests() {
  local reason
  if ! reason=$(tests/cluster/cluster.sh check 2>&1); then
    echo "skipped: $reason"
    return "$skipped"
  fi
  run_tests build/tests -L cluster --verbose | tee build/tests/cluster.log # with the figures measured
  if grep -q 'Skipped' build/tests/cluster.log; then
    echo 'this machine can emulate a network, so no test may skip'
    return 1
  fi
}

check_format() {
  local version
  version=$(clang-format --version | sed -n 's/.*version \([0-9]*\).*/\1/p')
  if [[ $version != 14 ]]; then
    echo "skipped: clang-format 14 decides, here is $version"
    return "$skipped"
  fi
  find src kernels topology tests \( -name '*.[ch]pp' -o -name '*.cu' -o -name '*.cuh' \) -print0 |
    xargs -0 clang-format --dry-run -Werror
}

check_rooms() {
  tests/check_rooms.sh --self-test
  tests/check_rooms.sh
}

trap finish EXIT
hcp_set_up --tests
if $all; then part nvcc hcp_provide_nvcc build/cuda; fi
if CUDACXX=$(hcp_find_nvcc "$PWD/build/cuda"); then export CUDACXX; else unset CUDACXX; fi
part build build_tests
if [[ ${verdict[build]} == passed ]]; then part tests main_tests; fi
if $all; then
  part format check_format
  part rooms check_rooms
  if [[ ${verdict[build]} == passed ]]; then
    part install tests/check_install.sh build/tests
    part network network_tests
  fi
  part sanitize sanitized_tests
fi
