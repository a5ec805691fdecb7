#include "kernels/block_checks.hpp"

#include <cmath>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

#include "kernels/data_type.hpp"
#include "kernels/query_rows.hpp"

namespace hcp {
namespace {

std::string shape_of(const ConstTensorView& tensor) {
  return "[" + std::to_string(tensor.rows) + ", " + std::to_string(tensor.heads) + ", " +
         std::to_string(tensor.dim) + ']';
}

void check_dim(std::string_view name, const ConstTensorView& tensor) {
  if (tensor.dim < 8 || tensor.dim > max_head_dim || tensor.dim % 8 != 0) {
    throw std::invalid_argument{"head dim " + std::to_string(tensor.dim) + " of " + std::string{name} +
                                " is not a multiple of 8 from 8 to " + std::to_string(max_head_dim)};
  }
}

void check_types(const ConstTensorView& q, std::string_view name, const ConstTensorView& other) {
  if (other.type != q.type) {
    throw std::invalid_argument{std::string{name} + " is " + std::string{name_of(other.type)} + " and q " +
                                std::string{name_of(q.type)} + "; they must be of one type"};
  }
}

void check_positions(std::string_view name, std::span<const PositionRange> positions, std::int64_t rows) {
  std::int64_t last_end = std::numeric_limits<std::int64_t>::min();
  for (const PositionRange& range : positions) {
    if (range.empty() || range.begin < last_end) {
      throw std::invalid_argument{"positions of " + std::string{name} + " must ascend: [" +
                                  std::to_string(range.begin) + ", " + std::to_string(range.end) +
                                  ") is empty or begins before its predecessor ends"};
    }
    last_end = range.end;
  }
  if (count_of(positions) != rows) {
    throw std::invalid_argument{std::to_string(count_of(positions)) + " positions for the " +
                                std::to_string(rows) + " rows of " + std::string{name}};
  }
  if (rows > std::numeric_limits<std::int32_t>::max()) {
    throw std::invalid_argument{std::to_string(rows) + " rows of " + std::string{name} +
                                " are more than 2^31 - 1; cut the block"};
  }
}

void check_heads(const HeadMap& heads, std::int64_t heads_q, std::int64_t heads_kv) {
  if (heads.queries_per_kv < 1) {
    throw std::invalid_argument{"queries_per_kv is " + std::to_string(heads.queries_per_kv) +
                                "; it must be at least 1"};
  }
  if (heads_q > 0 && (heads.kv_head_of(0) < 0 || heads.kv_head_of(heads_q - 1) >= heads_kv)) {
    throw std::invalid_argument{"query heads use KV heads " + std::to_string(heads.kv_head_of(0)) + " to " +
                                std::to_string(heads.kv_head_of(heads_q - 1)) + " of the " +
                                std::to_string(heads_kv) + " there are"};
  }
}

}  // namespace

void check_block(const BlockRule& rule, const QueryBlock& query, const KvBlock& kv) {
  if (rule.mask == nullptr) {
    throw std::invalid_argument{"the block rule has no mask"};
  }
  check_dim("q", query.q);
  check_dim("v", kv.v);
  if (kv.k.dim != query.q.dim) {
    throw std::invalid_argument{"k " + shape_of(kv.k) + " and q " + shape_of(query.q) +
                                " differ in head dim"};
  }
  check_types(query.q, "k", kv.k);
  check_types(query.q, "v", kv.v);
  if (!(rule.softmax_scale >= 0.0F) || std::isinf(rule.softmax_scale)) {
    throw std::invalid_argument{"the softmax scale is " + std::to_string(rule.softmax_scale) +
                                "; it must be finite and not negative"};
  }
  if (kv.k.rows != kv.v.rows || kv.k.heads != kv.v.heads) {
    throw std::invalid_argument{"k " + shape_of(kv.k) + " and v " + shape_of(kv.v) +
                                " differ in rows or heads"};
  }
  check_positions("q", query.positions, query.q.rows);
  check_positions("k and v", kv.positions, kv.k.rows);
  check_heads(rule.heads, query.q.heads, kv.k.heads);
  if (!query.positions.empty()) {
    check_dropout(rule.dropout, query.positions.front().begin, query.positions.back().end - 1);
  }
}

void check_gradient_block(const BlockRule& rule, const GradientBlock& gradient, const KvBlock& kv) {
  check_block(rule, gradient.query, kv);
  const ConstTensorView& q = gradient.query.q;
  const ConstTensorView& dout = gradient.dout;
  check_types(q, "dout", dout);
  if (dout.rows != q.rows || dout.heads != q.heads || dout.dim != kv.v.dim) {
    throw std::invalid_argument{"dout " + shape_of(dout) + " must have the rows and heads of q " +
                                shape_of(q) + " and the head dim of v " + shape_of(kv.v)};
  }
}

void check_row_dot(const ConstTensorView& out, const ConstTensorView& dout) {
  if (out.rows != dout.rows || out.heads != dout.heads || out.dim != dout.dim) {
    throw std::invalid_argument{"row_dot: out " + shape_of(out) + " and dout " + shape_of(dout) +
                                " differ in shape"};
  }
}

void check_add_rows(const BasicRowTable<std::byte>& target) {
  if (target.type != DataType::fp32) {
    throw std::invalid_argument{"add_rows: the target is " + std::string{name_of(target.type)} +
                                "; sums are kept in fp32"};
  }
}

}  // namespace hcp
