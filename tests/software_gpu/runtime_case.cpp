#include "tests/software_gpu/runtime_case.hpp"

#include "tests/ptx/ptx_case.hpp"

extern "C" void __cudaRegisterFunction(void**, const char*, char*, const char*, int, uint3*, uint3*, dim3*,
                                       dim3*, int*);

namespace hcp::software_gpu {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

void expect_misuse(const std::string& call, const std::string& words) {
  EXPECT_THAT(take_misuses(), ElementsAre(AllOf(StartsWith(call + ": "), HasSubstr(words))));
}

void expect_no_misuse() {
  EXPECT_THAT(take_misuses(), IsEmpty());
}

Runtime::Runtime() {
  EXPECT_EQ(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), cudaSuccess);
}

Runtime::~Runtime() {
  EXPECT_EQ(cudaStreamDestroy(stream_), cudaSuccess);
  for (void* data : memory_) {
    EXPECT_EQ(cudaFree(data), cudaSuccess);
  }
  static_cast<void>(cudaGetLastError());
}

std::uint32_t* Runtime::device_words(std::size_t words) {
  void* data = nullptr;
  EXPECT_EQ(cudaMalloc(&data, words * sizeof(std::uint32_t)), cudaSuccess);
  memory_.push_back(data);
  return static_cast<std::uint32_t*>(data);
}

std::uint32_t* Runtime::device_words(const std::vector<std::uint32_t>& values) {
  std::uint32_t* words = device_words(values.size());
  EXPECT_EQ(cudaMemcpyAsync(words, values.data(), values.size() * sizeof(std::uint32_t),
                            cudaMemcpyHostToDevice, stream_),
            cudaSuccess);
  return words;
}

std::vector<std::uint32_t> Runtime::to_host(const std::uint32_t* words, std::size_t count) {
  std::vector<std::uint32_t> values(count);
  EXPECT_EQ(
      cudaMemcpyAsync(values.data(), words, count * sizeof(std::uint32_t), cudaMemcpyDeviceToHost, stream_),
      cudaSuccess);
  return values;
}

void register_function(const void* function, const char* kernel) {
  __cudaRegisterFunction(nullptr, static_cast<const char*>(function), nullptr, kernel, -1, nullptr, nullptr,
                         nullptr, nullptr, nullptr);
}

const void* define_kernel(const std::string& body) {
  static const char function = 0;  // its address is all that matters
  register_function(&function, "test");
  load_ptx(ptx::module_text(ptx::kernel_text(body)));
  return &function;
}

cudaError_t launch(const void* function, const void* in, void* out, cudaStream_t stream, dim3 block,
                   dim3 grid, std::size_t shared_bytes) {
  void* arguments[] = {&in, &out};
  return cudaLaunchKernel(function, grid, block, arguments, shared_bytes, stream);
}

}  // namespace hcp::software_gpu
