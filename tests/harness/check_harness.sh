#!/bin/bash
# check_harness.sh MPIEXEC PROGRAM: runs the failing program with 3 ranks and checks what the harness makes of it.
set -uo pipefail
mpiexec=$1 program=$2
output=$(mktemp)
trap 'rm -f "$output"' EXIT
failed=0

complain() {
  echo "harness: $*; the output was:"
  cat "$output"
  failed=1
}

run() { # seconds, test: sets status; each rank reports its own exit status in the output
  "$mpiexec" --oversubscribe -n 3 --timeout "$1" \
    sh -c '"$0" --gtest_color=no "$1"; echo "exit status $?"' "$program" "--gtest_filter=$2" > "$output" 2>&1
  status=$?
}

expect_lines() { # count, pattern, test
  local found
  found=$(grep -c -e "$2" "$output")
  [ "$found" -eq "$1" ] || complain "$3: $found lines match '$2' instead of $1"
}

run 60 Harness.Passes
expect_lines 3 'exit status 0' Passes
expect_lines 1 'PASSED.*1 test' Passes

for test in 'FailsOnRank1:on rank 1 of 3:1' 'FailsOnRank0:on rank 0 of 3:1' 'FailsEverywhere:on rank [012] of 3:3' \
            'ThrowsOnRank2:on rank 2 of 3:1'; do
  IFS=: read -r name pattern count <<< "$test"
  run 60 "Harness.$name"
  expect_lines 3 'exit status 1' "$name"
  expect_lines "$count" "$pattern" "$name"
  expect_lines "$count" 'meant to' "$name"
  expect_lines 1 'FAILED  \] 1 test' "$name"
  [ "$name" = ThrowsOnRank2 ] || grep -q 'failing_program.cpp:[0-9]*: Failure' "$output" ||
    complain "$name: file and line are missing"
done

run 60 FailingSetUp.OnRank1
expect_lines 3 'exit status 1' FailingSetUp
expect_lines 1 'on rank 1 of 3' FailingSetUp

run 60 Harness.ThrowsOnRank2WhileOthersWait
[ "$status" -ne 0 ] || complain "an exception on one rank passed"
expect_lines 1 'Failure on rank 2 of 3 in ThrowsOnRank2WhileOthersWait' ThrowsOnRank2WhileOthersWait

run 5 Harness.HangsOnRank1
[ "$status" -ne 0 ] || complain "a hanging rank passed"

exit "$failed"
