/// The devices that this process sees, and which of them a thread has made current.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hcp::software_gpu {

class Devices {
 public:
  /// One, visible.
  Devices() { set(1, std::nullopt); }

  /// @param installed  so many
  /// @param visible    as of CUDA_VISIBLE_DEVICES, by the numbers of the installed ones: a list with commas,
  ///                   of which what follows a number that means no device, or one that was there already, is
  ///                   not looked at. Without it all are visible
  /// @source CUDA C++ programming guide, CUDA environment variables
  void set(int installed, std::optional<std::string_view> visible);

  [[nodiscard]] int count() const { return static_cast<int>(visible_.size()); }
  [[nodiscard]] bool has(int device) const { return device >= 0 && device < count(); }

  /// Number of its bus: no two installed devices have the same.
  [[nodiscard]] int pci_bus(int device) const;
  /// "0000:10:00.0"
  [[nodiscard]] std::string pci_bus_id(int device) const;

 private:
  std::vector<int> visible_;  // numbers of installed devices, by number as the process counts them
};

/// Of the calling thread; 0 at first.
[[nodiscard]] int current_device();
void make_current(int device);

}  // namespace hcp::software_gpu
