#!/usr/bin/env bash
# pack.sh DIRECTORY [--build-dir BUILD]: see tests/gpu_check.sh --pack.
set -euo pipefail
tests=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
root=$(dirname "$tests")

fail() {
  echo "gpu_check.sh: $*" >&2
  exit 2
}

[[ $# -eq 1 || ($# -eq 3 && $2 == --build-dir) ]] || fail "--pack DIRECTORY [--build-dir BUILD], not '--pack $*'"
folder=$1
[[ ! -e $folder || -z $(ls -A "$folder") ]] || fail "$folder is not empty; nothing is overwritten"
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
files=$(mktemp -d)
trap 'rm -rf "$files"' EXIT

readonly most_bytes=$((50 << 20))
build=${3:-$root/build/gpu_check}
if [[ $# -eq 1 ]]; then
  # shellcheck source=jobs/setup.sh
  source "$root/jobs/setup.sh"
  hcp_set_up --tests
  generator=()
  if command -v ninja >/dev/null; then generator=(-G Ninja); fi
  cmake -S "$root" -B "$build" "${generator[@]}" -DCMAKE_BUILD_TYPE=Release -DHCP_WITH_CUDA=ON -DHCP_BUILD_BENCHMARKS=OFF \
    -DCMAKE_CUDA_ARCHITECTURES='80-real;90-real' -DHCP_PTX_PROCESSOR=x86-64-v2 >/dev/null
  cmake --build "$build" --target gpu_check_programs --parallel "$(nproc)"
fi
[[ -e $build/tests/gpu_check/programs.txt ]] || fail "$build is no build of hcp with CUDA"
cached() { sed -n "s/^$1:[A-Z]*=//p" "$build/CMakeCache.txt"; }

# libraries FILE...: those that the files need and glibc does not bring along, as NAME PATH.
libraries() {
  local glibc='ld-linux-x86-64|libBrokenLocale|libanl|libc|libdl|libm|libmvec|libnss_[a-z]+|libpthread|libresolv|librt|libthread_db|libutil'
  if ldd "$@" 2>/dev/null | grep 'not found'; then fail 'libraries are missing here'; fi
  ldd "$@" 2>/dev/null | awk '$2 == "=>" { print $1, $3 }' | grep -vE "^($glibc)\.so" | sort -u
}

# take TARGET FILE...: copies without symbols.
take() {
  local target=$1 file
  shift
  mkdir -p "$target"
  for file in "$@"; do
    strip --strip-unneeded -o "$target/$(basename "$file")" "$file"
  done
}

mapfile -t programs <"$build/tests/gpu_check/programs.txt"
take "$files/bin" "${programs[@]}"

# Open MPI. Of its plugins, those stay behind that drive networks or OpenSHMEM: one machine has to do.
mpi=$(dirname "$(cached MPIEXEC_EXECUTABLE)")
place() { "$mpi/ompi_info" --parsable --path "$1" | head -n 1 | cut -d : -f 3; }
cp -L "$mpi/orted" "$files/bin/orted"
cp -L "$mpi/mpirun" "$files/bin/mpirun"
plugins=()
for plugin in "$(place pkglibdir)"/*.so; do
  if ! libraries "$plugin" | grep -qE '^(libfabric|libibverbs|liboshmem|libpsm|libucp|libnl-)'; then
    plugins+=("$plugin")
  fi
done
take "$files/openmpi/plugins" "${plugins[@]}"
cp -RL "$(place pkgdatadir)" "$files/openmpi/help"
cp -RL "$(place sysconfdir)" "$files/openmpi/etc"

mkdir -p "$files/lib"
while read -r name path; do
  strip --strip-unneeded -o "$files/lib/$name" "$(realpath "$path")"
done < <(libraries "${programs[@]}" "$files/bin/mpirun" "${plugins[@]}")

# Compressed with a dictionary that holds several programs: their kernels are the same.
python3 - "$files" "$folder/files.tar.xz" <<'PYTHON'
import lzma
import sys
import tarfile

filters = [{"id": lzma.FILTER_LZMA2, "preset": 1, "dict_size": 64 << 20}]
with lzma.open(sys.argv[2], "wb", filters=filters) as packed, tarfile.open(fileobj=packed, mode="w") as archive:
    for part in ("bin", "lib", "openmpi"):
        archive.add(f"{sys.argv[1]}/{part}", part)
PYTHON
cp "$tests"/gpu_check.sh "$tests"/gpu_check/{run.sh,merge_reports.py,timing_table.py,torch_timings.py} \
  "$root/jobs/mpi_environment.sh" "$folder"
{
  echo "revision: $(git -C "$root" describe --always --dirty 2>/dev/null || echo unknown)"
  echo "built on: $(uname -m), $(ldd --version | head -n 1)"
  echo "interpreter for: -march=$(cached HCP_PTX_PROCESSOR)"
} >"$folder/made_from.txt"

bytes=$(du -s --apparent-size --block-size=1 "$folder" | cut -f 1)
echo "$folder: $(((bytes + (1 << 20) - 1) >> 20)) MiB"
((bytes <= most_bytes)) || fail "that is more than the 50 MiB that a folder may have"
