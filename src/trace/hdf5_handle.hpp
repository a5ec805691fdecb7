/// Ownership and errors of the HDF5 C API, for the sources of this room only.
#pragma once

#include <hdf5.h>

#include <string>
#include <utility>

namespace hcp {

/// Owns one HDF5 id. The closing function is part of the type, so that an id cannot be closed by the wrong
/// call. Move-only.
template <herr_t (*Close)(hid_t)>
class Hdf5Handle {
 public:
  Hdf5Handle() = default;
  explicit Hdf5Handle(hid_t owned) noexcept : id_{owned} {}
  Hdf5Handle(Hdf5Handle&& other) noexcept : id_{std::exchange(other.id_, H5I_INVALID_HID)} {}
  Hdf5Handle& operator=(Hdf5Handle&& other) noexcept {
    std::swap(id_, other.id_);
    return *this;
  }
  ~Hdf5Handle() {
    if (id_ >= 0) Close(id_);  // an error here has no one to tell: what mattered was flushed before
  }
  [[nodiscard]] hid_t get() const noexcept { return id_; }
  /// Leaves the id open for ever.
  void abandon() noexcept { id_ = H5I_INVALID_HID; }

 private:
  hid_t id_ = H5I_INVALID_HID;
};

using Hdf5File = Hdf5Handle<H5Fclose>;
using Hdf5Dataset = Hdf5Handle<H5Dclose>;
using Hdf5Dataspace = Hdf5Handle<H5Sclose>;
using Hdf5Datatype = Hdf5Handle<H5Tclose>;
using Hdf5Attribute = Hdf5Handle<H5Aclose>;
using Hdf5PropertyList = Hdf5Handle<H5Pclose>;

/// Stops the library from printing its errors: they travel in exceptions.
void silence_hdf5();

/// Returns `result` (an id or a status) unless it is negative.
///
/// @param call what was done and by which call, "writing /events of run.h5 (H5Dwrite)"
/// @throws TraceError with `call` and the operating system's reason, or HDF5's error stack if it gave none
hid_t check_hdf5(hid_t result, const std::string& call);

}  // namespace hcp
