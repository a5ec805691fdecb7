#!/bin/bash
# check_program.sh MPIEXEC HCP: what the program makes of bad input on 3 and 4 ranks, what works without MPI, and the
# commands in the README.
set -uo pipefail
mpiexec=$1 hcp=$2
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
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
ranks=3
refused() {
  local text=$1 status
  shift
  "$mpiexec" --oversubscribe -n "$ranks" --timeout 60 "$hcp" run "$@" > output 2>&1
  status=$?
  [ "$status" -eq 2 ] || complain "hcp run $*: exit status $status instead of 2"
  [ "$(grep -c '^hcp: ' output)" -eq 1 ] || complain "hcp run $*: not one message"
  grep -q -F -e "$text" output || complain "hcp run $*: '$text' is not in the message"
}

problem=(--seq-length 24 --num-attention-heads 6 --kv-channels 16)
printf 'seq-length = 24\nkv-chanels = 16\n' > typo.cfg
echo "somebody's results" > taken.h5

refused "did you mean seq-length?" --seq-lenght 24
refused "typo.cfg:2: 'kv-chanels' is not an option; did you mean kv-channels?" typo.cfg
refused "'typo.cfg' was taken as a value of --doc-lengths" --doc-lengths 3 4 typo.cfg
refused "cannot be read" missing.cfg
refused "3 ranks are not a multiple" "${problem[@]}" --context-parallel-size 2
refused "the product of the sizes is 4" "${problem[@]}" --hierarchical-context-parallel-sizes 2,2
refused "knows no context parallelism" "${problem[@]}" --attention-kernel reference
if ! { [ -e /dev/nvidia0 ] || command -v nvidia-smi > /dev/null; }; then # what it says elsewhere, back_end_test knows
  refused "--backend cuda: no device answers: " "${problem[@]}" --backend cuda
  refused "--attention-kernel cuda: no device answers: " "${problem[@]}" --attention-kernel cuda
  refused "--transport staged: no device answers: " "${problem[@]}" --transport staged
  refused "--transport nccl: no device answers: " "${problem[@]}" --transport nccl
fi
refused "--transport nccl moves the memory of devices, but with --backend cpu" "${problem[@]}" --transport nccl \
  --backend cpu
refused "--serialize-levels is about NCCL, but --transport is auto" "${problem[@]}" --serialize-levels
refused "nothing is overwritten" "${problem[@]}" --trace taken.h5
refused "there is no directory nowhere" "${problem[@]}" --trace nowhere/run.h5
[ "$(cat taken.h5)" = "somebody's results" ] || complain "an existing file was written to"

refused "'ring' is not an algorithm of context parallelism (p2p, all_gather or a2a" "${problem[@]}" --cp-comm-type ring
refused "has 2 schemes, but --num-layers is 3" "${problem[@]}" --num-layers 3 --cp-comm-type p2p,a2a
refused "has 2 levels, but --hierarchical-context-parallel-sizes 3,1,1 has 3 sizes" "${problem[@]}" \
  --cp-comm-type p2p+a2a --hierarchical-context-parallel-sizes 3,1,1
refused "has 3 levels, and only two can be taken from the node layout" "${problem[@]}" --cp-comm-type a2a+p2p+p2p
refused "simulated ranks per node = 2 does not divide the 3 ranks" "${problem[@]}" --simulate-ranks-per-node 2
refused "swaps heads over 3 ranks, but a rank has only 2 query heads" --seq-length 24 --num-attention-heads 2 \
  --kv-channels 16 --cp-comm-type a2a
refused "--doc-lengths sum to 20, but --seq-length is 24" "${problem[@]}" --doc-lengths 10,10
refused "the sizes do not fit in 64 bits" --seq-length 4000000000 --num-attention-heads 6 --kv-channels 16
refused "does not fit in 64 bits" --seq-length 99999999999999999999 --num-attention-heads 6 --kv-channels 16
refused "sizes are missing: give --num-attention-heads, --kv-channels" --seq-length 24
refused "--threads-per-rank 0: '0' is too small; at least 1 is needed" "${problem[@]}" --threads-per-rank 0
refused "'20000' is too large; at most 1024" "${problem[@]}" --threads-per-rank 20000
OMP_NUM_THREADS=20000 refused "OMP_NUM_THREADS is '20000'; at most 1024" "${problem[@]}"
HCP_CPU_ISA=sse2 refused "HCP_CPU_ISA is 'sse2'; this processor allows" "${problem[@]}"
refused "'0' is not a number of seconds above 0" "${problem[@]}" --timeout 0
refused "'fp64' is none of fp32, bf16, fp16" "${problem[@]}" --dtype fp64

