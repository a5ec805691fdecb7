/// Which devices answer, and with what CUDA this program was built. Nothing here throws for want of a device,
/// a driver or CUDA itself.
#pragma once

#include <string>
#include <vector>

#include "kernels/data_type.hpp"

namespace hcp {

struct DeviceSearch {
  std::vector<std::string> names;  ///< of the devices that this process sees and the kernels can run on
  std::vector<int> indices;        ///< of the same, as the runtime counts devices
  /// Of the same, "0000:1b:00.0": what tells the devices of a host apart for every process there, whatever
  /// CUDA_VISIBLE_DEVICES lets it see. Parts of one device (MIG) have the device's.
  std::vector<std::string> pci_bus_ids;
  std::string reason;  ///< why there are none; empty if there is one
};

/// The kernels need compute capability 8.0 and 163 KiB of shared memory for a block, which cards for graphics
/// do not have. Asks the CUDA runtime; not a moment is spent on a device.
[[nodiscard]] DeviceSearch find_devices();

/// Of one device for products of this type: 2 flops of every multiply-add unit (tensor cores for 16 bits,
/// dense matrices) in every cycle of its highest clock.
/// @throws std::runtime_error if it does not answer
/// @source NVIDIA's data sheets of A100, H100 and B200: rate / (multiprocessors x boost clock)
[[nodiscard]] double device_peak_flops(int device, DataType type);

/// "13.0.88 for 80-real 90-real", or why there is none.
[[nodiscard]] std::string cuda_build();

}  // namespace hcp
