#include "tests/kernels/refused_arguments.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tests/kernels/dense_attention.hpp"

namespace hcp::test {
namespace {

/// Of a small valid call, to be spoilt one at a time.
struct Arguments {
  AttentionCase setup{.doc_lengths = {20}};
  Operands operands = random_operands(setup, 1);
  AttentionMask mask = setup.mask();
  PositionSet positions{{0, 20}};
  BlockRule rule{&mask, setup.heads, setup.softmax_scale()};
  QueryBlock query{operands.q.view(), positions};
  KvBlock kv{operands.k.view(), operands.v.view(), positions};
  ConstTensorView dout = operands.dout.view();
  std::vector<float> out = std::vector<float>(640);
  std::vector<float> lse = std::vector<float>(40, -std::numeric_limits<float>::infinity());
  std::vector<float> sum = std::vector<float>(40);

  void backward(AttentionKernel& kernel) {
    std::vector<float> dq(640), dk(640), dv(640);
    kernel.backward_block(rule, {query, dout, lse.data(), lse.data(), dq.data()}, kv, {dk.data(), dv.data()});
  }
  void forward(AttentionKernel& kernel) {
    kernel.forward_block(rule, query, kv, {out.data(), lse.data(), sum.data()});
  }
};

}  // namespace

void expect_refusals(AttentionKernel& kernel) {
  static const PositionSet too_few{{0, 19}};
  static const PositionSet descending{{10, 20}, {0, 10}};
  const std::vector<std::pair<std::string, std::function<void(Arguments&)>>> faults{
      {"no mask", [](Arguments& a) { a.rule.mask = nullptr; }},
      {"negative scale", [](Arguments& a) { a.rule.softmax_scale = -1.0F; }},
      {"NaN scale", [](Arguments& a) { a.rule.softmax_scale = std::nanf(""); }},
      {"k of another type", [](Arguments& a) { a.kv.k.type = DataType::bf16; }},
      {"v of another type", [](Arguments& a) { a.kv.v.type = DataType::fp16; }},
      {"zero queries per KV head", [](Arguments& a) { a.rule.heads.queries_per_kv = 0; }},
      {"KV head before the first", [](Arguments& a) { a.rule.heads.first_kv_head = 1; }},
      {"KV head after the last", [](Arguments& a) { a.rule.heads.first_query_head = 1; }},
      {"head dim 12", [](Arguments& a) { a.query.q.dim = a.kv.k.dim = 12; }},
      {"head dim 264", [](Arguments& a) { a.query.q.dim = a.kv.k.dim = 264; }},
      {"head dim 0 of v", [](Arguments& a) { a.kv.v.dim = a.dout.dim = 0; }},
      {"q and k differ in dim", [](Arguments& a) { a.kv.k.dim = 8; }},
      {"k and v differ in rows", [](Arguments& a) { a.kv.v.rows = 19; }},
      {"k and v differ in heads", [](Arguments& a) { a.kv.v.heads = 1; }},
      {"too few query positions", [](Arguments& a) { a.query.positions = too_few; }},
      {"too few key positions", [](Arguments& a) { a.kv.positions = too_few; }},
      {"descending positions", [](Arguments& a) { a.kv.positions = descending; }},
  };
  for (const auto& [name, spoil] : faults) {
    SCOPED_TRACE(name);
    Arguments arguments;
    spoil(arguments);
    EXPECT_THROW(arguments.forward(kernel), std::invalid_argument);
    EXPECT_THROW(arguments.backward(kernel), std::invalid_argument);
  }
  Arguments arguments;
  arguments.dout.heads = 1;
  EXPECT_THROW(arguments.backward(kernel), std::invalid_argument);
  const ConstTensorView q = arguments.query.q;
  EXPECT_THROW(kernel.row_dot(q, {q.data, q.type, q.rows, q.heads, 8}, arguments.lse.data()),
               std::invalid_argument);
  auto* const target = reinterpret_cast<std::byte*>(arguments.out.data());
  EXPECT_THROW(kernel.add_rows({q.data, q.type, 8}, {target, DataType::bf16, 8}, 1, 8),
               std::invalid_argument);
}

void expect_valid_call_passes(AttentionKernel& kernel) {
  Arguments arguments;
  EXPECT_NO_THROW(arguments.forward(kernel));
  EXPECT_NO_THROW(arguments.backward(kernel));
}

}  // namespace hcp::test
