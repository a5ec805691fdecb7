#include "src/job/input_dataset.hpp"

#include <hdf5.h>

#include <algorithm>
#include <filesystem>
#include <stdexcept>
#include <utility>

namespace hcp {
namespace {

/// Of decompressed chunks, per dataset: verification reads the same rows head by head.
constexpr std::size_t chunk_cache_bytes = std::size_t{32} << 20;
constexpr std::size_t chunk_cache_slots = 12421;  // prime, and about 100 times the chunks that fit

std::string text_of(const std::vector<hsize_t>& shape) {
  std::string text;
  for (const hsize_t extent : shape) {
    text += (text.empty() ? "" : ", ") + std::to_string(extent);
  }
  return "[" + text + "]";
}

hid_t open_dataset(hid_t file, const std::string& name) {
  const Hdf5PropertyList access{H5Pcreate(H5P_DATASET_ACCESS)};
  if (access.get() < 0 || H5Pset_chunk_cache(access.get(), chunk_cache_slots, chunk_cache_bytes,
                                             H5D_CHUNK_CACHE_W0_DEFAULT) < 0) {
    throw std::runtime_error{"HDF5 cannot make the property list of a dataset"};
  }
  return H5Dopen2(file, name.c_str(), access.get());
}

}  // namespace

void refuse_input(const std::string& path, const std::string& reason) {
  throw std::invalid_argument{"input file " + path + ": " + reason};
}

Hdf5File open_for_reading(const std::string& path) {
  silence_hdf5();
  if (!std::filesystem::exists(path)) {
    refuse_input(path, "there is no such file");
  }
  if (!std::filesystem::is_regular_file(path)) {
    refuse_input(path, "it is not a file");
  }
  const htri_t is_hdf5 = H5Fis_hdf5(path.c_str());
  if (is_hdf5 < 0) {
    refuse_input(path, "it cannot be opened; it has to be readable");
  }
  if (is_hdf5 == 0) {
    refuse_input(path, "it is not an HDF5 file");
  }
  // Best-effort locking: some parallel file systems are mounted without locks.
  const Hdf5PropertyList access{H5Pcreate(H5P_FILE_ACCESS)};
  if (access.get() < 0 || H5Pset_file_locking(access.get(), true, true) < 0) {
    throw std::runtime_error{"HDF5 cannot make the property list of an input file"};
  }
  Hdf5File file{H5Fopen(path.c_str(), H5F_ACC_RDONLY, access.get())};
  if (file.get() < 0) {
    refuse_input(
        path,
        "it is an HDF5 file that cannot be opened; it is truncated, damaged or open for writing elsewhere");
  }
  return file;
}

bool has_dataset(hid_t file, const char* name) {
  return H5Lexists(file, name, H5P_DEFAULT) > 0;
}

InputDataset::InputDataset(std::string path, std::string name, hid_t file)
    : path_{std::move(path)}, name_{std::move(name)}, dataset_{open_dataset(file, name_)} {
  require(dataset_.get() >= 0, "is not a dataset");
  const Hdf5Dataspace space{H5Dget_space(dataset_.get())};
  require(space.get() >= 0, "has no readable shape");
  const int rank = H5Sget_simple_extent_ndims(space.get());
  require(rank >= 0, "has no readable shape");
  shape_.resize(static_cast<std::size_t>(rank));
  require(rank == 0 || H5Sget_simple_extent_dims(space.get(), shape_.data(), nullptr) == rank,
          "has no readable shape");
}

void InputDataset::require(bool right, const std::string& complaint) const {
  if (!right) {
    refuse_input(path_, "dataset " + name_ + " " + complaint);
  }
}

void InputDataset::require_type(H5T_class_t kind, std::initializer_list<std::size_t> bytes,
                                const std::string& expected) const {
  const Hdf5Datatype type{H5Dget_type(dataset_.get())};
  require(type.get() >= 0, "has no readable type");
  const std::size_t size = H5Tget_size(type.get());
  require(H5Tget_class(type.get()) == kind && std::ranges::find(bytes, size) != bytes.end(),
          "has elements of another type (" + std::to_string(size) + " bytes each); use " + expected);
}

void InputDataset::require_rank(std::size_t rank, const std::string& meaning) const {
  require(shape_.size() == rank && std::ranges::find(shape_, hsize_t{0}) == shape_.end(),
          "has the shape " + text_of(shape_) + "; it has to be " + meaning);
}

void InputDataset::require_shape(const std::vector<hsize_t>& expected, const std::string& meaning) const {
  require(shape_ == expected, "has the shape " + text_of(shape_) + "; with the other datasets it has to be " +
                                  meaning + " = " + text_of(expected));
}

void InputDataset::read(hid_t memory_type, const std::vector<hsize_t>& first,
                        const std::vector<hsize_t>& count, void* target) const {
  const Hdf5Dataspace in_file{H5Dget_space(dataset_.get())};
  const Hdf5Dataspace in_memory{H5Screate_simple(static_cast<int>(count.size()), count.data(), nullptr)};
  const bool read =
      in_file.get() >= 0 && in_memory.get() >= 0 &&
      H5Sselect_hyperslab(in_file.get(), H5S_SELECT_SET, first.data(), nullptr, count.data(), nullptr) >= 0 &&
      H5Dread(dataset_.get(), memory_type, in_memory.get(), in_file.get(), H5P_DEFAULT, target) >= 0;
  require(read, "cannot be read from row " + std::to_string(first.front()) +
                    " on; the file is damaged, or its compression is not available here");
}

std::vector<std::int64_t> InputDataset::read_integers() const {
  hsize_t elements = 1;
  for (const hsize_t extent : shape_) {
    elements *= extent;
  }
  std::vector<std::int64_t> values(elements);
  read(H5T_NATIVE_INT64, std::vector<hsize_t>(shape_.size(), 0), shape_, values.data());
  return values;
}

}  // namespace hcp
