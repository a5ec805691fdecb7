#!/usr/bin/env bash
# compare_architectures.sh DIRECTORY: is the PTX there the same code for compute_80 and compute_90? Then what tests say
# of one holds for both; where it is not, they must run on both (HCP_SOFTWARE_GPU_ARCHITECTURE).
set -euo pipefail
cd "$1"
failed=0
compared=0
for file in *.compute_80.ptx; do
  if ! cmp <(grep -v '^\.target ' "$file") <(grep -v '^\.target ' "${file/compute_80/compute_90}"); then
    echo "$file and that for compute_90 differ in more than .target"
    failed=1
  fi
  compared=$((compared + 1))
done
echo "$compared files compared"
((compared > 0 && failed == 0))
