# shellcheck shell=bash
# A cluster with environment modules: copy this to jobs/hosts/<your cluster>.sh, put the names that
# `module avail` prints there, and source it before configuring and in every batch script. Needed are a compiler
# with C++20 (GCC 12 or later), CMake 3.25, one MPI and the libraries below built for that compiler.
#
# module purge
# module load gcc/12 cmake/3.25 openmpi/4.1 hwloc/2.9 hdf5/1.10 boost/1.74
# module load python/3.11          # with h5py, numpy, pandas, matplotlib: for analysis/ only
