#include "src/job/problem_shape.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>

#include "src/job/mask_options.hpp"

namespace hcp {
namespace {

/// The product, or nothing if it does not fit in 63 bits. Factors are at least 1.
std::optional<std::int64_t> product_of(std::initializer_list<std::int64_t> factors) {
  std::int64_t product = 1;
  for (const std::int64_t factor : factors) {
    if (factor > std::numeric_limits<std::int64_t>::max() / product) {
      return std::nullopt;
    }
    product *= factor;
  }
  return product;
}

void check_channels(const char* option, std::int64_t channels) {
  if (channels < 8 || channels > 256 || channels % 8 != 0) {
    throw std::invalid_argument{std::string{"--"} + option + " " + std::to_string(channels) +
                                " is not possible; head dimensions are 8 to 256 in steps of 8"};
  }
}

void check_multiple(const char* option, std::int64_t value, const char* divisor_option,
                    std::int64_t divisor) {
  if (value % divisor != 0) {
    throw std::invalid_argument{std::string{"--"} + option + " " + std::to_string(value) +
                                " is not a multiple of --" + divisor_option + " " + std::to_string(divisor)};
  }
}

/// Documents of queries (`of` is empty) or of keys ("kv-").
void check_documents(const std::string& of, const std::vector<std::int64_t>& lengths, std::int64_t row) {
  std::int64_t sum = 0;
  for (const std::int64_t length : lengths) {
    if (length < 0) {
      throw std::invalid_argument{"the document length " + std::to_string(length) + " is negative"};
    }
    if (length > std::numeric_limits<std::int64_t>::max() - sum) {
      throw std::invalid_argument{"--" + of + "doc-lengths sum to more than 64 bits hold"};
    }
    sum += length;
  }
  if (sum != row) {
    throw std::invalid_argument{"--" + of + "doc-lengths sum to " + std::to_string(sum) + ", but --" + of +
                                "seq-length is " + std::to_string(row) + "; they have to be equal"};
  }
}

void check_documents(const ProblemShape& shape) {
  check_documents("", shape.doc_lengths, shape.seq_length);
  check_documents("kv-", shape.kv_doc_lengths, shape.kv_seq_length);
  if (shape.kv_doc_lengths.size() != shape.doc_lengths.size()) {
    throw std::invalid_argument{"--kv-doc-lengths are of " + std::to_string(shape.kv_doc_lengths.size()) +
                                " documents, but --doc-lengths of " +
                                std::to_string(shape.doc_lengths.size()) +
                                "; every document of queries needs its keys"};
  }
}

/// Bytes, and pairs of query and key, are counted in 63 bits. The largest tensors anyone makes are fp64
/// copies of all heads and rows; a layer may keep one of each kind.
void check_counts_fit(const ProblemShape& shape, int num_layers) {
  constexpr std::int64_t fp64_bytes = 8;
  constexpr std::int64_t tensors_per_layer = 16;
  const bool bytes_fit =
      product_of({shape.micro_batch_size, std::max(shape.seq_length, shape.kv_seq_length), shape.query_heads,
                  std::max(shape.kv_channels, shape.v_channels), fp64_bytes, tensors_per_layer, num_layers})
          .has_value();
  const bool pairs_fit =
      product_of({shape.micro_batch_size, shape.seq_length, shape.kv_seq_length}).has_value();
  const bool documents_fit =
      product_of({shape.micro_batch_size, static_cast<std::int64_t>(shape.doc_lengths.size())}).has_value();
  if (!bytes_fit || !pairs_fit || !documents_fit) {
    throw std::invalid_argument{
        "the sizes do not fit in 64 bits: --micro-batch-size " + std::to_string(shape.micro_batch_size) +
        ", --seq-length " + std::to_string(shape.seq_length) + ", --kv-seq-length " +
        std::to_string(shape.kv_seq_length) + ", --num-attention-heads " + std::to_string(shape.query_heads) +
        ", --num-layers " + std::to_string(num_layers) + "; make one of them smaller"};
  }
}

void check_shape(const ProblemShape& shape, const JobConfig& config) {
  check_channels("kv-channels", shape.kv_channels);
  check_channels("v-channels", shape.v_channels);
  check_counts_fit(shape, config.num_layers);
  check_documents(shape);
  check_mask_shape(config, shape);
  const std::int64_t tensor_ranks = config.tensor_model_parallel_size;
  check_multiple("num-attention-heads", shape.query_heads, "num-query-groups", shape.kv_heads);
  check_multiple("num-attention-heads", shape.query_heads, "tensor-model-parallel-size", tensor_ranks);
  check_multiple("num-query-groups", shape.kv_heads, "tensor-model-parallel-size", tensor_ranks);
}

void check_agreement(const char* option, const std::optional<std::int64_t>& given, std::int64_t in_file,
                     const std::string& file) {
  if (given && *given != in_file) {
    throw std::invalid_argument{std::string{"--"} + option + " " + std::to_string(*given) +
                                " disagrees with " + file + ", which has " + std::to_string(in_file) +
                                "; leave the option out"};
  }
}

/// What the options say of the documents of keys where `shape` does not know them yet.
void fill_in_kv_documents(ProblemShape& shape, const JobConfig& config) {
  if (!config.kv_doc_lengths.empty()) {
    shape.kv_doc_lengths = config.kv_doc_lengths;
  } else if (shape.kv_seq_length == shape.seq_length) {
    shape.kv_doc_lengths = shape.doc_lengths;
  } else if (shape.doc_lengths.size() == 1) {
    shape.kv_doc_lengths = {shape.kv_seq_length};
  } else {
    throw std::invalid_argument{
        "--kv-doc-lengths is missing: a row has " + std::to_string(shape.kv_seq_length) + " keys for " +
        std::to_string(shape.seq_length) + " queries in " + std::to_string(shape.doc_lengths.size()) +
        " documents; give the keys of each document"};
  }
}

std::vector<std::int64_t> offsets_of(const std::vector<std::int64_t>& lengths) {
  std::vector<std::int64_t> offsets{0};
  for (const std::int64_t length : lengths) {
    offsets.push_back(offsets.back() + length);
  }
  return offsets;
}

}  // namespace

std::vector<std::int64_t> ProblemShape::of_all_rows(const std::vector<std::int64_t>& of_row) const {
  std::vector<std::int64_t> all;
  for (std::int64_t row = 0; row < micro_batch_size; ++row) {
    all.insert(all.end(), of_row.begin(), of_row.end());
  }
  return all;
}

std::vector<std::int64_t> ProblemShape::document_offsets() const {
  return offsets_of(of_all_rows(doc_lengths));
}

std::vector<std::int64_t> ProblemShape::kv_document_offsets() const {
  return offsets_of(of_all_rows(kv_doc_lengths));
}

float ProblemShape::softmax_scale() const {
  return given_softmax_scale.value_or(1.0F / std::sqrt(static_cast<float>(kv_channels)));
}

ProblemShape shape_from_options(const JobConfig& config) {
  std::string missing;
  const auto need = [&](const char* option, const std::optional<std::int64_t>& value) {
    if (!value) {
      missing += (missing.empty() ? "--" : ", --") + std::string{option};
    }
    return value.value_or(0);
  };
  ProblemShape shape;
  shape.seq_length = need("seq-length", config.seq_length);
  shape.query_heads = need("num-attention-heads", config.num_attention_heads);
  shape.kv_channels = need("kv-channels", config.kv_channels);
  if (!missing.empty()) {
    throw std::invalid_argument{"sizes are missing: give " + missing + ", or an input file by --qkv"};
  }
  shape.micro_batch_size = config.micro_batch_size;
  shape.doc_lengths = config.doc_lengths.empty() ? std::vector{shape.seq_length} : config.doc_lengths;
  shape.kv_seq_length = config.kv_seq_length.value_or(shape.seq_length);
  fill_in_kv_documents(shape, config);
  shape.given_softmax_scale = config.softmax_scale;
  shape.kv_heads = config.num_query_groups.value_or(shape.query_heads);
  shape.v_channels = config.v_channels.value_or(shape.kv_channels);
  check_shape(shape, config);
  return shape;
}

ProblemShape shape_from_file(const JobConfig& config, ProblemShape file) {
  const std::string name = config.qkv.value_or("the file");
  check_agreement("seq-length", config.seq_length, file.seq_length, name);
  check_agreement("kv-seq-length", config.kv_seq_length, file.kv_seq_length, name);
  check_agreement("micro-batch-size", config.micro_batch_size, file.micro_batch_size, name);
  check_agreement("num-attention-heads", config.num_attention_heads, file.query_heads, name);
  check_agreement("num-query-groups", config.num_query_groups, file.kv_heads, name);
  check_agreement("kv-channels", config.kv_channels, file.kv_channels, name);
  check_agreement("v-channels", config.v_channels, file.v_channels, name);
  if (file.doc_lengths.empty()) {
    file.doc_lengths = config.doc_lengths.empty() ? std::vector{file.seq_length} : config.doc_lengths;
  } else if (!config.doc_lengths.empty() && config.doc_lengths != file.doc_lengths) {
    throw std::invalid_argument{"--doc-lengths disagree with those in " + name + "; leave the option out"};
  }
  if (file.kv_doc_lengths.empty()) {
    fill_in_kv_documents(file, config);
  } else if (!config.kv_doc_lengths.empty() && config.kv_doc_lengths != file.kv_doc_lengths) {
    throw std::invalid_argument{"--kv-doc-lengths disagree with those in " + name + "; leave the option out"};
  }
  file.given_softmax_scale = config.softmax_scale;
  check_shape(file, config);
  return file;
}

void set_shape(JobConfig& config, const ProblemShape& shape) {
  config.seq_length = shape.seq_length;
  config.micro_batch_size = shape.micro_batch_size;
  config.doc_lengths = shape.doc_lengths;
  config.kv_seq_length.reset();
  config.kv_doc_lengths.clear();
  if (!shape.is_self_attention()) {
    config.kv_seq_length = shape.kv_seq_length;
    config.kv_doc_lengths = shape.kv_doc_lengths;
  }
  config.num_attention_heads = shape.query_heads;
  config.num_query_groups = shape.kv_heads;
  config.kv_channels = shape.kv_channels;
  config.v_channels = shape.v_channels;
}

}  // namespace hcp
