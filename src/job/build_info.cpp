#include "src/job/build_info.hpp"

#include "git_revision.hpp"  // generated at every build
#include "kernels/cpu/cpu_isa.hpp"
#include "kernels/cuda/devices.hpp"
#include "src/comm/nccl_transport.hpp"
#include "topology/mpi_environment.hpp"

namespace hcp {

std::vector<std::pair<std::string, std::string>> build_info() {
  return {{"version", HCP_VERSION},
          {"git", git_revision},
          {"compiler", HCP_COMPILER},
          {"build type", HCP_BUILD_TYPE},
          {"MPI", mpi_library_version()},
          {"HDF5", HCP_HDF5_VERSION},
          {"Boost", HCP_BOOST_VERSION},
          {"hwloc", HCP_HWLOC_VERSION},
          {"CUDA", cuda_build()},
          {"NCCL", nccl_build()},
          {"CPU instruction set", std::string{cpu_isa_name()}}};
}

}  // namespace hcp
