#!/usr/bin/env bash
# check_pack.sh BUILD: packs the folder of gpu_check.sh from a finished build and uses it as another machine would:
# nothing but glibc comes from this one.
set -euo pipefail
tests=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
folder=$scratch/folder
clean=(env -i PATH=/usr/bin:/bin HOME="$scratch")

fail() {
  echo "check_pack: $*"
  exit 1
}

"$tests/gpu_check.sh" --pack "$folder" --build-dir "$1"
cd "$scratch"

bytes=$(du -s --apparent-size --block-size=1 "$folder" | cut -f 1)
((bytes <= 50 << 20)) || fail "the folder has $bytes bytes"
mv "$folder" "$scratch/elsewhere" # it must not matter where it lies
folder=$scratch/elsewhere

"${clean[@]}" "$folder/run.sh" true
glibc='/lib.*/(ld-linux-x86-64|libc|libdl|libm|libmvec|libpthread|libresolv|librt|libutil)\.so'
while read -r file; do
  "${clean[@]}" "$folder/run.sh" ldd "$file" >libraries.txt
  if grep 'not found' libraries.txt; then fail "$file lacks a library"; fi
  if awk '$2 == "=>" { print $3 }' libraries.txt | grep -v "^$folder/unpacked/lib/" | grep -vE "^$glibc"; then
    fail "$file takes that from this machine"
  fi
done < <(find "$folder/unpacked" -type f \( -path '*/bin/*' -o -name '*.so*' \))

# Where a mount namespace is allowed, this machine's Open MPI and its libraries are out of sight.
hidden=()
if unshare --mount true 2>/dev/null; then
  # shellcheck disable=SC2016  # the inner shell's
  hidden=(unshare --mount bash -c 'mkdir -p nothing
    for place in /usr/lib/*/openmpi /usr/lib/*/pmix* /usr/share/openmpi /etc/openmpi; do
      if [[ -d $place ]]; then mount --bind nothing "$place"; fi
    done
    exec "$@"' hidden)
else
  echo 'check_pack: no mount namespaces here, so Open MPI stays in sight'
fi
OMP_WAIT_POLICY=passive "${hidden[@]}" "${clean[@]}" "$folder/run.sh" -n 2 hcp run --seq-length 64 \
  --num-attention-heads 4 --kv-channels 16 --simulate-ranks-per-node 1 --iterations 1 --warmup 0 --trace run.h5 \
  >run.txt 2>&1 || {
  cat run.txt
  fail 'two ranks failed'
}
grep -qx PASS run.txt || fail 'no PASS of two ranks'

status=0
"${hidden[@]}" "${clean[@]}" "$folder/gpu_check.sh" results >check.txt 2>&1 || status=$?
cat check.txt
files=$(find results -type f | wc -l)
((files <= 6)) || fail "$files files of results"
if [[ -e /dev/nvidia0 ]]; then
  ((status == 0)) || fail "exit status $status on a machine with a device"
else
  ((status == 77)) || fail "exit status $status instead of 77"
  grep -q '^no device answers: .' results/summary.txt || fail 'no reason for the want of a device'
fi
