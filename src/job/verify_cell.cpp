#include "src/job/verify_cell.hpp"

#include <algorithm>

#include <iomanip>
#include <sstream>

#include "src/job/verification.hpp"
#include "topology/mpi_collectives.hpp"

namespace hcp {
namespace {

/// Above this many FLOP of reference arithmetic only a sample is checked, unless the user says otherwise.
constexpr double full_verification_limit = 2e11;

Coverage coverage_of(const JobConfig& config, const JobPlan& plan) {
  if (config.verify == VerifyMode::automatic) {
    const double flop = full_verification_flop(plan.area(), plan.shape(), config.pass) * plan.layers();
    return flop <= full_verification_limit ? Coverage::full : Coverage::sample;
  }
  return config.verify == VerifyMode::full ? Coverage::full : Coverage::sample;
}

std::vector<double> gather_over_cp(const HierarchicalCommunicators& communicators,
                                   std::span<const double> mine) {
  if (!communicators.cp()) {
    return {mine.begin(), mine.end()};
  }
  std::vector<double> all;
  for (const std::vector<double>& part : all_gather(*communicators.cp(), mine)) {
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

LayerResults results_of(const JobConfig& config, const JobPlan& plan,
                        const HierarchicalCommunicators& communicators, const CellRun& cell, int layer) {
  const ExchangePlan& exchange = cell.exchange(layer);
  const LayerTensors& tensors = cell.tensors(layer);
  const std::int64_t first_q = communicators.coordinates().tp * plan.query_heads();
  const std::int64_t first_kv = communicators.coordinates().tp * plan.kv_heads();
  const std::int64_t first_lse = first_q + exchange.first_head_q;
  return {.mask = &plan.mask(),
          .softmax_scale = plan.shape().softmax_scale(),
          .tokens = plan.shape().tokens(),
          .layer = layer,
          .pass = config.pass,
          .dtype = config.dtype,
          .queries_per_kv = exchange.head_map.queries_per_kv,
          .query_heads = {first_q, plan.query_heads()},
          .kv_heads = {first_kv, plan.kv_heads()},
          .dim_qk = plan.shape().kv_channels,
          .dim_v = plan.shape().v_channels,
          .rows = cell.shard(),
          .kv_rows = cell.kv_shard(),
          .out = tensors.host_view(array_out),
          .dq = tensors.host_view(array_dq),
          .dk = tensors.host_view(array_dk),
          .dv = tensors.host_view(array_dv),
          .lse_rows = exchange.rows,
          .lse_heads = {first_lse, exchange.heads_q},
          .lse = reinterpret_cast<const float*>(tensors.host_view(array_lse).data),
          .dropout = cell.dropout(layer),
          .sinks = cell.softmax(layer).sinks,
          .dsinks = cell.softmax(layer).dsinks,
          .max_logits = cell.softmax(layer).max_logits};
}

}  // namespace

Verified verify_cell(const JobConfig& config, const JobPlan& plan, const Input& input,
                     const HierarchicalCommunicators& communicators, const CellRun& cell,
                     const std::function<void(int layer)>& progress) {
  if (config.verify == VerifyMode::off || config.comm_only || config.compute_only) {
    return {};
  }
  const Coverage coverage = coverage_of(config, plan);
  const auto gather = [&](std::span<const double> mine) { return gather_over_cp(communicators, mine); };
  double largest = 0.0;
  std::string where;
  for (int layer = 0; layer < plan.layers(); ++layer) {
    const VerificationResult result = verify_layer(results_of(config, plan, communicators, cell, layer),
                                                   *input.source, coverage, gather, [&] { progress(layer); });
    if (result.largest() > largest) {
      largest = result.largest();
      where = result.worst() + " in layer " + std::to_string(layer);
    }
  }
  const MpiCommunicator& world = communicators.world();
  Verified verified{.mode = coverage == Coverage::full ? "full" : "sample",
                    .error = all_reduce(world, Reduction::max, largest),
                    .tolerance = std::max(verification_tolerance(config.dtype),
                                          verification_tolerance(config.grad_comm_dtype)),
                    .where = {}};
  verified.passed = verified.error <= verified.tolerance;
  if (!verified.passed) {
    const std::int64_t candidate = largest == verified.error ? world.rank() : world.size();
    const auto owner = static_cast<int>(all_reduce(world, Reduction::min, candidate));
    std::ostringstream message;
    message << "rank " << owner << ": error " << std::scientific << std::setprecision(1) << verified.error
            << " in " << where;
    verified.where = broadcast(world, message.str(), owner);
  }
  return verified;
}

}  // namespace hcp
