/// The objects behind opaque handles.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>

namespace hcp::software_gpu {

/// Handles are never given out twice, so one that was destroyed is not taken for another. They point to
/// nothing.
template <typename Handle, typename Object>
class HandleTable {
 public:
  Handle add(Object object) {
    next_ += 16;
    objects_.emplace(next_, std::move(object));
    return reinterpret_cast<Handle>(next_);
  }
  /// nullptr if there is none.
  [[nodiscard]] Object* find(Handle handle) {
    const auto found = objects_.find(reinterpret_cast<std::uintptr_t>(handle));
    return found == objects_.end() ? nullptr : &found->second;
  }
  /// The first for which `is_wanted(handle, object)` is true; nullptr if there is none.
  template <typename Predicate>
  [[nodiscard]] Handle find_where(Predicate is_wanted) const {
    for (const auto& [address, object] : objects_) {
      if (const auto handle = reinterpret_cast<Handle>(address); is_wanted(handle, object)) {
        return handle;
      }
    }
    return nullptr;
  }
  bool remove(Handle handle) { return objects_.erase(reinterpret_cast<std::uintptr_t>(handle)) == 1; }
  [[nodiscard]] std::size_t size() const { return objects_.size(); }

 private:
  std::uintptr_t next_ = 0x1000;
  std::map<std::uintptr_t, Object> objects_;
};

}  // namespace hcp::software_gpu
