# cmake -C jobs/hosts/cluster.cmake -S . -B build -DCMAKE_INSTALL_PREFIX=$HOME/hcp
# A cluster with environment modules: copy this to jobs/hosts/<your cluster>.cmake. Modules usually set PATH alone, so
# the roots of libraries are taken from the variables that they export; `module show hdf5` prints their names.
set(MPI_CXX_COMPILER mpicxx CACHE STRING "the wrapper of the loaded MPI module")
set(MPI_C_COMPILER mpicc CACHE STRING "")
# set(HDF5_ROOT $ENV{HDF5_ROOT} CACHE PATH "")
# set(BOOST_ROOT $ENV{BOOST_ROOT} CACHE PATH "")
# Login nodes may differ from compute nodes: name the compute nodes' processor instead of building for this one.
# set(CMAKE_CXX_FLAGS "-march=sapphirerapids" CACHE STRING "")
set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "")
set(HCP_BUILD_TESTS OFF CACHE BOOL "")       # GoogleTest is rarely a module
set(HCP_BUILD_BENCHMARKS OFF CACHE BOOL "")
