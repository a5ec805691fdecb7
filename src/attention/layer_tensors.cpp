#include "src/attention/layer_tensors.hpp"

namespace hcp {

LayerTensors::LayerTensors(const ExchangePlan& plan, PassSelection passes, MemoryLedger& ledger) {
  for (std::size_t id = 0; id < known_arrays; ++id) {
    if (!known_array_is_used(static_cast<ArrayId>(id), passes)) {
      continue;
    }
    const ArrayPlan& array = plan.arrays.at(id);
    buffers_[id] = Buffer{ledger, array.category, array.bytes()};
    views_[id] = {buffers_[id].data(), array.type, array.rows, array.heads, array.dim};
  }
}

TensorView LayerTensors::view(KnownArray array) const {
  return views_.at(static_cast<std::size_t>(array));
}

}  // namespace hcp
