#!/usr/bin/env bash
# What gpu_check.sh makes of its steps, with programs in a folder that only pretend.
set -euo pipefail
tests=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
mkdir bin tools
export PATH=$scratch/tools:$PATH # what a machine has
cp "$tests"/gpu_check.sh "$tests"/gpu_check/{run.sh,merge_reports.py,timing_table.py,torch_timings.py} \
  "$tests/../jobs/mpi_environment.sh" .
echo 'revision: none' >made_from.txt

fail() {
  echo "check_steps: $*"
  cat output.txt
  exit 1
}
pretend() { # pretend PROGRAM SCRIPT [FOLDER]
  printf '#!/bin/sh\n%s\n' "$2" >"${3:-bin}/$1"
  chmod +x "${3:-bin}/$1"
}
check() { # check STATUS: runs everything
  local status=0
  rm -rf results unpacked
  tar -cf files.tar.xz bin # which it is by name
  ./gpu_check.sh results >output.txt 2>&1 || status=$?
  ((status == $1)) || fail "exit status $status instead of $1"
  (($(find results -type f | wc -l) <= 6)) || fail 'more than six files'
}
line() { grep -qE -- "$2" "results/$1" || fail "no '$2' in $1"; }

# shellcheck disable=SC2016  # the programs' own
report='for word; do case $word in --gtest_output=json:*) echo "{\"tests\": 3}" >"${word#*json:}" ;; esac; done'
pretend device_report 'echo "device: pretended"'
# shellcheck disable=SC2016
pretend ptx_conformance_test_on_device "$report; "'echo table >"$HCP_CONFORMANCE_TABLE"; echo bits >"$HCP_CONFORMANCE_RECORD"'
pretend kernel_test_on_device "$report"
pretend attention_timings 'printf "forward kernel\tfull\t2.0\t300.0\ngemm\t8192\t1.0\t600.0\n"'
pretend mpirun 'echo PASS'
pretend compute-sanitizer 'echo "ERROR SUMMARY: 0 errors"' tools

check 0
[[ $(tail -n 1 output.txt) == PASS ]] || fail 'no PASS'
line summary.txt '^device: pretended$'
line summary.txt '^kernel_test_on_device +passed +[0-9]+ s$'
line summary.txt '^staged transport, 4 ranks on one GPU +passed +[0-9]+ s$'
line summary.txt '^every scheme, 4 ranks on one GPU +passed +[0-9]+ s$'
line summary.txt '^NCCL(, 1 rank +passed|: not on this machine)'
line summary.txt '^racecheck of kernel_test_on_device +passed'
line conformance.tsv '^table$'
line conformance.record '^bits$'
line kernels.json '"kernel_test_on_device"'
line timings.tsv '^forward kernel.full.2.0.300.0.50.0$'
line log.txt 'ERROR SUMMARY'

pretend kernel_test_on_device 'echo wrong; exit 1'
pretend attention_timings 'exit 124'
check 1
line summary.txt '^kernel_test_on_device +failed'
line summary.txt '^times of attention +cut off'
line log.txt '^wrong$'
line kernels.json '"ptx_conformance_test_on_device"'
[[ $(tail -n 1 output.txt) == 'FAIL: 1 of '* ]] || fail 'no FAIL'

pretend kernel_test_on_device 'exit 77'
pretend attention_timings 'exit 0'
check 1
line summary.txt '^kernel_test_on_device +absent'

pretend kernel_test_on_device "$report"
pretend attention_timings 'exit 124'
check 3
[[ $(tail -n 1 output.txt) == 'CUT OFF: 1 of '* ]] || fail 'no CUT OFF'

pretend device_report 'echo "no device answers: none"; exit 77'
check 77
line summary.txt '^no device answers: none$'
