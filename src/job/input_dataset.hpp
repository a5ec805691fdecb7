/// Datasets of the HDF5 files that a user gives, for the sources that read them (input*.cpp).
///
/// Everything here throws std::invalid_argument that names the file, the dataset, and what it has to be.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "src/trace/hdf5_handle.hpp"

namespace hcp {

[[noreturn]] void refuse_input(const std::string& path, const std::string& reason);

[[nodiscard]] Hdf5File open_for_reading(const std::string& path);
[[nodiscard]] bool has_dataset(hid_t file, const char* name);

/// One dataset of an open file.
class InputDataset {
 public:
  InputDataset(std::string path, std::string name, hid_t file);

  [[nodiscard]] std::int64_t extent(std::size_t i) const { return static_cast<std::int64_t>(shape_.at(i)); }
  [[nodiscard]] const std::string& name() const { return name_; }

  /// Says what is wrong with the dataset, unless `right`.
  void require(bool right, const std::string& complaint) const;
  void require_type(H5T_class_t kind, std::initializer_list<std::size_t> bytes,
                    const std::string& expected) const;
  void require_integers() const { require_type(H5T_INTEGER, {1, 2, 4, 8}, "integers"); }
  /// @param meaning of the dimensions, none of which may be 0
  void require_rank(std::size_t rank, const std::string& meaning) const;
  void require_shape(const std::vector<hsize_t>& expected, const std::string& meaning) const;

  /// Reads the block of `count` elements from `first` on, one number per dimension.
  void read(hid_t memory_type, const std::vector<hsize_t>& first, const std::vector<hsize_t>& count,
            void* target) const;
  /// All elements, in row-major order.
  [[nodiscard]] std::vector<std::int64_t> read_integers() const;

 private:
  std::string path_;
  std::string name_;
  Hdf5Dataset dataset_;
  std::vector<hsize_t> shape_;
};

}  // namespace hcp
