#include "tests/gpu_check/gemm_time.hpp"

#include <cublas_v2.h>
#include <dlfcn.h>

#include <stdexcept>
#include <string>

#include "kernels/cuda/stream.hpp"
#include "tests/gpu_check/median_time.hpp"
#include "tests/gpu_check/random_tensor.hpp"

namespace hcp::gpu_check {
namespace {

void check_cublas(cublasStatus_t status, const char* call) {
  if (status != CUBLAS_STATUS_SUCCESS) {
    throw std::runtime_error{std::string{call} + " gave status " + std::to_string(status)};
  }
}

/// A function of the library, with the type that cuBLAS's header gives it.
template <typename Function>
Function* find(void* library, const char* name) {
  void* const address = dlsym(library, name);
  if (address == nullptr) {
    throw std::runtime_error{std::string{name} + " is not in the machine's cuBLAS"};
  }
  return reinterpret_cast<Function*>(address);
}

}  // namespace

std::optional<GemmTime> time_gemm(CudaBackEnd& back_end) {
  const std::string file = "libcublas.so." + std::to_string(CUBLAS_VER_MAJOR);
  void* const library = dlopen(file.c_str(), RTLD_NOW);  // until the program ends
  if (library == nullptr) {
    return std::nullopt;
  }
  auto* const create = find<decltype(cublasCreate_v2)>(library, "cublasCreate_v2");
  auto* const set_stream = find<decltype(cublasSetStream_v2)>(library, "cublasSetStream_v2");
  using GemmEx = cublasStatus_t(cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int, int,
                                const void*, const void*, cudaDataType, int, const void*, cudaDataType, int,
                                const void*, void*, cudaDataType, int, cublasComputeType_t, cublasGemmAlgo_t);
  auto* const gemm = find<GemmEx>(library, "cublasGemmEx");  // the header overloads it
  cublasHandle_t handle = nullptr;
  check_cublas(create(&handle), "cublasCreate_v2");
  check_cublas(set_stream(handle, back_end.stream->get()), "cublasSetStream_v2");

  constexpr int n = 8192;
  MemoryLedger ledger;
  const Buffer a = random_tensor(back_end, ledger, std::int64_t{n} * n, 1);
  const Buffer b = random_tensor(back_end, ledger, std::int64_t{n} * n, 2);
  const Buffer c = random_tensor(back_end, ledger, std::int64_t{n} * n, 3);
  const float one = 1.0F;
  const float zero = 0.0F;
  const double seconds = median_time(back_end, "gemm", [&] {
    check_cublas(
        gemm(handle, CUBLAS_OP_T, CUBLAS_OP_N, n, n, n, &one, a.data(), CUDA_R_16BF, n, b.data(), CUDA_R_16BF,
             n, &zero, c.data(), CUDA_R_16BF, n, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT),
        "cublasGemmEx");
  });
  return GemmTime{.seconds = seconds, .flops = 2.0 * n * n * n};
}

}  // namespace hcp::gpu_check
