# cmake -C jobs/hosts/debian.cmake -S . -B build
# Debian, Ubuntu: Open MPI even where mpich is installed beside it, and the serial HDF5 (rank 0 alone writes the trace).
set(MPI_C_COMPILER mpicc.openmpi CACHE STRING "")
set(MPI_CXX_COMPILER mpicxx.openmpi CACHE STRING "")
set(MPIEXEC_EXECUTABLE /usr/bin/mpirun.openmpi CACHE FILEPATH "")
set(HDF5_C_COMPILER_EXECUTABLE /usr/bin/h5cc CACHE FILEPATH "")
set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "")
