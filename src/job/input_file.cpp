#include <hdf5.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <vector>

#include "src/job/input.hpp"
#include "src/trace/hdf5_handle.hpp"

namespace hcp {
namespace {

constexpr std::int64_t elements_per_read = std::int64_t{1} << 22;  // 16 MiB of fp32

/// Of decompressed chunks, per dataset: verification reads the same rows head by head.
constexpr std::size_t chunk_cache_bytes = std::size_t{32} << 20;
constexpr std::size_t chunk_cache_slots = 12421;  // prime, and about 100 times the chunks that fit

[[noreturn]] void refuse(const std::string& path, const std::string& reason) {
  throw std::invalid_argument{"input file " + path + ": " + reason};
}

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

/// One dataset of an open file.
class InputDataset {
 public:
  InputDataset(std::string path, std::string name, hid_t file)
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

  [[nodiscard]] std::int64_t extent(std::size_t i) const { return static_cast<std::int64_t>(shape_.at(i)); }
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] const std::string& name() const { return name_; }

  /// @throws std::invalid_argument that says what is wrong with the dataset, unless `right`
  void require(bool right, const std::string& complaint) const {
    if (!right) {
      refuse(path_, "dataset " + name_ + " " + complaint);
    }
  }

  void require_type(H5T_class_t kind, std::initializer_list<std::size_t> bytes,
                    const std::string& expected) const {
    const Hdf5Datatype type{H5Dget_type(dataset_.get())};
    require(type.get() >= 0, "has no readable type");
    const std::size_t size = H5Tget_size(type.get());
    require(H5Tget_class(type.get()) == kind && std::ranges::find(bytes, size) != bytes.end(),
            "has elements of another type (" + std::to_string(size) + " bytes each); use " + expected);
  }

  void require_rank(std::size_t rank, const std::string& meaning) const {
    require(shape_.size() == rank && std::ranges::find(shape_, hsize_t{0}) == shape_.end(),
            "has the shape " + text_of(shape_) + "; it has to be " + meaning);
  }

  void require_shape(const std::vector<hsize_t>& expected, const std::string& meaning) const {
    require(shape_ == expected, "has the shape " + text_of(shape_) +
                                    "; with the other datasets it has to be " + meaning + " = " +
                                    text_of(expected));
  }

  /// Reads the block of `count` elements from `first` on, one number per dimension.
  void read(hid_t memory_type, const std::vector<hsize_t>& first, const std::vector<hsize_t>& count,
            void* target) const {
    const Hdf5Dataspace in_file{H5Dget_space(dataset_.get())};
    const Hdf5Dataspace in_memory{H5Screate_simple(static_cast<int>(count.size()), count.data(), nullptr)};
    const bool read =
        in_file.get() >= 0 && in_memory.get() >= 0 &&
        H5Sselect_hyperslab(in_file.get(), H5S_SELECT_SET, first.data(), nullptr, count.data(), nullptr) >=
            0 &&
        H5Dread(dataset_.get(), memory_type, in_memory.get(), in_file.get(), H5P_DEFAULT, target) >= 0;
    require(read, "cannot be read from row " + std::to_string(first.front()) +
                      " on; the file is damaged, or its compression is not available here");
  }

 private:
  std::string path_;
  std::string name_;
  Hdf5Dataset dataset_;
  std::vector<hsize_t> shape_;
};

Hdf5File open_for_reading(const std::string& path) {
  silence_hdf5();
  if (!std::filesystem::exists(path)) {
    refuse(path, "there is no such file");
  }
  if (!std::filesystem::is_regular_file(path)) {
    refuse(path, "it is not a file");
  }
  const htri_t is_hdf5 = H5Fis_hdf5(path.c_str());
  if (is_hdf5 < 0) {
    refuse(path, "it cannot be opened; it has to be readable");
  }
  if (is_hdf5 == 0) {
    refuse(path, "it is not an HDF5 file");
  }
  // Best-effort locking: some parallel file systems are mounted without locks.
  const Hdf5PropertyList access{H5Pcreate(H5P_FILE_ACCESS)};
  if (access.get() < 0 || H5Pset_file_locking(access.get(), true, true) < 0) {
    throw std::runtime_error{"HDF5 cannot make the property list of an input file"};
  }
  Hdf5File file{H5Fopen(path.c_str(), H5F_ACC_RDONLY, access.get())};
  if (file.get() < 0) {
    refuse(
        path,
        "it is an HDF5 file that cannot be opened; it is truncated, damaged or open for writing elsewhere");
  }
  return file;
}

bool has_dataset(hid_t file, const char* name) {
  return H5Lexists(file, name, H5P_DEFAULT) > 0;
}

/// [tokens, heads, dim] of floating point numbers.
InputDataset open_tensor(const std::string& path, const char* name, hid_t file) {
  if (!has_dataset(file, name)) {
    refuse(path,
           std::string{"there is no dataset "} + name + "; q, k and v are needed, [tokens, heads, dim] each");
  }
  InputDataset dataset{path, name, file};
  dataset.require_type(H5T_FLOAT, {2, 4}, "floating point of 2 or 4 bytes");
  dataset.require_rank(3, "[tokens, heads, dim], none of them 0");
  return dataset;
}

std::vector<std::int64_t> read_doc_lengths(const std::string& path, hid_t file, std::int64_t tokens) {
  if (!has_dataset(file, "doc_lengths")) {
    return {};
  }
  const InputDataset dataset{path, "doc_lengths", file};
  dataset.require_type(H5T_INTEGER, {1, 2, 4, 8}, "integers");
  dataset.require_rank(1, "[documents], at least one");
  std::vector<std::int64_t> lengths(static_cast<std::size_t>(dataset.extent(0)));
  dataset.read(H5T_NATIVE_INT64, {0}, {lengths.size()}, lengths.data());
  std::int64_t sum = 0;
  for (const std::int64_t length : lengths) {
    dataset.require(0 <= length && length <= tokens - sum,
                    "holds the length " + std::to_string(length) + " where " + std::to_string(tokens - sum) +
                        " of " + std::to_string(tokens) + " tokens are left");
    sum += length;
  }
  dataset.require(sum == tokens, "sums to " + std::to_string(sum) + "; the tensors have " +
                                     std::to_string(tokens) + " tokens");
  return lengths;
}

class FileInput final : public InputSource {
 public:
  FileInput(const std::string& path, std::uint64_t seed)
      : file_{open_for_reading(path)},
        q_{open_tensor(path, "q", file_.get())},
        k_{open_tensor(path, "k", file_.get())},
        v_{open_tensor(path, "v", file_.get())},
        synthetic_{make_synthetic_input(seed)} {
    const auto [tokens, heads] = std::pair{q_.extent(0), q_.extent(1)};
    const auto shape_of = [](std::initializer_list<std::int64_t> extents) {
      return std::vector<hsize_t>(extents.begin(), extents.end());
    };
    k_.require_shape(shape_of({tokens, k_.extent(1), q_.extent(2)}), "[tokens, kv heads, dim of q]");
    v_.require_shape(shape_of({tokens, k_.extent(1), v_.extent(2)}), "[tokens, heads of k, v dim]");
    for (const auto& [name, dataset] : {std::pair{"out", &out_}, std::pair{"dout", &dout_}}) {
      if (has_dataset(file_.get(), name)) {
        dataset->emplace(open_tensor(path, name, file_.get()));
        (*dataset)->require_shape(shape_of({tokens, heads, v_.extent(2)}), "[tokens, heads of q, v dim]");
      }
    }
    shape_ = {.seq_length = tokens,
              .micro_batch_size = 1,
              .doc_lengths = read_doc_lengths(path, file_.get(), tokens),
              .query_heads = heads,
              .kv_heads = k_.extent(1),
              .kv_channels = q_.extent(2),
              .v_channels = v_.extent(2)};
  }

