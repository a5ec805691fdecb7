#!/usr/bin/env bash
# check_main.sh PROGRAM: does the main() of tests on the software GPU turn red for what they leave behind?
set -euo pipefail
program=$1
failed=0

expect() { # test, exit status, words of the output
  local status=0 output
  output=$("$program" --gtest_color=no --gtest_filter="Main.$1") || status=$?
  if [[ $status -ne $2 || $output != *"$3"* ]]; then
    printf '%s: exit status %d instead of %d, or "%s" is missing from\n%s\n' "$1" "$status" "$2" "$3" "$output"
    failed=1
  fi
}

expect Passes 0 'no hardware is used'
expect LeavesAFinding 1 'out of bounds: global access outside of all device memory; kernel test'
expect LeavesAMisuse 1 'cudaMemcpyAsync: 4 of 4 bytes go to the host that nobody has written'
expect LeavesMemory 1 'never destroyed: cudaMalloc of 12 bytes'
exit "$failed"
