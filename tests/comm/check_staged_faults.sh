#!/usr/bin/env bash
# check_staged_faults.sh MPIEXEC PROGRAM: runs the program's faults with 2 ranks; each has to end soon, red, and with the
# words that say what was wrong.
set -uo pipefail
mpiexec=$1 program=$2
output=$(mktemp)
trap 'rm -f "$output"' EXIT
failed=0

check() { # fault, words
  local status=0
  "$mpiexec" --oversubscribe -n 2 --timeout 20 "$program" "$1" >"$output" 2>&1 || status=$?
  if ((status == 0)) || grep -q 'time limit' "$output" || ! grep -qE -- "$2" "$output"; then
    echo "staged_faults: $1 ended with $status, without '$2' or not at all; the output was:"
    cat "$output"
    failed=1
  fi
}

check never_finished '^hcp: messages were posted and never finished$'
check failure_elsewhere '^error: a failure elsewhere$'
check peer_that_never_answers '^error: world rank [01] waited 0.3 s in step 1; nothing yet from world rank [01]$'
check less_than_expected '^error: world rank 0 received 50 B instead of 60 B from world rank 1 \(step 1\)$'
check more_than_expected '^error: MPI_Test failed on rank 0 .*MPI_ERR_TRUNCATE'
exit "$failed"
