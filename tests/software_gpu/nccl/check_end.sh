#!/usr/bin/env bash
# check_end.sh MPIEXEC PROGRAM: does a program on the software NCCL turn red for what shows at its end only?
set -uo pipefail
mpiexec=$1 program=$2
export HCP_SOFTWARE_GPU_DEVICES=2
failed=0

expect() { # test, exit status of rank 0, of rank 1, words of the output
  local output
  # shellcheck disable=SC2016  # for each rank's own shell
  output=$("$mpiexec" --oversubscribe -n 2 --timeout 100 \
    sh -c '"$0" --gtest_color=no "$1"; echo "rank $OMPI_COMM_WORLD_RANK: exit status $?"' \
    "$program" "--gtest_filter=End.$1" 2>&1)
  for words in "rank 0: exit status $2" "rank 1: exit status $3" "$4"; do
    if [[ $output != *"$words"* ]]; then
      printf '%s: "%s" is missing from\n%s\n' "$1" "$words" "$output"
      failed=1
    fi
  done
}

expect Passes 0 0 'no hardware is used'
expect LeavesACommunicator 0 1 "never destroyed: NCCL's communicator 2"
expect LaunchesInDifferentOrders 1 0 'launches that wait for each other: launch'
exit "$failed"
