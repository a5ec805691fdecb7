#!/usr/bin/env bash
# run.sh [-n RANKS] COMMAND...: a program of this folder with the libraries and the Open MPI of this folder, as one
# process or as that many ranks.
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
export PATH=$here/bin:$PATH LD_LIBRARY_PATH=$here/lib
export OPAL_PREFIX=$here/openmpi OPAL_BINDIR=$here/bin OPAL_LIBDIR=$here/lib OPAL_PKGLIBDIR=$here/openmpi/plugins
export OPAL_PKGDATADIR=$here/openmpi/help OPAL_SYSCONFDIR=$here/openmpi/etc
export PMIX_PKGLIBDIR=$here/openmpi/pmix # where it has none, it does without
if [[ $1 != -n ]]; then exec "$@"; fi
# shellcheck disable=SC1091  # jobs/mpi_environment.sh, in the folder beside this script
source "$here/mpi_environment.sh"
hcp_mpirun "${@:2}"