  [[nodiscard]] const ProblemShape& shape() const { return shape_; }
  [[nodiscard]] bool has_out() const override { return out_.has_value(); }

  void fill(InputTensor tensor, const PositionSet& rows, std::int64_t first_head, int layer,
            TensorView target) const override {
    if (tensor == InputTensor::dout && !dout_) {
      return synthetic_->fill(tensor, rows, first_head, layer, target);
    }
    const InputDataset& dataset = dataset_of(tensor);
    if (target.rows != count_of(rows) || first_head < 0 || first_head + target.heads > dataset.extent(1) ||
        target.dim != dataset.extent(2)) {
      throw std::logic_error{"the tensor does not fit dataset " + dataset.name()};
    }
    const std::int64_t rows_per_read = std::max<std::int64_t>(1, elements_per_read / target.row_elements());
    std::int64_t row = 0;
    for (const PositionRange range : rows) {
      for (std::int64_t token = range.begin; token < range.end; token += rows_per_read) {
        const std::int64_t count = std::min(rows_per_read, range.end - token);
        read_rows(dataset, token, first_head, target.row_slice(row, count));
        row += count;
      }
    }
  }

 private:
  [[nodiscard]] const InputDataset& dataset_of(InputTensor tensor) const {
    switch (tensor) {
      case InputTensor::q:
        return q_;
      case InputTensor::k:
        return k_;
      case InputTensor::v:
        return v_;
      case InputTensor::dout:
        return dout_.value();
      case InputTensor::out:
        if (out_) {
          return *out_;
        }
    }
    throw std::logic_error{"the input file has no such tensor"};
  }

  static void read_rows(const InputDataset& dataset, std::int64_t token, std::int64_t first_head,
                        TensorView target) {
    std::vector<float> values(static_cast<std::size_t>(target.rows * target.row_elements()));
    const auto unsigned_of = [](std::int64_t extent) { return static_cast<hsize_t>(extent); };
    dataset.read(H5T_NATIVE_FLOAT, {unsigned_of(token), unsigned_of(first_head), 0},
                 {unsigned_of(target.rows), unsigned_of(target.heads), unsigned_of(target.dim)},
                 values.data());
    const auto bad = std::ranges::find_if(values, [&](float value) {
      return !std::isfinite(value) || (target.type == DataType::fp16 && std::abs(value) >= 65520.0F);
    });
    if (bad != values.end()) {
      const std::int64_t place = bad - values.begin();
      dataset.require(false, "holds " + std::to_string(*bad) + " at [" +
                                 std::to_string(token + place / target.row_elements()) + ", " +
                                 std::to_string(first_head + place / target.dim % target.heads) + ", " +
                                 std::to_string(place % target.dim) + "]; values have to be finite in " +
                                 std::string{name_of(target.type)});
    }
    round_to(target.type, values.data(), target.data, values.size());
  }

  Hdf5File file_;
  InputDataset q_;
  InputDataset k_;
  InputDataset v_;
  std::optional<InputDataset> dout_;
  std::optional<InputDataset> out_;
  std::unique_ptr<InputSource> synthetic_;
  ProblemShape shape_;
};

}  // namespace

InputFile open_input_file(const std::string& path, std::uint64_t seed) {
  auto source = std::make_unique<FileInput>(path, seed);
  ProblemShape shape = source->shape();
  return {std::move(shape), std::move(source)};
}

}  // namespace hcp
