# Whether the NCCL transport is built: HCP_NCCL. Its header is enough, the library is found when the program runs.
# After kernels/cuda/find_cuda.cmake, without which there is none. -DHCP_NCCL_INCLUDE=OFF leaves it out.
set(HCP_NCCL FALSE)
if(NOT HCP_CUDA)
  message(STATUS "NCCL transport: not built, without the CUDA back end")
  return()
endif()

# With the toolkit, where the user says, or beside nvcc where both are Python wheels (nvidia/cu13, nvidia/nccl).
list(TRANSFORM CUDAToolkit_INCLUDE_DIRS APPEND /../../nccl/include OUTPUT_VARIABLE beside_toolkit)
find_path(HCP_NCCL_INCLUDE nccl.h
          HINTS ENV NCCL_HOME ${CUDAToolkit_INCLUDE_DIRS} ${beside_toolkit} PATH_SUFFIXES include
          DOC "Directory of nccl.h; OFF: without the NCCL transport")
if(NOT HCP_NCCL_INCLUDE)
  message(STATUS "NCCL transport: not built, there is no nccl.h (NCCL_HOME, HCP_NCCL_INCLUDE)")
  return()
endif()

set(HCP_NCCL_BUILD "")
foreach(part IN ITEMS MAJOR MINOR PATCH)
  file(STRINGS ${HCP_NCCL_INCLUDE}/nccl.h line REGEX "define NCCL_${part} +[0-9]+")
  string(REGEX MATCH "[0-9]+" number "${line}")
  list(APPEND HCP_NCCL_BUILD ${number})
endforeach()
list(JOIN HCP_NCCL_BUILD "." HCP_NCCL_BUILD)
if(HCP_NCCL_BUILD VERSION_LESS 2.14)
  message(STATUS "NCCL transport: not built, ${HCP_NCCL_INCLUDE}/nccl.h is of NCCL ${HCP_NCCL_BUILD}; "
                 "2.14 is the first that creates communicators from a configuration")
  return()
endif()
set(HCP_NCCL TRUE)
message(STATUS "NCCL transport: built with the header of NCCL ${HCP_NCCL_BUILD} (${HCP_NCCL_INCLUDE})")
