#!/usr/bin/env bash
# run.sh [-n RANKS] COMMAND...: a program of this folder with the libraries and the Open MPI of this folder, as one
# process or as that many ranks. Unpacks them at the first call.
set -e
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
files=$here/unpacked
if [[ ! -d $files ]]; then
  rm -rf "$files.part"
  mkdir "$files.part"
  if ! tar -C "$files.part" -xf "$here/files.tar.xz" 2>/dev/null; then # where there is no xz
    python3 -W ignore -m tarfile -e "$here/files.tar.xz" "$files.part"
  fi
  mv "$files.part" "$files"
fi
export PATH=$files/bin:$PATH LD_LIBRARY_PATH=$files/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export OPAL_PREFIX=$files/openmpi OPAL_BINDIR=$files/bin OPAL_LIBDIR=$files/lib OPAL_PKGLIBDIR=$files/openmpi/plugins
export OPAL_PKGDATADIR=$files/openmpi/help OPAL_SYSCONFDIR=$files/openmpi/etc
export OMPI_MCA_plm=isolated # one machine, which need not have ssh
export PMIX_PKGLIBDIR=$files/openmpi/pmix # where it has none, it does without
if [[ $1 != -n ]]; then exec "$@"; fi
# shellcheck disable=SC1091  # jobs/mpi_environment.sh, in the folder beside this script
source "$here/mpi_environment.sh"
hcp_mpirun "${@:2}"