# What one rank alone finds: all leave, and nobody waits.
"$mpiexec" --oversubscribe --timeout 60 -n 2 "$hcp" run "${problem[@]}" \
  : -n 1 -x HCP_CPU_ISA=sse2 "$hcp" run "${problem[@]}" > output 2>&1
[ $? -eq 2 ] || complain "one rank with a bad HCP_CPU_ISA: not exit status 2"
[ "$(grep -c "^hcp: HCP_CPU_ISA is 'sse2'" output)" -eq 1 ] || complain "one rank with a bad HCP_CPU_ISA: not one message"
echo 'iterations = 1' > here.cfg
"$mpiexec" --oversubscribe --timeout 60 -n 2 "$hcp" run here.cfg "${problem[@]}" \
  : -n 1 "$hcp" run there.cfg "${problem[@]}" > output 2>&1
[ $? -eq 2 ] || complain "one rank without the deck: not exit status 2"
[ "$(grep -c "^hcp: .*there.cfg.*cannot be read" output)" -eq 1 ] || complain "one rank without the deck: not one message"

# What only the node layout decides: 4 ranks on 2 simulated nodes are p2p over 2 and a2a over 2.
ranks=4 refused "with sizes 2,2 swaps heads over 2 ranks, but a rank has only 1 query heads" --seq-length 24 \
  --num-attention-heads 1 --kv-channels 16 --cp-comm-type p2p+a2a --simulate-ranks-per-node 2
[ -z "$(ls ./hcp-*.h5 2> /dev/null)" ] || complain "a refused run left a trace behind"

# An MPI that cannot start: what never starts it works all the same.
without_mpi() {
  OMPI_MCA_pml=none_such "$hcp" "$@" > output 2>&1 || complain "hcp $*: exit status $?"
}
OMPI_MCA_pml=none_such "$hcp" run "${problem[@]}" > output 2>&1 && complain "MPI started where it cannot"
without_mpi --help
without_mpi run --help
without_mpi --version
grep -q '^version: ' output || complain "no version"
grep -qE '^CUDA: ([0-9.]+ for |none )' output || complain "no word of CUDA"
without_mpi plan "${problem[@]}" --context-parallel-size 4 --simulate-ranks-per-node 2
"$hcp" plan "${problem[@]}" > output 2>&1
[ $? -eq 2 ] || complain "a plan without --context-parallel-size passed"
grep -q -F 'hcp: plan needs --context-parallel-size' output || complain "no message for a plan without ranks"

# The README's commands, as they stand but for the time they take.
commands=0
while read -ra words; do
  commands=$((commands + 1))
  case ${words[*]} in
    'mpirun -n 4 build/src/hcp run '*)
      (cd "$root" && "$mpiexec" --oversubscribe -n 4 "$hcp" run "${words[@]:5}" --iterations 1 --warmup 0 \
        --threads-per-rank 1 --trace "$directory/readme-$commands.h5") < /dev/null > output 2>&1
      [ "$(tail -n 1 output)" = PASS ] || complain "${words[*]}: no PASS"
      ;;
    'build/src/hcp plan '*)
      (cd "$root" && "$hcp" plan "${words[@]:2}") > output 2>&1 || complain "${words[*]}: exit status $?"
      ;;
    *) complain "${words[*]}: a command that this test does not know" ;;
  esac
done < <(sed -n '/^## Options/,/^## /{/^```bash/,/^```/p}' "$root/README.md" | grep -v '^```')
[ "$commands" -ge 4 ] || complain "only $commands commands in the options of the README"

exit "$failed"
