/// What tests of the runtime's double have in common.
#pragma once

#include <cuda_runtime_api.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/software_gpu/software_gpu.hpp"

namespace hcp::software_gpu {

/// One misuse since the last look, with these words in it; the call's own name stands before them.
void expect_misuse(const std::string& call, const std::string& words);
void expect_no_misuse();

/// A stream, and memory of the device that belongs to it.
class Runtime : public testing::Test {
 protected:
  Runtime();
  ~Runtime() override;

  /// [words], freed at the end. Uninitialised.
  std::uint32_t* device_words(std::size_t words);
  /// With these values.
  std::uint32_t* device_words(const std::vector<std::uint32_t>& values);
  [[nodiscard]] std::vector<std::uint32_t> to_host(const std::uint32_t* words, std::size_t count);

  cudaStream_t stream_ = nullptr;

 private:
  std::vector<void*> memory_;
};

/// From now on the function stands for the kernel.
void register_function(const void* function, const char* kernel);

/// Kernel "test" becomes one that runs `body` (kernel_text of tests/ptx). @return the host's function for it
const void* define_kernel(const std::string& body);

/// Launches it with two pointers.
cudaError_t launch(const void* function, const void* in, void* out, cudaStream_t stream, dim3 block = 32,
                   dim3 grid = 1, std::size_t shared_bytes = 0);

}  // namespace hcp::software_gpu
