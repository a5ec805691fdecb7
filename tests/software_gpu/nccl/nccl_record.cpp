#include "tests/software_gpu/nccl/nccl_record.hpp"

#include <mutex>
#include <utility>

#include "tests/software_gpu/gpu.hpp"

namespace hcp::software_gpu {

NcclRecord& nccl_record() {
  static NcclRecord& instance = *new NcclRecord;
  return instance;
}

std::map<int, std::int64_t> take_nccl_bytes() {
  const std::lock_guard lock{gpu().mutex};
  return std::exchange(nccl_record().bytes, {});
}

}  // namespace hcp::software_gpu
