#!/usr/bin/env bash
# From a fresh machine to a verified and traced run of context-parallel attention:
# installs what is missing, builds hcp, and runs inputs/quickstart.cfg on four ranks, as 2 simulated nodes of 2.
# Prints every command, so that the next run can be typed by hand. The trace goes to the working directory.
# From an installed tree (PREFIX/share/hcp/jobs) it runs PREFIX/bin/hcp and installs and builds nothing.
set -euo pipefail

jobs_dir=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
root=$(dirname "$jobs_dir")
# shellcheck source=jobs/setup.sh
source "$jobs_dir/setup.sh"
# shellcheck source=jobs/cuda_toolkit.sh
source "$jobs_dir/cuda_toolkit.sh"
# shellcheck source=jobs/mpi_environment.sh
source "$jobs_dir/mpi_environment.sh"

trap 'echo "quickstart.sh: stopped by the command above (exit status $?)" >&2' ERR

installed_hcp=$(dirname "$(dirname "$root")")/bin/hcp
if [[ -f $root/CMakeLists.txt ]]; then
  hcp_set_up
  build=$root/build
  # A build directory that is already configured keeps its settings; the build itself notices changed CMake files.
  if [[ ! -f $build/build.ninja && ! -f $build/Makefile ]]; then
    generator=()
    if command -v ninja >/dev/null; then generator=(-G Ninja); fi
    # The CUDA back end takes minutes to build: only where a device answers, and for that one alone.
    cuda=(-DHCP_WITH_CUDA=OFF)
    capability=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | head -n 1) || true
    if [[ $capability =~ ^(8|9|[1-9][0-9])\.[0-9]$ ]] && { hcp_find_nvcc "$root/build/cuda" >/dev/null ||
      { hcp_install_missing_ python3-pip && hcp_provide_nvcc "$root/build/cuda"; }; }; then
      cuda=(-DCMAKE_CUDA_COMPILER="$(hcp_find_nvcc "$root/build/cuda")" -DCMAKE_CUDA_ARCHITECTURES="${capability/./}-real")
    fi
    hcp_run_shown cmake -S "$root" -B "$build" "${generator[@]}" -DHCP_BUILD_TESTS=OFF -DHCP_BUILD_BENCHMARKS=OFF \
      "${cuda[@]}"
  fi
  hcp_run_shown cmake --build "$build" --target hcp --parallel "$(nproc)"
  hcp=build/src/hcp
elif [[ -x $installed_hcp ]]; then
  hcp=$installed_hcp
else
  echo "quickstart.sh: neither the source tree ($root/CMakeLists.txt) nor an installed $installed_hcp is there" >&2
  exit 2
fi

trace=$PWD/hcp-quickstart-$(date -u +%Y%m%dT%H%M%SZ)-$$.h5
hcp_run_shown cd "$root" # the deck names its input from there
hcp_mpirun 4 "$hcp" run inputs/quickstart.cfg --trace "$trace"

python=$(hcp_python || echo python3)
printf '\nThe trace is %s\n' "$trace"
printf 'Its table and phases again, and a picture of who computes, sends and waits when:\n'
printf '  cd %q\n' "$root"
printf '  %q -m analysis summary %q\n' "$python" "$trace"
printf '  %q -m analysis timeline %q -o timeline.png\n' "$python" "$trace"
