// Entry points of the CUDA runtime: kernels. Those with __cuda are called by what nvcc adds to its objects.

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tests/software_gpu/checks.hpp"
#include "tests/software_gpu/gpu.hpp"
#include "tests/software_gpu/planted_bugs.hpp"

namespace {

using namespace hcp::software_gpu;  // NOLINT: the runtime's functions are in no namespace

/// More has to be asked for.
constexpr std::size_t freely_shared_bytes = 48 << 10;

/// Says of accesses out of bounds what is there.
void explain(std::vector<hcp::ptx::Finding>& findings, int device) {
  for (hcp::ptx::Finding& finding : findings) {
    if (finding.kind == hcp::ptx::FindingKind::out_of_bounds && finding.address != 0) {
      const auto* address = reinterpret_cast<const void*>(finding.address);
      const Place place = gpu().memory.place_of(address);
      if (place == Place::freed || place == Place::pinned) {
        finding.message += ", in " + name_of(place);
      } else if (place == Place::device && gpu().memory.device_of(address) != device) {
        finding.message += ", in memory of another device";
      }
    }
  }
}

/// Variables of a module are left out: nothing but its kernels can touch them.
void check_ranges(const Operation& operation, const std::vector<hcp::ptx::ByteRange>& ranges,
                  AccessMode mode) {
  for (const hcp::ptx::ByteRange& range : ranges) {
    const auto* begin = reinterpret_cast<const void*>(range.begin);
    if (gpu().memory.place_of(begin) == Place::device) {
      check_order(operation, begin, range.end - range.begin, mode);
    }
  }
}

/// With everything that it needs when it runs, which may be after the call.
struct KernelLaunch {
  Kernels::Loaded loaded;
  hcp::ptx::Extent grid;
  hcp::ptx::Extent block;
  std::uint32_t dynamic_shared_bytes = 0;
  std::vector<std::byte> parameters;
  hcp::ptx::RunOptions options;

  [[nodiscard]] hcp::ptx::Launch launch() const {
    return {.kernel = *loaded.kernel,
            .grid = grid,
            .block = block,
            .dynamic_shared_bytes = dynamic_shared_bytes,
            .parameters = parameters};
  }
  /// Runs it, keeps the report, and checks the memory that it has touched.
  void run(const Operation& operation) const {
    hcp::ptx::RunOptions with_footprint = options;
    with_footprint.footprint = options.footprint || gpu().engine.deferred();
    hcp::ptx::Report report =
        hcp::ptx::run(launch(), *loaded.module, gpu().memory.device(operation.device), with_footprint);
    explain(report.findings, operation.device);
    check_ranges(operation, report.reads, AccessMode::read);
    check_ranges(operation, report.writes, AccessMode::write);
    if (!options.footprint) {
      report.reads.clear();
      report.writes.clear();
    }
    gpu().launches.push_back({loaded.kernel->name, std::move(report)});
  }
};

void submit(Stream& stream, KernelLaunch kernel) {
  const std::string& name = kernel.loaded.kernel->name;
  if (name.find("fill") != std::string::npos && has_bug(Bug::lost_fill)) {
    return;
  }
  stream.note_kernel();
  const std::string operation_name = "kernel " + name;
  const Advance advance = [kernel = std::move(kernel)](const Operation& operation, bool) {
    kernel.run(operation);
    return true;
  };
  if (has_bug(Bug::wrong_stream)) {
    const std::shared_ptr<Stream> nobodys = gpu().engine.add_stream(stream.device());
    nobodys->submit(operation_name, advance);
    gpu().engine.remove_stream(nobodys);
    return;
  }
  stream.submit(operation_name, advance);
}

}  // namespace

extern "C" {

cudaError_t cudaFuncSetAttribute(const void* function, cudaFuncAttribute attribute, int value) {
  const Call call{__func__};
  if (gpu().kernels.name_of(function) == nullptr) {
    return call.misuse(cudaErrorInvalidDeviceFunction, "a function that stands for no kernel");
  }
  if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize) {
    return call.misuse(cudaErrorInvalidValue,
                       "attribute " + std::to_string(attribute) + " is not known here");
  }
  if (value < 0 || value > gpu().architecture.max_shared_bytes) {
    return call.fail(cudaErrorInvalidValue);
  }
  gpu().admitted_shared_bytes[function] = value;
  return call.done();
}

