#include "tests/gpu_check/random_tensor.hpp"

#include <cstddef>
#include <random>
#include <vector>

namespace hcp::gpu_check {

Buffer random_tensor(BackEnd& back_end, MemoryLedger& ledger, std::int64_t count, unsigned seed) {
  constexpr std::size_t period = (1 << 20) - 3;  // repeats itself to be made quickly; no multiple of a row
  std::mt19937 random{seed};
  std::vector<float> values(period);
  for (float& value : values) {
    value = static_cast<float>(static_cast<std::int32_t>(random())) * 0x1p-31F;
  }
  std::vector<std::uint16_t> drawn(period);
  round_to(DataType::bf16, values.data(), reinterpret_cast<std::byte*>(drawn.data()), period);
  std::vector<std::uint16_t> elements(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < elements.size(); ++i) {
    elements[i] = drawn[i % period];
  }
  Buffer tensor{ledger, MemoryCategory::qkv, count * 2, *back_end.memory};
  back_end.memory->copy_from_host(tensor.data(), reinterpret_cast<const std::byte*>(elements.data()),
                                  tensor.bytes());
  return tensor;
}

}  // namespace hcp::gpu_check
