# shellcheck shell=bash
# How ranks are started on one machine; to be sourced. Changes only what would otherwise stop or slow the job:
# Open MPI refuses to run as root (containers), refuses more ranks than cores, lets idle ranks spin, which with
# more ranks than cores slows every message about a thousandfold, and has three fragments of 32 KiB of a message on
# their way in shared memory, which with a look at messages every millisecond during computation is 0.1 GB/s (and
# with the sleeps of a wait 1.2 GB/s, but 3.8 GB/s with 32 fragments). In a batch job the scheduler's allocation decides,
# so there nothing but the permission for root is touched. What the user has set already is kept.

# Physical cores that this shell may use: what Open MPI counts as slots.
hcp_cores() {
  local usable physical
  usable=$(env -u OMP_NUM_THREADS -u OMP_THREAD_LIMIT nproc)  # both would be taken for the number of cores
  physical=$(lscpu -p=CORE,SOCKET 2>/dev/null | grep -v '^#' | sort -u | wc -l)
  echo $((physical > 0 && physical < usable ? physical : usable))
}

# hcp_mpi_environment RANKS: exports what `mpirun -n RANKS` needs here, and prints it (on stderr).
hcp_mpi_environment() {
  local ranks=$1 settings=() setting name
  if ((EUID == 0)); then
    settings+=(OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1)
  fi
  if [[ -z ${SLURM_JOB_ID:-}${PBS_JOBID:-}${LSB_JOBID:-} ]]; then
    settings+=(OMPI_MCA_pml_ob1_send_pipeline_depth=32)
    if ((ranks > $(hcp_cores))); then
      settings+=(OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_mpi_yield_when_idle=1
        OMPI_MCA_hwloc_base_binding_policy=none)
    fi
  fi
  for setting in "${settings[@]}"; do
    name=${setting%%=*}
    if [[ -z ${!name:-} ]]; then
      printf '$ export %s\n' "$setting" >&2
      # shellcheck disable=SC2163  # the name is in the variable
      export "$setting"
    fi
  done
}

# hcp_mpirun RANKS PROGRAM [ARGUMENT ...]: starts a program on this machine, or inside the allocation of a batch job.
hcp_mpirun() {
  local ranks=$1
  shift
  if ! command -v mpirun >/dev/null; then
    echo "mpi_environment.sh: mpirun is not on PATH; load the MPI module that hcp was built with" >&2
    return 2
  fi
  hcp_mpi_environment "$ranks"
  {
    printf '$ mpirun -n %s' "$ranks"
    printf ' %q' "$@"
    printf '\n'
  } >&2
  mpirun -n "$ranks" "$@"
}
