#include <hdf5.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <vector>

#include "src/job/input.hpp"
#include "src/job/input_dataset.hpp"

namespace hcp {
namespace {

constexpr std::int64_t elements_per_read = std::int64_t{1} << 22;  // 16 MiB of fp32

/// [tokens, heads, dim] of floating point numbers.
InputDataset open_tensor(const std::string& path, const char* name, hid_t file) {
  if (!has_dataset(file, name)) {
    refuse_input(path, std::string{"there is no dataset "} + name +
                           "; q, k and v are needed, [tokens, heads, dim] each");
  }
  InputDataset dataset{path, name, file};
  dataset.require_type(H5T_FLOAT, {2, 4}, "floating point of 2 or 4 bytes");
  dataset.require_rank(3, "[tokens, heads, dim], none of them 0");
  return dataset;
}

/// Lengths that sum to `tokens`, those of the tensors; none where there is no such dataset.
std::vector<std::int64_t> read_doc_lengths(const std::string& path, const char* name, hid_t file,
                                           std::int64_t tokens) {
  if (!has_dataset(file, name)) {
    return {};
  }
  const InputDataset dataset{path, name, file};
  dataset.require_integers();
  dataset.require_rank(1, "[documents], at least one");
  std::vector<std::int64_t> lengths = dataset.read_integers();
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
    const std::int64_t kv_tokens = k_.extent(0);
    const auto shape_of = [](std::initializer_list<std::int64_t> extents) {
      return std::vector<hsize_t>(extents.begin(), extents.end());
    };
    k_.require_shape(shape_of({kv_tokens, k_.extent(1), q_.extent(2)}), "[kv tokens, kv heads, dim of q]");
    v_.require_shape(shape_of({kv_tokens, k_.extent(1), v_.extent(2)}), "[tokens of k, heads of k, v dim]");
    for (const auto& [name, dataset] : {std::pair{"out", &out_}, std::pair{"dout", &dout_}}) {
      if (has_dataset(file_.get(), name)) {
        dataset->emplace(open_tensor(path, name, file_.get()));
        (*dataset)->require_shape(shape_of({tokens, heads, v_.extent(2)}), "[tokens, heads of q, v dim]");
      }
    }
    shape_ = {.seq_length = tokens,
              .micro_batch_size = 1,
              .doc_lengths = read_doc_lengths(path, "doc_lengths", file_.get(), tokens),
              .kv_seq_length = kv_tokens,
              .kv_doc_lengths = read_doc_lengths(path, "kv_doc_lengths", file_.get(), kv_tokens),
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
