#!/usr/bin/env bash
# install_torch.sh DIRECTORY: a Python environment with the current PyTorch of PyPI, for the CPU.
#
# PyPI's PyTorch for Linux is built for CUDA and asks for gigabytes of libraries of which the CPU needs none. Its own
# libraries name them, though, and are not loaded without. So here the two small ones that run code at load time are
# installed, and for the others there are empty libraries of the same names: nothing on the CPU calls into them. Where
# that does not suffice, everything is installed.
set -euo pipefail
readonly directory=${1:?usage: install_torch.sh DIRECTORY}
readonly python=$directory/bin/python

install() { "$python" -m pip install --disable-pip-version-check --quiet "$@"; }

# What PyTorch requires on every platform, and the CUDA runtime and profiler in its version.
required() {
  "$python" - <<'PYTHON'
import importlib.metadata
import re

for requirement in importlib.metadata.requires("torch"):
    if ";" not in requirement:
        print(requirement)
    elif toolkit := re.match(r"cuda-toolkit\[.*\](==\S+?);", requirement.replace(" ", "")):
        print("cuda-toolkit[cudart,cupti]" + toolkit[1])
PYTHON
}

# Names of libraries and symbols that belong to CUDA's libraries.
readonly of_cuda='^(lib)?(cu|nv|nccl)'

# undefined FILE... and defined FILE...: the symbols of CUDA that shared libraries need, and those that they offer.
undefined() { nm -D --undefined-only "$@" | awk 'NF == 2 { print $2 }' | sed 's/@.*//' | grep -E "$of_cuda" | sort -u; }
defined() { nm -D --defined-only "$@" | awk 'NF == 3 { print $3 }' | sed 's/@.*//' | grep -E "$of_cuda" | sort -u; }

# One library defines what is missing, and one of each missing name leads to it: a library under the very name that a
# versioned symbol asks for would have to define that version, another one need not.
stand_in() {
  local packages library names offered
  packages=$("$python" -c 'import sysconfig; print(sysconfig.get_path("platlib"))')
  mapfile -t offered < <(find "$packages/torch/lib" "$packages/nvidia" -name '*.so*' -type f)
  names=$(readelf -d "$packages"/torch/lib/*.so | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | grep -E "$of_cuda" | sort -u)
  comm -23 <(undefined "$packages"/torch/lib/*.so) <(defined "${offered[@]}") | sed 's/.*/char &[64];/' |
    cc -shared -nostdlib -x c - -o "$packages/torch/lib/libabsent.so"
  for library in $names; do
    if ! find "$packages/nvidia" -name "$library" | grep -q .; then
      # shellcheck disable=SC2016  # the loader expands it
      cc -shared -nostdlib -Wl,--no-as-needed -Wl,-soname,"$library" -Wl,-rpath,'$ORIGIN' \
        -L"$packages/torch/lib" -labsent -o "$packages/torch/lib/$library"
    fi
  done
}

python3 -m venv --clear "$directory" # a stand-in of before would hide what is missing
install --no-deps torch
mapfile -t requirements < <(required)
echo '# pip will now say that torch lacks libraries of CUDA, which is intended' >&2
install numpy "${requirements[@]}"
stand_in
if ! "$python" -c 'import torch' 2>/dev/null; then
  echo "install_torch.sh: PyTorch does not load without CUDA's libraries; installing them, too" >&2
  install torch # their directories are searched before the one of the stand-ins
fi
"$python" -c 'import torch; print("PyTorch", torch.__version__)'
du -sh "$directory"