cudaError_t cudaLaunchKernel(const void* function, dim3 grid, dim3 block, void** arguments,
                             size_t dynamic_shared_bytes, cudaStream_t stream_handle) {
  const Call call{__func__};
  const std::shared_ptr<Stream> stream = call.current_stream(stream_handle);
  if (stream == nullptr) {
    return cudaErrorInvalidResourceHandle;
  }
  const std::string* name = gpu().kernels.name_of(function);
  if (name == nullptr) {
    return call.misuse(cudaErrorInvalidDeviceFunction, "a function that stands for no kernel");
  }
  try {
    const Kernels::Loaded loaded = gpu().kernels.find(*name);
    if (loaded.kernel == nullptr) {
      return call.misuse(cudaErrorNoKernelImageForDevice, "no PTX was loaded for " + *name);
    }
    const std::size_t shared = loaded.kernel->static_shared_bytes + dynamic_shared_bytes;
    const auto admitted = gpu().admitted_shared_bytes.find(function);
    if (shared > freely_shared_bytes && (admitted == gpu().admitted_shared_bytes.end() ||
                                         dynamic_shared_bytes > static_cast<std::size_t>(admitted->second))) {
      return call.misuse(cudaErrorInvalidValue, *name + " with " + std::to_string(shared) +
                                                    " bytes of shared memory that were not asked for");
    }
    KernelLaunch kernel{.loaded = loaded,
                        .grid = {grid.x, grid.y, grid.z},
                        .block = {block.x, block.y, block.z},
                        .dynamic_shared_bytes = static_cast<std::uint32_t>(dynamic_shared_bytes),
                        .parameters = hcp::ptx::pack_parameters(*loaded.kernel, arguments),
                        .options = gpu().options};
    kernel.options.max_shared_bytes = static_cast<std::uint32_t>(gpu().architecture.max_shared_bytes);
    hcp::ptx::check(kernel.launch(), kernel.options);
    submit(*stream, std::move(kernel));
  } catch (const std::invalid_argument& refused) {
    return call.misuse(cudaErrorInvalidConfiguration, refused.what());
  }
  return call.done();
}

void** __cudaRegisterFatBinary(void* /*machine_code*/) {
  static void* handle = nullptr;  // machine code is of no use here
  return &handle;
}

void __cudaRegisterFatBinaryEnd(void** /*handle*/) {}

void __cudaUnregisterFatBinary(void** /*handle*/) {}

void __cudaRegisterFunction(void** /*handle*/, const char* function, char* /*device_function*/,
                            const char* kernel, int /*thread_limit*/, uint3* /*thread*/, uint3* /*block*/,
                            dim3* /*block_size*/, dim3* /*grid_size*/, int* /*warp_size*/) {
  const Call call{__func__};
  gpu().kernels.add_function(function, kernel);
}

// The three that <<<>>> needs: the product has one place that launches, and it does not.

cudaError_t __cudaGetKernel(cudaKernel_t* /*kernel*/, const void* /*function*/) {
  return Call{__func__}.misuse(cudaErrorInvalidDeviceFunction, "launches by <<<>>> are not known here");
}

cudaError_t __cudaPopCallConfiguration(dim3* /*grid*/, dim3* /*block*/, size_t* /*shared_bytes*/,
                                       void* /*stream*/) {
  return Call{__func__}.misuse(cudaErrorInvalidConfiguration, "launches by <<<>>> are not known here");
}

cudaError_t __cudaLaunchKernel(cudaKernel_t /*kernel*/, dim3 /*grid*/, dim3 /*block*/, void** /*arguments*/,
                               size_t /*shared_bytes*/, cudaStream_t /*stream*/) {
  return Call{__func__}.misuse(cudaErrorInvalidConfiguration, "launches by <<<>>> are not known here");
}

}  // extern "C"
