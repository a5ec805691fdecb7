#include "src/attention/layer_tensors.hpp"

namespace hcp {

LayerTensors::LayerTensors(const ExchangePlan& plan, PassSelection passes, MemoryLedger& ledger,
                           MemorySource& memory) {
  for (std::size_t id = 0; id < known_arrays; ++id) {
    if (!known_array_is_used(static_cast<ArrayId>(id), passes)) {
      continue;
    }
    const ArrayPlan& array = plan.arrays.at(id);
    mirrors_[id] = Mirror{ledger, array.category, array.bytes(), memory};
    shapes_[id] = {nullptr, array.type, array.rows, array.heads, array.dim};
  }
}

TensorView LayerTensors::view(KnownArray array) const {
  const auto id = static_cast<std::size_t>(array);
  TensorView view = shapes_.at(id);
  view.data = mirrors_.at(id).of_kernel();
  return view;
}

TensorView LayerTensors::host_view(KnownArray array) const {
  const auto id = static_cast<std::size_t>(array);
  TensorView view = shapes_.at(id);
  view.data = mirrors_.at(id).of_host();
  return view;
}

void LayerTensors::to_kernel() {
  for (Mirror& mirror : mirrors_) {
    mirror.to_kernel();
  }
}

void LayerTensors::to_host() {
  for (Mirror& mirror : mirrors_) {
    mirror.to_host();
  }
}

}  // namespace hcp
