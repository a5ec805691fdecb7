// Every kernel that the back end can launch: its name as nvcc mangles it, the threads of a block, and the
// bytes of its dynamic shared memory, one kernel per line. For kernel_budgets.py.

#include <array>
#include <cstdio>
#include <set>
#include <string>

#include "kernels/cuda/backward_kernels.hpp"
#include "kernels/cuda/forward_kernels.hpp"
#include "kernels/cuda/row_kernel_entries.hpp"
#include "tests/software_gpu/software_gpu.hpp"

namespace {

using hcp::DataType;
using hcp::cuda::KernelEntry;

class KernelList {
 public:
  void add(const KernelEntry& kernel) {
    lines_.insert(hcp::software_gpu::kernel_name(kernel.function) + ' ' + std::to_string(kernel.threads) +
                  ' ' + std::to_string(kernel.shared_bytes));
  }
  void print() const {
    for (const std::string& line : lines_) {
      std::puts(line.c_str());
    }
  }

 private:
  std::set<std::string> lines_;
};

}  // namespace

int main() {
  constexpr std::array types{DataType::fp32, DataType::bf16, DataType::fp16};
  KernelList kernels;
  for (const DataType type : types) {
    for (int dim_qk = 8; dim_qk <= 256; dim_qk += 8) {
      for (int dim_v = 8; dim_v <= 256; dim_v += 8) {
        for (const bool dropping : {false, true}) {
          kernels.add(hcp::cuda::forward_kernel_entry(type, dim_qk, dim_v, dropping));
          kernels.add(hcp::cuda::backward_queries_kernel_entry(type, dim_qk, dim_v, dropping));
          for (const KernelEntry& kernel :
               hcp::cuda::backward_keys_kernel_entries(type, dim_qk, dim_v, dropping)) {
            kernels.add(kernel);
          }
        }
      }
    }
    kernels.add(hcp::cuda::add_rows_kernel_entry(type));
    for (const DataType other : types) {
      kernels.add(hcp::cuda::copy_rows_kernel_entry(type, other));
      kernels.add(hcp::cuda::row_dot_kernel_entry(type, other));
    }
  }
  kernels.add(hcp::cuda::finish_forward_kernel_entry());
  kernels.add(hcp::cuda::max_logits_kernel_entry());
  kernels.add(hcp::cuda::sink_gradients_kernel_entry());
  kernels.add(hcp::cuda::fill_kernel_entry());
  kernels.print();
}
