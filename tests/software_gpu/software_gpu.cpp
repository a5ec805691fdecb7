#include "tests/software_gpu/software_gpu.hpp"

#include <array>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <utility>

#include "tests/software_gpu/gpu.hpp"
#include "tests/software_gpu/nccl/nccl_record.hpp"

namespace hcp::software_gpu {
namespace {

/// Files of this build, by architecture.
constexpr std::string_view built_ptx[] = {HCP_CUDA_PTX_FILES};

std::string text_of(const std::string& path) {
  std::ifstream file{path};
  std::string text{std::istreambuf_iterator<char>{file}, {}};
  if (!file || text.empty()) {
    throw std::runtime_error{"no PTX in " + path};
  }
  return text;
}

Architecture architecture_of(std::string_view name) {
  if (name == "compute_80") {
    return {.major = 8, .minor = 0, .max_shared_bytes = 163 << 10};
  }
  if (name == "compute_90") {
    return {.major = 9, .minor = 0, .max_shared_bytes = 227 << 10};
  }
  throw std::invalid_argument{"architecture '" + std::string{name} +
                              "': only compute_80 and compute_90 are built"};
}

void add_live(std::vector<std::string>& objects, std::size_t count, const std::string& what) {
  if (count > 0) {
    objects.push_back(std::to_string(count) + " " + what);
  }
}

}  // namespace

void load_ptx(std::string_view text) {
  const std::lock_guard lock{gpu().mutex};
  gpu().kernels.load(std::string{text});
}

void load_built_ptx(std::string_view architecture) {
  const std::lock_guard lock{gpu().mutex};
  gpu().architecture = architecture_of(architecture);
  const std::string ending = "." + std::string{architecture} + ".ptx";
  for (const std::string_view path : built_ptx) {
    if (path.ends_with(ending)) {
      gpu().kernels.load_later(text_of(std::string{path}));
    }
  }
}

void set_schedule(unsigned seed) {
  finish_streams();
  const std::lock_guard lock{gpu().mutex};
  gpu().engine.set_schedule(seed);
  gpu().history.clear();
}

void set_patience(double seconds) {
  const std::lock_guard lock{gpu().mutex};
  gpu().engine.set_patience(seconds);
}

void finish_streams() {
  const std::lock_guard lock{gpu().mutex};
  if (const std::string rest = gpu().engine.drain(); !rest.empty()) {
    report("never done:" + rest);
  }
  gpu().host_copies.forget();
}

void set_run_options(const ptx::RunOptions& options) {
  const std::lock_guard lock{gpu().mutex};
  gpu().options = options;
}

std::string kernel_name(const void* function) {
  const std::string* name = gpu().kernels.name_of(function);
  if (name == nullptr) {
    throw std::invalid_argument{"no kernel was registered for this function"};
  }
  return *name;
}

std::vector<Launch> take_launches() {
  const std::lock_guard lock{gpu().mutex};
  return std::exchange(gpu().launches, {});
}

std::vector<std::string> take_misuses() {
  const std::lock_guard lock{gpu().mutex};
  gpu().reported.clear();
  return std::exchange(gpu().misuses, {});
}

std::vector<std::string> live_objects() {
  const std::lock_guard lock{gpu().mutex};
  std::vector<std::string> objects;
  for (int device = 0; device < gpu().devices.count(); ++device) {
    for (const auto& [base, region] : gpu().memory.device(device).regions()) {
      objects.push_back(region.name);
    }
  }
  for (const auto& [base, region] : gpu().memory.pinned().regions()) {
    objects.push_back(region.name);
  }
  add_live(objects, gpu().streams.size(), "streams");
  add_live(objects, gpu().events.size(), "events");
  for (const auto& [number, name] : nccl_record().communicators) {
    objects.push_back("NCCL's " + name);
  }
  return objects;
}

}  // namespace hcp::software_gpu
