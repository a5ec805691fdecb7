#include "tests/mutation/interpreted_kernel.hpp"

#include <cstring>
#include <utility>

#include "kernels/cuda/backward_kernels.hpp"
#include "kernels/cuda/forward_kernels.hpp"
#include "kernels/cuda/row_kernel_entries.hpp"
#include "kernels/cuda/row_parameters.hpp"

namespace hcp::mutation {
namespace {

constexpr std::int64_t float_bytes = sizeof(float);

template <typename Element>
const Element* upload(DeviceCopies& copies, const Element* table, std::int64_t count, const char* name) {
  return copies.input(table, count * static_cast<std::int64_t>(sizeof(Element)), name);
}

cuda::BlockShape upload(DeviceCopies& copies, cuda::BlockShape shape) {
  shape.row_keys = upload(copies, shape.row_keys, shape.rows, "row_keys");
  return shape;
}

cuda::DropoutTable upload(DeviceCopies& copies, cuda::DropoutTable table, const cuda::BlockShape& shape) {
  if (table.documents > 0) {
    table.rows = upload(copies, table.rows, shape.rows, "dropout rows");
    table.streams =
        upload(copies, table.streams, std::int64_t{shape.heads_q} * table.documents, "dropout streams");
    table.key_positions = upload(copies, table.key_positions, shape.keys, "key positions");
  }
  return table;
}

cuda::TileSchedule upload(DeviceCopies& copies, const test::ScheduleTables& tables) {
  return {upload(copies, tables.work.data(), std::ssize(tables.work), "work"),
          upload(copies, tables.visits.data(), std::ssize(tables.visits), "visits")};
}

const std::byte* upload(DeviceCopies& copies, const ConstTensorView& tensor, const char* name) {
  return copies.input(tensor.data, tensor.bytes(), name);
}

/// A table from its first element to its last.
template <typename Byte>
std::int64_t bytes_of(const BasicRowTable<Byte>& table, std::int64_t rows, std::int64_t elements) {
  return rows == 0 || elements == 0
             ? 0
             : ((rows - 1) * table.stride + elements) * static_cast<std::int64_t>(size_of(table.type));
}

cuda::RowTablesParameters upload(DeviceCopies& copies, const BasicRowTable<const std::byte>& source,
                                 const BasicRowTable<std::byte>& target, std::int64_t rows,
                                 std::int64_t elements) {
  return {copies.input(source.data, bytes_of(source, rows, elements), "source"),
          copies.output(target.data, bytes_of(target, rows, elements), "target"),
          source.stride,
          target.stride,
          rows,
          elements};
}

}  // namespace

InterpretedKernel::InterpretedKernel(const std::string& text, std::string entry)
    : module_{ptx::Module::load(text)},
      kernel_{module_.kernel(module_.kernel_names().at(0))},
      entry_{std::move(entry)} {}

template <typename Parameters>
void InterpretedKernel::launch(const cuda::KernelEntry& entry, std::size_t blocks_x, std::int64_t blocks_y,
                               const Parameters& parameters, DeviceCopies& copies) {
  if (entry.name != entry_ || blocks_x == 0) {
    return;
  }
  std::vector<std::byte> bytes(sizeof(Parameters));
  std::memcpy(bytes.data(), &parameters, sizeof(Parameters));
  ptx::RunOptions options;
  options.max_findings = 1;
  options.max_warp_instructions = max_warp_instructions_;
  const ptx::Report report =
      ptx::run({.kernel = kernel_,
                .grid = {static_cast<std::uint32_t>(blocks_x), static_cast<std::uint32_t>(blocks_y), 1},
                .block = {static_cast<std::uint32_t>(entry.threads), 1, 1},
                .dynamic_shared_bytes = static_cast<std::uint32_t>(entry.shared_bytes),
                .parameters = bytes},
               module_, copies.memory(), options);
  if (!report.findings.empty()) {
    throw Found{ptx::to_string(report.findings.front())};
  }
  counters_.add(report.counters);
  copies.download();
}

void InterpretedKernel::forward_block(const BlockRule& rule, const QueryBlock& query, const KvBlock& kv,
                                      const RunningOutput& running) {
  const test::DeviceProblem problem{rule, query, kv};
  const cuda::BlockShape shape = problem.shape();
  const cuda::KernelEntry& entry =
      cuda::forward_kernel_entry(kv.k.type, shape.dim_qk, shape.dim_v, rule.dropout.drops());
  const test::ScheduleTables tables = problem.query_schedule(entry.own_rows, entry.other_rows);
  DeviceCopies copies;
  const std::int64_t states = query.q.rows * query.q.heads;
  launch(entry, tables.work.size(), query.q.heads,
         cuda::ForwardParameters{.shape = upload(copies, shape),
                                 .schedule = upload(copies, tables),
                                 .dropout = upload(copies, problem.dropout(), shape),
                                 .q = upload(copies, query.q, "q"),
                                 .k = upload(copies, kv.k, "k"),
                                 .v = upload(copies, kv.v, "v"),
                                 .out = copies.output(running.out, states * kv.v.dim * float_bytes, "out"),
                                 .max = copies.output(running.max, states * float_bytes, "max"),
                                 .sum = copies.output(running.sum, states * float_bytes, "sum")},
         copies);
}

void InterpretedKernel::backward_block(const BlockRule& rule, const GradientBlock& gradient,
                                       const KvBlock& kv, const KvGradient& kv_gradient) {
  const test::DeviceProblem problem{rule, gradient.query, kv};
  const cuda::BlockShape shape = problem.shape();
  const ConstTensorView& q = gradient.query.q;
  const std::int64_t states = q.rows * q.heads;
  const std::int64_t key_rows = kv.k.rows * kv.k.heads;
  DeviceCopies copies;
  cuda::BackwardParameters parameters{
      .shape = upload(copies, shape),
      .schedule = {},
      .dropout = upload(copies, problem.dropout(), shape),
      .q = upload(copies, q, "q"),
      .k = upload(copies, kv.k, "k"),
      .v = upload(copies, kv.v, "v"),
      .dout = upload(copies, gradient.dout, "dout"),
      .lse = upload(copies, gradient.lse, states, "lse"),
      .delta = upload(copies, gradient.delta, states, "delta"),
      .dq = copies.output(gradient.dq, states * q.dim * float_bytes, "dq"),
      .dk = copies.output(kv_gradient.dk, key_rows * kv.k.dim * float_bytes, "dk"),
      .dv = copies.output(kv_gradient.dv, key_rows * kv.v.dim * float_bytes, "dv")};
  const bool drops = rule.dropout.drops();
  const cuda::KernelEntry& of_queries =
      cuda::backward_queries_kernel_entry(q.type, shape.dim_qk, shape.dim_v, drops);
  const test::ScheduleTables query_tables =
      problem.query_schedule(of_queries.own_rows, of_queries.other_rows);
  parameters.schedule = upload(copies, query_tables);
  launch(of_queries, query_tables.work.size(), q.heads, parameters, copies);
  for (const cuda::KernelEntry& of_keys :
       cuda::backward_keys_kernel_entries(q.type, shape.dim_qk, shape.dim_v, drops)) {
    const test::ScheduleTables key_tables = problem.key_schedule(of_keys.own_rows, of_keys.other_rows);
    parameters.schedule = upload(copies, key_tables);
    launch(of_keys, key_tables.work.size(), kv.k.heads, parameters, copies);
  }
}

void InterpretedKernel::max_logits(const float* max, std::int64_t rows, std::int64_t heads, float* logits) {
  DeviceCopies copies;
  launch_rows(cuda::max_logits_kernel_entry(),
              cuda::MaxLogitsParameters{upload(copies, max, rows * heads, "max"), rows,
                                        static_cast<std::int32_t>(heads),
                                        copies.output(logits, heads * float_bytes, "logits")},
              copies);
}

void InterpretedKernel::finish_forward(const RunningOutput& running, std::int64_t rows, std::int64_t heads,
                                       std::int64_t dim_v, float* lse, const float* sinks) {
  DeviceCopies copies;
  const std::int64_t states = rows * heads;
  float* const device_lse = copies.output(lse, states * float_bytes, "lse");
  const float* const device_max =
      lse == running.max ? device_lse : upload(copies, std::as_const(running.max), states, "max");
  launch_rows(cuda::finish_forward_kernel_entry(),
              cuda::FinishForwardParameters{
                  copies.output(running.out, states * dim_v * float_bytes, "out"), device_max,
                  upload(copies, std::as_const(running.sum), states, "sum"),
                  sinks == nullptr ? nullptr : upload(copies, sinks, heads, "sinks"), device_lse, states,
                  static_cast<std::int32_t>(heads), static_cast<std::int32_t>(dim_v)},
              copies);
}

void InterpretedKernel::sink_gradients(const float* sinks, const float* lse, const float* delta,
                                       std::int64_t rows, std::int64_t heads, float* dsinks) {
  DeviceCopies copies;
  launch_rows(cuda::sink_gradients_kernel_entry(),
              cuda::SinkGradientsParameters{
                  upload(copies, sinks, heads, "sinks"), upload(copies, lse, rows * heads, "lse"),
                  upload(copies, delta, rows * heads, "delta"), rows, static_cast<std::int32_t>(heads),
                  copies.output(dsinks, heads * float_bytes, "dsinks")},
              copies);
}

void InterpretedKernel::row_dot(ConstTensorView out, ConstTensorView dout, float* delta) {
  DeviceCopies copies;
  const std::int64_t rows = out.rows * out.heads;
  launch_rows(cuda::row_dot_kernel_entry(out.type, dout.type),
              cuda::RowDotParameters{upload(copies, out, "out"), upload(copies, dout, "dout"),
                                     copies.output(delta, rows * float_bytes, "delta"), rows,
                                     static_cast<std::int32_t>(out.dim)},
              copies);
}

void InterpretedKernel::copy_rows(const BasicRowTable<const std::byte>& source,
                                  const BasicRowTable<std::byte>& target, std::int64_t rows,
                                  std::int64_t elements) {
  DeviceCopies copies;
  launch_rows(cuda::copy_rows_kernel_entry(source.type, target.type),
              upload(copies, source, target, rows, elements), copies);
}

void InterpretedKernel::add_rows(const BasicRowTable<const std::byte>& source,
                                 const BasicRowTable<std::byte>& target, std::int64_t rows,
                                 std::int64_t elements) {
  DeviceCopies copies;
  launch_rows(cuda::add_rows_kernel_entry(source.type), upload(copies, source, target, rows, elements),
              copies);
}

void InterpretedKernel::fill(float* target, std::int64_t count, float value) {
  DeviceCopies copies;
  launch_rows(cuda::fill_kernel_entry(),
              cuda::FillParameters{copies.output(target, count * float_bytes, "target"), count, value},
              copies);
}

}  // namespace hcp::mutation
