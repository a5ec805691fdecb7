# shellcheck shell=bash
# Debian, Ubuntu: jobs/setup.sh installs everything; no module is needed.
# With several MPIs installed, `sudo update-alternatives --config mpirun` and `--config mpi` choose the one on PATH;
# it must be the one that hosts/debian.cmake names.
