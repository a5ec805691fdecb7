#!/bin/bash
# check_program.sh MPIEXEC HCP: what the program makes of bad input on 3 ranks, and what works without MPI.
set -uo pipefail
mpiexec=$1 hcp=$2
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
cd "$directory" || exit 1
failed=0

complain() {
  echo "$*; the output was:"
  cat output
  failed=1
}

# refused TEXT WORD...: `hcp run WORD...` ends everywhere with status 2, and one line, with TEXT in it, says why.
refused() {
  local text=$1 status
  shift
  "$mpiexec" --oversubscribe -n 3 --timeout 60 "$hcp" run "$@" > output 2>&1
  status=$?
  [ "$status" -eq 2 ] || complain "hcp run $*: exit status $status instead of 2"
  [ "$(grep -c '^hcp: ' output)" -eq 1 ] || complain "hcp run $*: not one message"
  grep -q -F -e "$text" output || complain "hcp run $*: '$text' is not in the message"
}

problem=(--seq-length 24 --num-attention-heads 6 --kv-channels 16)
printf 'seq-length = 24\nkv-chanels = 16\n' > typo.cfg
touch taken.h5

refused "did you mean seq-length?" --seq-lenght 24
refused "typo.cfg:2: 'kv-chanels' is not an option; did you mean kv-channels?" typo.cfg
refused "'typo.cfg' was taken as a value of --doc-lengths" --doc-lengths 3 4 typo.cfg
refused "cannot be read" missing.cfg
refused "3 ranks are not a multiple" "${problem[@]}" --context-parallel-size 2
refused "the product of the sizes is 4" "${problem[@]}" --hierarchical-context-parallel-sizes 2,2
refused "knows no context parallelism" "${problem[@]}" --attention-kernel reference
refused "nothing is overwritten" "${problem[@]}" --trace taken.h5
[ -s taken.h5 ] && complain "an existing file was written to"

# An MPI that cannot start: what never starts it works all the same.
without_mpi() {
  OMPI_MCA_pml=none_such "$hcp" "$@" > output 2>&1 || complain "hcp $*: exit status $?"
}
OMPI_MCA_pml=none_such "$hcp" run "${problem[@]}" > output 2>&1 && complain "MPI started where it cannot"
without_mpi --help
without_mpi run --help
without_mpi --version
grep -q '^version: ' output || complain "no version"
without_mpi plan "${problem[@]}" --context-parallel-size 4 --simulate-ranks-per-node 2
"$hcp" plan "${problem[@]}" > output 2>&1
[ $? -eq 2 ] || complain "a plan without --context-parallel-size passed"
grep -q -F 'hcp: plan needs --context-parallel-size' output || complain "no message for a plan without ranks"

exit "$failed"
