#include "tests/gpu_check/gemm_time.hpp"

#include <dlfcn.h>
#include <library_types.h>

#include <stdexcept>
#include <string>

#include "kernels/cuda/stream.hpp"
#include "tests/gpu_check/median_time.hpp"
#include "tests/gpu_check/random_tensor.hpp"

namespace hcp::gpu_check {
namespace {

/// What is used of cuBLAS, whose headers not every toolkit has.
/// @source NVIDIA cuBLAS documentation, cublasGemmEx; values of the enumerators from cublas_api.h 13.0
using Create = int(void** handle);
using SetStream = int(void* handle, CUstream_st* stream);
using GemmEx = int(void* handle, int transa, int transb, int m, int n, int k, const void* alpha,
                   const void* a, cudaDataType a_type, int lda, const void* b, cudaDataType b_type, int ldb,
                   const void* beta, void* c, cudaDataType c_type, int ldc, int compute_type, int algorithm);
constexpr int not_transposed = 0;
constexpr int transposed = 1;
constexpr int compute_32f = 68;
constexpr int default_algorithm = -1;

void check_cublas(int status, const char* call) {
  if (status != 0) {
    throw std::runtime_error{std::string{call} + " gave status " + std::to_string(status)};
  }
}

/// Stays until the program ends. @return null where the machine has none
void* load_cublas() {
  for (const char* const name : {"libcublas.so.13", "libcublas.so.12", "libcublas.so"}) {
    if (void* const library = dlopen(name, RTLD_NOW)) {
      return library;
    }
  }
  return nullptr;
}

template <typename Function>
Function* find(void* library, const char* name) {
  void* const address = dlsym(library, name);
  if (address == nullptr) {
    throw std::runtime_error{std::string{name} + " is not in the machine's cuBLAS"};
  }
  return reinterpret_cast<Function*>(address);
}

}  // namespace

std::optional<GemmTime> time_gemm(BackEnd& back_end) {
  void* const library = load_cublas();
  if (library == nullptr) {
    return std::nullopt;
  }
  void* handle = nullptr;
  check_cublas(find<Create>(library, "cublasCreate_v2")(&handle), "cublasCreate_v2");
  check_cublas(find<SetStream>(library, "cublasSetStream_v2")(handle, back_end.stream->get()),
               "cublasSetStream_v2");
  auto* const gemm = find<GemmEx>(library, "cublasGemmEx");

  constexpr int n = 8192;
  MemoryLedger ledger;
  const Buffer a = random_tensor(back_end, ledger, std::int64_t{n} * n, 1);
  const Buffer b = random_tensor(back_end, ledger, std::int64_t{n} * n, 2);
  const Buffer c = random_tensor(back_end, ledger, std::int64_t{n} * n, 3);
  const float one = 1.0F;
  const float zero = 0.0F;
  const double seconds = median_time(back_end, "gemm", [&] {
    check_cublas(gemm(handle, transposed, not_transposed, n, n, n, &one, a.data(), CUDA_R_16BF, n, b.data(),
                      CUDA_R_16BF, n, &zero, c.data(), CUDA_R_16BF, n, compute_32f, default_algorithm),
                 "cublasGemmEx");
  });
  return GemmTime{.seconds = seconds, .flops = 2.0 * n * n * n};
}

}  // namespace hcp::gpu_check
