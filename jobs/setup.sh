#!/usr/bin/env bash
# The packages that hcp needs, and nothing else that knows them.
#
#   jobs/setup.sh          what building, running and post-processing need
#   jobs/setup.sh --tests  and what the tests need
#
# Installs what is missing on Debian and Ubuntu, as root or with a sudo that asks no password. Where it may not
# install, it prints the command that would and exits 2. Where packages are not Debian's (a cluster with modules) it
# only checks that the tools are on PATH. Sourced, it offers the functions below and does nothing.

hcp_build_packages=(g++ cmake ninja-build pkg-config libopenmpi-dev openmpi-bin libhwloc-dev libhdf5-dev
  hdf5-tools libboost-program-options-dev python3 python3-h5py python3-numpy python3-pandas python3-matplotlib)
hcp_test_packages=(libgtest-dev libgmock-dev libbenchmark-dev libboost-context-dev python3-pip clang-format
  iproute2 procps)

# Prints a command as one would type it (on stderr, as the shell's own -x does), then runs it.
hcp_run_shown() {
  {
    printf '$'
    printf ' %q' "$@"
    printf '\n'
  } >&2
  "$@"
}

# hcp_set_up [--tests]: after it the packages are there, or it has said how to get them and returns 2.
hcp_set_up() {
  local wanted=("${hcp_build_packages[@]}")
  case ${1:-} in
    '') ;;
    --tests) wanted+=("${hcp_test_packages[@]}") ;;
    *)
      echo "setup.sh: unknown option '$1'; the only one is --tests" >&2
      return 2
      ;;
  esac
  if command -v dpkg-query >/dev/null && command -v apt-get >/dev/null; then
    hcp_install_missing_ "${wanted[@]}"
  else
    hcp_check_tools_
  fi
}

hcp_install_missing_() {
  local package installed missing=()
  # dpkg-query fails when it knows one of the names not at all; what it does know it prints nevertheless.
  # shellcheck disable=SC2016  # the fields are dpkg-query's, not the shell's
  installed=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' "$@" 2>/dev/null || true)
  for package in "$@"; do
    grep -qxF "installed $package" <<<"$installed" || missing+=("$package")
  done
  ((${#missing[@]})) || return 0

  local as_root=()
  if ((EUID != 0)); then
    as_root=(sudo)
    if ! sudo -n true 2>/dev/null; then
      echo "setup.sh: ${#missing[@]} packages are missing, and this user may not install them. Run" >&2
      echo "  sudo apt-get update && sudo apt-get install -y --no-install-recommends ${missing[*]}" >&2
      echo "or load them as modules and build by hand: see README.md, 'On a cluster'." >&2
      return 2
    fi
  fi

  echo "# ${#missing[@]} packages are missing; installing them takes a minute or two"
  local apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=120)
  # One dead source in the list is no reason to stop: the install below decides.
  hcp_run_shown "${apt[@]}" update >/dev/null || echo "setup.sh: apt-get update failed; trying with the lists at hand" >&2
  if ! hcp_run_shown "${apt[@]}" install -y --no-install-recommends "${missing[@]}" >/dev/null </dev/null; then
    echo "setup.sh: apt-get could not install: ${missing[*]}" >&2
    return 2
  fi
}

hcp_check_tools_() {
  local tool missing=()
  for tool in c++ cmake pkg-config mpicxx mpirun python3; do
    command -v "$tool" >/dev/null || missing+=("$tool")
  done
  ((${#missing[@]})) || return 0
  echo "setup.sh: not on PATH: ${missing[*]}. Load the modules that bring them (a C++20 compiler, CMake, MPI, hwloc," >&2
  echo "HDF5, Boost.Program_options, and Python with h5py, numpy, pandas, matplotlib): jobs/hosts has examples." >&2
  return 2
}

# Prints the first python3 that has what analysis/ imports (the one on PATH may be another than the system's).
hcp_python() {
  local python
  for python in python3 /usr/bin/python3; do
    if "$python" -c 'import sys; from importlib.util import find_spec
sys.exit(not all(map(find_spec, ("h5py", "numpy", "pandas", "matplotlib"))))' 2>/dev/null; then
      echo "$python"
      return 0
    fi
  done
  echo "setup.sh: no python3 here has h5py, numpy, pandas and matplotlib" >&2
  return 2
}

if [[ ${BASH_SOURCE[0]} == "$0" ]]; then
  set -euo pipefail
  hcp_set_up "$@"
fi
