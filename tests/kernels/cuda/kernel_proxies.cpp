// What speed depends on of the bf16 kernels on tensor cores, counted on the software GPU, beside what
// FlashAttention-2 does with its published tiles: tables in Markdown. Nothing of it is measured on a device.
//
//   kernel_proxies [TOKENS]     TOKENS of one head, 2048 unless given

#include <cstdio>
#include <exception>
#include <fstream>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernels/cuda/backward_kernels.hpp"
#include "kernels/cuda/forward_kernels.hpp"
#include "tests/kernels/attention_run.hpp"
#include "tests/kernels/cuda/flash_attention_2.hpp"
#include "tests/kernels/cuda/h100_bounds.hpp"
#include "tests/kernels/cuda/kernel_counters.hpp"
#include "tests/kernels/cuda/kernel_under_test.hpp"
#include "tests/software_gpu/software_gpu.hpp"

namespace hcp::test {
namespace {

/// Products of a pair of a query and a key, in multiplies and adds.
struct PairProducts {
  int of_qk = 0;  ///< of dim_qk each
  int of_v = 0;   ///< of dim_v each

  [[nodiscard]] double count(const AttentionCase& setup) const {
    return static_cast<double>(of_qk * setup.dim_qk + of_v * setup.dim_v);
  }
};

/// In the order of their launches. What the definition of the backward pass needs is five products; kernels
/// make scores and dP of each pair again.
struct LaunchedKernel {
  cuda::KernelEntry entry;
  PairProducts products;
};

std::vector<LaunchedKernel> kernels_of(const AttentionCase& setup) {
  const auto dim_qk = static_cast<int>(setup.dim_qk);
  const auto dim_v = static_cast<int>(setup.dim_v);
  std::vector<LaunchedKernel> kernels{
      {cuda::forward_kernel_entry(setup.type, dim_qk, dim_v, false), {1, 1}},
      {cuda::backward_queries_kernel_entry(setup.type, dim_qk, dim_v, false), {2, 1}}};
  const auto keys = cuda::backward_keys_kernel_entries(setup.type, dim_qk, dim_v, false);
  if (keys.size() == 1) {
    kernels.push_back({keys[0], {2, 2}});
  } else {
    kernels.push_back({keys[0], {2, 1}});
    kernels.push_back({keys[1], {1, 1}});
  }
  return kernels;
}

/// Kernel -> registers of a thread on sm_90, of the budgets that every build is checked against.
/// @throws std::runtime_error if there are none
std::map<std::string, int> registers_of_kernels() {
  std::ifstream budgets{HCP_KERNEL_BUDGETS};
  std::map<std::string, int> registers;
  const std::string architecture = "sm_90 ";
  for (std::string line; std::getline(budgets, line);) {
    if (const auto place = line.find(architecture); place != std::string::npos) {
      registers[line.substr(0, line.find(';'))] = std::stoi(line.substr(place + architecture.size()));
    }
  }
  if (registers.empty()) {
    throw std::runtime_error{"no registers on sm_90 in " HCP_KERNEL_BUDGETS};
  }
  return registers;
}

double visible_pairs(const AttentionCase& setup) {
  const auto tokens = static_cast<double>(setup.tokens());
  return setup.causal ? tokens * (tokens + 1) / 2 : tokens * tokens;
}

KernelWork work_of(const ptx::Counters& counts, double products, double pairs) {
  using Kind = ptx::InstructionKind;
  const auto real = [](std::uint64_t count) { return static_cast<double>(count); };
  const double executed = flops_per_mma * real(counts.of(Kind::mma));
  return {.useful_flops = 2 * products * pairs,
          .executed_flops = executed,
          .mma = real(counts.of(Kind::mma)),
          .matrix_loads = real(counts.of(Kind::ldmatrix)),
          .exponentials = executed / (2 * products),  // one of each pair of the tiles
          .shared_bytes = real(counts.shared_load_bytes + counts.shared_store_bytes),
          .shared_phases = real(counts.shared_phases),
          .bank_conflicts = real(counts.shared_extra_phases),
          .global_bytes = real(counts.global_load_bytes + counts.global_store_bytes),
          .warp_instructions = real(counts.warp_instructions)};
}

std::vector<KernelProxy> count(const AttentionCase& setup, const std::map<std::string, int>& registers) {
  const std::unique_ptr<AttentionKernel> kernel = make_kernel_under_test();
  static_cast<void>(software_gpu::take_launches());
  static_cast<void>(run_attention(*kernel, setup, random_operands(setup, 1), whole(setup)));
  const std::vector<software_gpu::Launch> launches = software_gpu::take_launches();
  std::vector<KernelProxy> proxies;
  for (const LaunchedKernel& launched : kernels_of(setup)) {
    const std::string symbol = software_gpu::kernel_name(launched.entry.function);
    for (const software_gpu::Launch& launch : launches) {
      if (launch.kernel != symbol) {
        continue;
      }
      if (!launch.report.findings.empty()) {
        throw std::runtime_error{to_string(launch.report.findings.front())};
      }
      const std::string name = kernel_name_of(symbol);
      proxies.push_back(
          {name,
           setup.causal ? "causal" : "full",
           {std::to_string(launched.entry.own_rows) + " x " + std::to_string(launched.entry.other_rows),
            launched.entry.threads, launched.entry.shared_bytes, registers.at(name)},
           work_of(launch.report.counters, launched.products.count(setup), visible_pairs(setup))});
    }
  }
  return proxies;
}

void print_blocks(const std::vector<KernelProxy>& proxies) {
  std::puts(
      "| kernel | work | tile | threads | registers | shared KiB | blocks by shared memory | by registers |\n"
      "|---|---|---|---|---|---|---|---|");
  for (const KernelProxy& proxy : proxies) {
    const BlockFacts& block = proxy.block;
    const bool known = block.registers.has_value();
    std::printf("| `%s` | %s | %s | %d | %s | %.1f | %d | %s |\n", proxy.kernel.c_str(), proxy.work.c_str(),
                block.tile.c_str(), block.threads, known ? std::to_string(*block.registers).c_str() : "-",
                block.shared_bytes / 1024.0, blocks_by_shared_memory(block),
                known ? std::to_string(blocks_by_registers(block)).c_str() : "-");
  }
}

void print_work(const std::vector<KernelProxy>& proxies) {
  std::puts(
      "| kernel | work | executed / useful | instructions per mma | mma share | ldmatrix per mma | "
      "shared B/kFLOP | global B/kFLOP | bank conflicts |\n"
      "|---|---|---|---|---|---|---|---|---|");
  for (const KernelProxy& proxy : proxies) {
    const KernelWork& sums = proxy.sums;
    std::string instructions = "- | -";
    if (sums.warp_instructions) {
      char text[64];
      std::snprintf(text, sizeof text, "%.2f | %.0f %%", *sums.warp_instructions / sums.mma,
                    100 * sums.mma / *sums.warp_instructions);
      instructions = text;
    }
    std::printf("| `%s` | %s | %.2f | %s | %.3f | %.1f | %.2f | %.0f |\n", proxy.kernel.c_str(),
                proxy.work.c_str(), sums.executed_flops / sums.useful_flops, instructions.c_str(),
                sums.matrix_loads / sums.mma, 1000 * sums.shared_bytes / sums.useful_flops,
                1000 * sums.global_bytes / sums.useful_flops, sums.bank_conflicts);
  }
}

void print_bound(const std::string& name, const std::string& work, double flops, const UnitTimes& times) {
  const auto tera = [flops](double time) { return flops / time / 1e12; };
  char issue[32] = "-";
  if (times.issue > 0) {
    std::snprintf(issue, sizeof issue, "%.0f", tera(times.issue));
  }
  std::printf("| %s | %s | %.0f | %.0f | %s | %.0f | %.0f | %s |\n", name.c_str(), work.c_str(),
              tera(times.tensor), tera(times.shared), issue, tera(times.exponentials), tera(times.bound()),
              times.nearest().c_str());
}

void print_bounds_header() {
  std::puts(
      "| kernel | work | tensor | shared | issue | exp2 | bound | nearest |\n"
      "|---|---|---|---|---|---|---|---|");
}

void print_bounds(const std::vector<KernelProxy>& proxies) {
  for (const KernelProxy& proxy : proxies) {
    print_bound('`' + proxy.kernel + '`', proxy.work, proxy.sums.useful_flops, unit_times(proxy.sums));
  }
}

/// The kernels of the backward pass one after the other, for the FLOPs of its five products.
void print_backward_bound(const AttentionCase& setup, const std::vector<KernelProxy>& proxies) {
  double time = 0.0;
  for (const KernelProxy& proxy : proxies) {
    if (proxy.kernel.starts_with("backward")) {
      time += unit_times(proxy.sums).bound();
    }
  }
  const double flops = 2 * PairProducts{3, 2}.count(setup) * visible_pairs(setup);
  std::printf("| backward %lld / %lld, all kernels | %s | | | | | %.0f | |\n",
              static_cast<long long>(setup.dim_qk), static_cast<long long>(setup.dim_v),
              setup.causal ? "causal" : "full", flops / time / 1e12);
}

std::vector<AttentionCase> cases(std::int64_t tokens) {
  const auto one_head = [tokens](std::int64_t dim_qk, std::int64_t dim_v, bool causal) {
    return AttentionCase{.doc_lengths = {tokens},
                         .causal = causal,
                         .heads_q = 1,
                         .heads_kv = 1,
                         .dim_qk = dim_qk,
                         .dim_v = dim_v,
                         .type = DataType::bf16};
  };
  return {one_head(64, 64, false), one_head(128, 128, false), one_head(128, 128, true),
          one_head(192, 128, false), one_head(256, 256, false)};
}

void print_tables(std::int64_t tokens) {
  software_gpu::load_built_ptx("compute_90");
  software_gpu::set_run_options({.races = false});
  const std::map<std::string, int> registers = registers_of_kernels();
  const std::vector<AttentionCase> setups = cases(tokens);
  std::vector<std::vector<KernelProxy>> counted;
  std::vector<KernelProxy> all;
  for (const AttentionCase& setup : setups) {
    counted.push_back(count(setup, registers));
    all.insert(all.end(), counted.back().begin(), counted.back().end());
  }
  const std::vector<KernelProxy> published = flash_attention_2();
  all.insert(all.end(), published.begin(), published.end());
  print_blocks(all);
  std::puts("");
  print_work(all);
  std::puts("");
  print_bounds_header();
  for (std::size_t i = 0; i < setups.size(); ++i) {
    print_bounds(counted[i]);
    print_backward_bound(setups[i], counted[i]);
  }
  print_bounds(published);
}

}  // namespace
}  // namespace hcp::test

int main(int argc, char** argv) {
  try {
    hcp::test::print_tables(argc > 1 ? std::stoll(argv[1]) : 2048);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "kernel_proxies: %s\n", error.what());
    return 1;
  }
}
