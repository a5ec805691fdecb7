#include "tests/ptx/ptx_case.hpp"

#include <array>
#include <stdexcept>

namespace hcp::ptx {

namespace {

template <typename In, typename Out>
Report run_text(const std::string& body, std::span<const In> in, std::span<Out> out, const CaseSetup& setup) {
  Module module = Module::load(module_text(kernel_text(body)));
  DeviceMemory memory;
  if (!in.empty()) {
    memory.add_read_only(in.data(), in.size_bytes(), "in");
  }
  memory.add(out.data(), out.size_bytes(), "out");
  const std::array<std::uint64_t, 2> parameters{reinterpret_cast<std::uintptr_t>(in.data()),
                                                reinterpret_cast<std::uintptr_t>(out.data())};
  return run({module.kernel("test"),
              setup.grid,
              {setup.threads, 1, 1},
              setup.dynamic_shared_bytes,
              std::as_bytes(std::span{parameters})},
             module, memory, setup.options);
}

}  // namespace

std::string module_text(const std::string& kernels) {
  return ".version 9.0\n.target sm_90\n.address_size 64\n" + kernels;
}

std::string kernel_text(const std::string& body) {
  return ".extern .shared .align 16 .b8 dynamic[];\n"
         ".visible .entry test(.param .u64 in, .param .u64 out)\n{\n"
         ".reg .pred %p<10>; .reg .b16 %s<10>; .reg .b32 %r<40>; .reg .b64 %d<10>;\n"
         "mov.u32 %r39, %tid.x;\nld.param.u64 %d8, [in];\nld.param.u64 %d9, [out];\n" +
         body + "\nret;\n}\n";
}

Report run_case(const std::string& body, std::span<const std::uint32_t> in, std::span<std::uint32_t> out,
                const CaseSetup& setup) {
  return run_text(body, in, out, setup);
}

Report run_case(const std::string& body, const CaseSetup& setup) {
  const std::vector<std::uint32_t> in(64);
  std::vector<std::uint32_t> out(64);
  return run_text(body, std::span{in}, std::span{out}, setup);
}

std::vector<FindingKind> kinds_of(const Report& report) {
  std::vector<FindingKind> kinds;
  for (const Finding& finding : report.findings) {
    kinds.push_back(finding.kind);
  }
  return kinds;
}

namespace detail {

std::string register_name(std::size_t bytes, std::size_t index) {
  return (bytes == 2 ? "%s" : bytes == 4 ? "%r" : "%d") + std::to_string(index);
}

std::string column_load(std::size_t bytes, std::size_t index, std::size_t byte_offset) {
  return "mad.wide.u32 %d7, %r39, " + std::to_string(bytes) + ", %d8;\nld.global.b" +
         std::to_string(8 * bytes) + " " + register_name(bytes, index) + ", [%d7+" +
         std::to_string(byte_offset) + "];\n";
}

std::string column_store(std::size_t bytes, std::size_t index) {
  return "\nmad.wide.u32 %d6, %r39, " + std::to_string(bytes) + ", %d9;\nst.global.b" +
         std::to_string(8 * bytes) + " [%d6], " + register_name(bytes, index) + ";";
}

std::vector<std::byte> evaluate_bytes(const std::string& body, std::span<const std::byte> in,
                                      std::size_t threads, std::size_t result_bytes) {
  std::vector<std::byte> out(threads * result_bytes);
  CaseSetup setup;
  setup.threads = static_cast<std::uint32_t>(threads);
  const Report report = run_text(body, in, std::span{out}, setup);
  if (!report.findings.empty()) {
    throw std::runtime_error{to_string(report.findings.front())};
  }
  return out;
}

}  // namespace detail

}  // namespace hcp::ptx
