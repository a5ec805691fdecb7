#include "tests/software_gpu/exchange_case.hpp"

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/ptx/ptx_case.hpp"
#include "tests/software_gpu/runtime_case.hpp"
#include "tests/software_gpu/software_gpu.hpp"

namespace hcp::software_gpu {
namespace {

constexpr std::size_t words = 32;
constexpr std::size_t bytes = words * sizeof(std::uint32_t);
constexpr std::uint32_t rounds = 2;

/// From %d1, the address of in[thread], and %d2, that of out[thread].
std::string of_thread(const std::string& body) {
  return "mul.wide.u32 %d0, %r39, 4; add.u64 %d1, %d8, %d0; add.u64 %d2, %d9, %d0; " + body;
}
/// out = 0
const std::string fill = of_thread("mov.u32 %r0, 0; st.global.u32 [%d2], %r0;");
/// out = in + 1
const std::string add_one =
    of_thread("ld.global.u32 %r0, [%d1]; add.u32 %r0, %r0, 1; st.global.u32 [%d2], %r0;");
/// out += in
const std::string accumulate = of_thread(
    "ld.global.u32 %r0, [%d1]; ld.global.u32 %r1, [%d2]; add.u32 %r0, %r0, %r1; st.global.u32 [%d2], %r0;");

/// @param function  its address stands for the kernel
const void* define(const char& function, const std::string& name, const std::string& body) {
  const std::string named = "test(";
  std::string text = ptx::kernel_text(body);
  text.replace(text.find(named), named.size(), name + "(");
  register_function(&function, name.c_str());
  load_ptx(ptx::module_text(text));
  return &function;
}

constexpr char functions[3] = {};

std::uint32_t uploaded(std::uint32_t round, std::size_t thread) {
  return 100 * (round + 1) + static_cast<std::uint32_t>(thread);
}

void expect_success(cudaError_t result) {
  EXPECT_EQ(result, cudaSuccess);
}

cudaStream_t make_stream() {
  cudaStream_t stream = nullptr;
  expect_success(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  return stream;
}

cudaEvent_t make_event() {
  cudaEvent_t event = nullptr;
  expect_success(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  return event;
}

class Exchange {
 public:
  explicit Exchange(const ExchangeSteps& steps) : steps_{steps} {
    for (void** buffer : {&input_, &sent_, &received_, &output_}) {
      expect_success(cudaMalloc(buffer, bytes));
    }
    expect_success(cudaMallocHost(&upload_, bytes));
    expect_success(cudaMallocHost(&download_, bytes * rounds));
  }
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;
  ~Exchange() {
    expect_success(cudaStreamDestroy(compute_));
    expect_success(cudaStreamDestroy(transport_));
    for (const cudaEvent_t event : {computed_, transferred_, uploaded_}) {
      expect_success(cudaEventDestroy(event));
    }
    for (void* buffer : {input_, sent_, received_, output_}) {
      expect_success(cudaFree(buffer));
    }
    expect_success(cudaFreeHost(upload_));
    expect_success(cudaFreeHost(download_));
  }

  std::vector<std::uint32_t> run() {
    for (std::uint32_t round = 0; round < rounds; ++round) {
      upload(round);
      expect_success(launch(add_one_, input_, sent_, compute_));
      transfer();
      expect_success(launch(fill_, output_, output_, compute_));
      expect_success(launch(accumulate_, received_, output_, compute_));
      expect_success(
          cudaMemcpyAsync(results() + round * words, output_, bytes, cudaMemcpyDeviceToHost, compute_));
    }
    if (steps_.host_waits_before_reading) {
      expect_success(cudaStreamSynchronize(compute_));
    }
    std::vector<std::uint32_t> seen(results(), results() + rounds * words);
    expect_success(cudaDeviceSynchronize());
    return seen;
  }

 private:
  [[nodiscard]] std::uint32_t* results() const { return static_cast<std::uint32_t*>(download_); }

  static void wait(cudaStream_t stream, cudaEvent_t event, bool needed) {
    if (needed) {
      expect_success(cudaStreamWaitEvent(stream, event, 0));
    }
  }

  void upload(std::uint32_t round) {
    if (round > 0 && steps_.host_waits_before_uploading_again) {
      while (cudaEventQuery(uploaded_) == cudaErrorNotReady) {
      }
    }
    for (std::size_t thread = 0; thread < words; ++thread) {
      static_cast<std::uint32_t*>(upload_)[thread] = uploaded(round, thread);
    }
    expect_success(cudaMemcpyAsync(input_, upload_, bytes, cudaMemcpyHostToDevice, compute_));
    expect_success(cudaEventRecord(uploaded_, compute_));
  }

  void transfer() {
    expect_success(cudaEventRecord(computed_, compute_));
    wait(transport_, computed_, steps_.transport_waits_for_compute);
    expect_success(cudaMemcpyAsync(received_, sent_, bytes, cudaMemcpyDeviceToDevice, transport_));
    expect_success(cudaEventRecord(transferred_, transport_));
    wait(compute_, transferred_, steps_.compute_waits_for_transport);
  }

  ExchangeSteps steps_;
  const void* fill_ = define(functions[0], "fill_words", fill);
  const void* add_one_ = define(functions[1], "add_one", add_one);
  const void* accumulate_ = define(functions[2], "accumulate", accumulate);
  cudaStream_t compute_ = make_stream();
  cudaStream_t transport_ = make_stream();
  cudaEvent_t computed_ = make_event();
  cudaEvent_t transferred_ = make_event();
  cudaEvent_t uploaded_ = make_event();
  void* input_ = nullptr;
  void* sent_ = nullptr;
  void* received_ = nullptr;
  void* output_ = nullptr;
  void* upload_ = nullptr;
  void* download_ = nullptr;
};

/// Of a run with all steps: one word per thread of both rounds.
std::vector<std::uint32_t> expected_results() {
  std::vector<std::uint32_t> expected;
  for (std::uint32_t round = 0; round < rounds; ++round) {
    for (std::size_t thread = 0; thread < words; ++thread) {
      expected.push_back(uploaded(round, thread) + 1);
    }
  }
  return expected;
}

}  // namespace

ExchangeOutcome exchange_under(unsigned schedule, const ExchangeSteps& steps) {
  set_schedule(schedule);
  ExchangeOutcome outcome;
  outcome.right = Exchange{steps}.run() == expected_results();
  set_schedule(0);
  outcome.findings = take_misuses();
  for (const Launch& launch : take_launches()) {
    for (const ptx::Finding& finding : launch.report.findings) {
      outcome.findings.push_back(ptx::to_string(finding));
    }
  }
  return outcome;
}

}  // namespace hcp::software_gpu
