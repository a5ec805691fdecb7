#include "kernels/cuda/row_kernels.cuh"

#include "kernels/cuda/row_kernel_entries.hpp"

namespace hcp::cuda {
namespace {

/// A type as a value, for lambdas.
template <typename Type>
struct Tag {
  using type = Type;
};

/// make(Tag) of the storage.
template <typename Make>
const KernelEntry& with_element(DataType type, const Make& make) {
  switch (type) {
    case DataType::bf16:
      return make(Tag<Bf16>{});
    case DataType::fp16:
      return make(Tag<Fp16>{});
    default:
      return make(Tag<Fp32>{});
  }
}

template <typename Parameters>
KernelEntry entry(void (*kernel)(Parameters), const char* name, int units, int shared_bytes = 0) {
  return {reinterpret_cast<const void*>(kernel), name, units, 0, row_threads, shared_bytes};
}

constexpr int block_value_bytes = row_threads * static_cast<int>(sizeof(float));

template <typename Out, typename Dout>
const KernelEntry& row_dot_entry() {
  static const KernelEntry made = entry(&row_dot<Out, Dout>, "row_dot", row_warps);
  return made;
}
template <typename Source, typename Target>
const KernelEntry& copy_rows_entry() {
  static const KernelEntry made = entry(&copy_rows<Source, Target>, "copy_rows", row_warps);
  return made;
}
template <typename Source>
const KernelEntry& add_rows_entry() {
  static const KernelEntry made = entry(&add_rows<Source>, "add_rows", row_warps);
  return made;
}

}  // namespace

const KernelEntry& finish_forward_kernel_entry() {
  static const KernelEntry made = entry(&finish_forward, "finish_forward", row_warps);
  return made;
}
const KernelEntry& max_logits_kernel_entry() {
  static const KernelEntry made = entry(&max_logits, "max_logits", 1, block_value_bytes);
  return made;
}
const KernelEntry& sink_gradients_kernel_entry() {
  static const KernelEntry made = entry(&sink_gradients, "sink_gradients", 1, block_value_bytes);
  return made;
}
const KernelEntry& row_dot_kernel_entry(DataType out, DataType dout) {
  return with_element(out, [dout](auto left) -> const KernelEntry& {
    return with_element(dout, [](auto right) -> const KernelEntry& {
      return row_dot_entry<typename decltype(left)::type, typename decltype(right)::type>();
    });
  });
}
const KernelEntry& copy_rows_kernel_entry(DataType source, DataType target) {
  return with_element(source, [target](auto from) -> const KernelEntry& {
    return with_element(target, [](auto to) -> const KernelEntry& {
      return copy_rows_entry<typename decltype(from)::type, typename decltype(to)::type>();
    });
  });
}
const KernelEntry& add_rows_kernel_entry(DataType source) {
  return with_element(source, [](auto from) -> const KernelEntry& {
    return add_rows_entry<typename decltype(from)::type>();
  });
}
const KernelEntry& fill_kernel_entry() {
  static const KernelEntry made = entry(&fill, "fill", row_threads);
  return made;
}

}  // namespace hcp::cuda
