#!/usr/bin/env bash
# The checks for a day with a GPU.
#
#   tests/gpu_check.sh --pack DIRECTORY [--build-dir BUILD]
#       makes a folder that works on a machine with only a driver, glibc and python3. Builds in build/gpu_check, for
#       sm_80 and sm_90 and any processor, unless a finished build is given.
#   gpu_check.sh [RESULTS]
#       in such a folder: runs everything on the machine's first GPU, in 8 minutes at most, and leaves six files in
#       RESULTS (gpu_check_results unless said). What is worth most comes first, and the files are up to date after
#       every step, so that a run that is cut off still counts. Uses nvidia-smi, compute-sanitizer, cuBLAS and PyTorch
#       where the machine has them.
#
# The closing lines are the steps with verdict and seconds, and PASS, FAIL or CUT OFF. Exit status 0, 1 or 3; 2 for
# wrong words; 77 and the reason where no device answers.
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

if [[ ${1:-} == --pack ]]; then
  exec "$here/gpu_check/pack.sh" "${@:2}"
fi
if [[ $# -gt 1 || ${1:-} == -* || ! -e $here/files.tar.xz ]]; then
  sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "${BASH_SOURCE[0]}" >&2
  exit 2
fi

readonly limit=470 # seconds for everything
results=${1:-gpu_check_results}
mkdir -p "$results" || exit 2
results=$(cd "$results" && pwd)
readonly summary=$results/summary.txt log=$results/log.txt
: >"$summary"
: >"$log"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failed=0 cut_off=0
steps=()

say() { printf '%s\n' "$*" | tee -a "$summary" "$log"; }

# step NAME SECONDS COMMAND...: what it prints goes to the log. Exit status 77 is: this machine has it not, which is a
# failure but for PyTorch: the device has answered.
step() {
  local name=$1 seconds=$2 left=$((limit - SECONDS)) begin=$SECONDS status=124 verdict
  shift 2
  printf '\n== %s\n' "$name" >>"$log"
  if ((left > 5)); then
    timeout -k 5 "$((seconds < left ? seconds : left))" "$@" >>"$log" 2>&1
    status=$?
  fi
  case $status in
    0) verdict=passed ;;
    77)
      verdict=absent
      if [[ $name != *PyTorch ]]; then failed=$((failed + 1)); fi
      ;;
    124 | 137)
      verdict='cut off'
      cut_off=$((cut_off + 1))
      ;;
    *)
      verdict=failed
      failed=$((failed + 1))
      ;;
  esac
  steps+=("$(printf '%-44s %-8s %4d s' "$name" "$verdict" $((SECONDS - begin)))")
  say "${steps[-1]}"
}

say "date: $(date -u '+%Y-%m-%d %H:%M UTC')"
device=$(timeout 60 "$here/run.sh" device_report 2>&1) # with the folder's libraries, which other programs do without
status=$?
say "$device"
if ((status != 0)); then
  say "$([[ $status == 77 ]] && echo 'SKIPPED: nothing was run' || echo FAIL)"
  exit "$status"
fi
say "$(cat "$here/made_from.txt")"
if command -v nvidia-smi >/dev/null; then
  fields=driver_version,clocks.sm,clocks.mem,clocks.max.sm,power.limit,ecc.mode.current
  say "$(timeout 20 nvidia-smi --id=0 --format=csv --query-gpu="$fields" 2>&1)"
fi
say "kernel: $(uname -sr); processors: $(nproc)"

tests=(ptx_conformance_test_on_device) # first: what it finds wrong with the interpreter concerns all that CI says
for program in "$here"/unpacked/bin/*_on_device; do
  if [[ ${program##*/} != "${tests[0]}" ]]; then tests+=("${program##*/}"); fi
done
for test in "${tests[@]}"; do
  step "$test" 120 env HCP_CONFORMANCE_TABLE="$results/conformance.tsv" \
    HCP_CONFORMANCE_RECORD="$results/conformance.record" \
    "$here/run.sh" "$test" --gtest_output="json:$scratch/$test.json"
  python3 "$here/merge_reports.py" "$scratch"/*.json >"$results/kernels.json" 2>>"$log"
done

# times NAME SECONDS COMMAND...: a step whose output is lines of the table.
times() {
  # shellcheck disable=SC2016  # the inner shell's
  step "$1" "$2" bash -c '"${@:2}" >"$1"' times "$scratch/${1// /_}.tsv" "${@:3}"
  python3 "$here/timing_table.py" "$scratch"/*.tsv >"$results/timings.tsv" 2>>"$log"
}
times 'times of attention' 90 "$here/run.sh" attention_timings
times 'times of PyTorch' 60 python3 "$here/torch_timings.py"

# program NAME RANKS OPTION...: a verified run of both passes.
program() {
  step "$1" 40 "$here/run.sh" -n "$2" hcp run --seq-length 1024 --num-attention-heads 8 --num-query-groups 4 \
    --kv-channels 128 --dtype bf16 --iterations 3 --warmup 1 --trace "$scratch/$2.h5" "${@:3}"
}
program 'the program on the device' 1 --backend cuda --attention-mask-type causal
step 'staged transport, 4 ranks on one GPU' 60 "$here/run.sh" -n 4 comm_staged_transport_test_on_one_device
schemes=p2p,all_gather,a2a # one for each layer
for inner in p2p all_gather a2a; do
  for outer in p2p all_gather a2a; do schemes+=,$inner+$outer; done
done
program 'every scheme, 4 ranks on one GPU' 4 --backend cuda --transport staged --attention-mask-type causal \
  --simulate-ranks-per-node 2 --num-layers 12 --cp-comm-type "$schemes"
if python3 -c 'import ctypes; ctypes.CDLL("libnccl.so.2")' 2>>"$log"; then
  step 'NCCL, 1 rank' 60 "$here/run.sh" -n 1 comm_nccl_one_rank_test_on_one_device
else
  say 'NCCL: not on this machine, not run'
fi
program 'the program on two ranks' 2 --backend cpu --simulate-ranks-per-node 1

PATH=$PATH:/usr/local/cuda/bin:/usr/local/cuda/compute-sanitizer
for tool in memcheck racecheck initcheck synccheck; do
  for test in "${tests[@]}"; do
    if command -v compute-sanitizer >/dev/null; then
      options=(--tool "$tool" --error-exitcode 1)
      # Tests ask for devices and memory that are not there, on purpose.
      if [[ $tool == memcheck ]]; then options+=(--report-api-errors no); fi
      step "$tool of $test" 60 "$here/run.sh" compute-sanitizer "${options[@]}" "$here/unpacked/bin/$test"
    fi
  done
done
command -v compute-sanitizer >/dev/null || say 'compute-sanitizer: not on this machine'

{
  printf '\n== steps\n'
  printf '%s\n' "${steps[@]}"
} >>"$log"
say "total: $SECONDS s"
if ((failed > 0)); then
  say "FAIL: $failed of ${#steps[@]} steps failed, $cut_off were cut off"
  exit 1
elif ((cut_off > 0)); then
  say "CUT OFF: $cut_off of ${#steps[@]} steps, the others passed"
  exit 3
fi
say PASS
