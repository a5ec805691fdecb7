#include "src/job/report.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <limits>

#include "src/job/build_info.hpp"
#include "src/job/mask_options.hpp"
#include "src/job/measurement.hpp"
#include "src/job/run_rows.hpp"
#include "topology/mpi_collectives.hpp"

namespace hcp {
namespace {

struct TableColumn {
  const char* name;
  int width;
};

constexpr std::array columns{
    TableColumn{"tokens", 10},    TableColumn{"scheme", 16},     TableColumn{"sizes", 8},
    TableColumn{"nodes", 14},     TableColumn{"mask", 20},       TableColumn{"dtype", 6},
    TableColumn{"pass", 8},       TableColumn{"min_ms", 10},     TableColumn{"median_ms", 10},
    TableColumn{"p95_ms", 10},    TableColumn{"max_ms", 10},     TableColumn{"TFLOP/s", 9},
    TableColumn{"inside_MB", 10}, TableColumn{"across_MB", 10},  TableColumn{"exposed_%", 10},
    TableColumn{"imbalance", 10}, TableColumn{"mem_min_MB", 11}, TableColumn{"mem_max_MB", 11},
    TableColumn{"error", 9},      TableColumn{"check", 7},       TableColumn{"verdict", 11}};

std::string number(const char* format, double value) {
  if (std::isnan(value)) {
    return "-";
  }
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), format, value);
  return text.data();
}

std::string padded(const std::string& text, int width) {
  const auto wanted = static_cast<std::size_t>(width);
  return text.size() < wanted ? std::string(wanted - text.size(), ' ') + text : " " + text;
}

std::string channels(const ProblemShape& shape) {
  return std::to_string(shape.kv_channels) + "/" + std::to_string(shape.v_channels);
}

/// "2 x 64 tokens", or of queries and of keys where they are not the same.
std::string tokens_text(const ProblemShape& shape) {
  std::string text =
      std::to_string(shape.micro_batch_size) + " x " + std::to_string(shape.seq_length) + " tokens";
  return shape.is_self_attention()
             ? text
             : text + " of queries, " + std::to_string(shape.kv_seq_length) + " of keys";
}

std::string communicators_text(const HierarchicalCommunicators& communicators) {
  std::string text;
  for (const CommunicatorRecord& record : communicators.created()) {
    text += (text.empty() ? "" : ", ") + record.name + " of " + std::to_string(record.size);
  }
  return text;
}

std::string rank_line(const RankRow& rank, const PlacementRow& placement, const std::string& node) {
  std::array<char, 256> text{};
  std::snprintf(text.data(), text.size(), "%4d  %4d  %5d  %2d  %2d  %2d  %2d  %7lld  ", rank.rank, rank.node,
                rank.local_rank, placement.tp, placement.cp, placement.dp, placement.pp,
                static_cast<long long>(placement.tokens));
  const std::string device = rank.device.view() == host_device ? "" : ", " + std::string{rank.device.view()};
  return text.data() + node + device + ", cpus " + std::string{rank.binding.view()};
}

void print_columns(std::ostream& out) {
  std::string line;
  for (const TableColumn& column : columns) {
    line += padded(column.name, column.width);
  }
  line[0] = '#';
  out << line << "\n";
}

void print_row(std::ostream& out, const CellRow& cell, const ResultRow& result) {
  const auto mb = [](std::int64_t bytes) { return number("%.3f", static_cast<double>(bytes) * 1e-6); };
  const auto text = [](std::string_view view) { return std::string{view}; };
  const std::array<std::string, columns.size()> values{std::to_string(cell.tokens),
                                                       text(cell.scheme.view()),
                                                       text(cell.sizes.view()),
                                                       text(cell.nodes.view()),
                                                       text(cell.mask.view()),
                                                       text(cell.dtype.view()),
                                                       text(cell.pass.view()),
                                                       number("%.3f", result.time_min * 1e3),
                                                       number("%.3f", result.time_median * 1e3),
                                                       number("%.3f", result.time_p95 * 1e3),
                                                       number("%.3f", result.time_max * 1e3),
                                                       number("%.4f", result.tflops_per_rank),
                                                       mb(result.bytes_inside),
                                                       mb(result.bytes_across),
                                                       number("%.1f", result.exposed_fraction * 100.0),
                                                       number("%.3f", result.imbalance),
                                                       mb(result.peak_memory_min),
                                                       mb(result.peak_memory_max),
                                                       number("%.1e", result.error),
                                                       text(result.verification.view()),
                                                       text(result.verdict.view())};
  for (std::size_t i = 0; i < columns.size(); ++i) {
    out << padded(values[i], columns[i].width);
  }
  out << "\n";
}

}  // namespace

RunFacts run_facts(const JobConfig& config, const JobPlan& plan,
                   const HierarchicalCommunicators& communicators, const CellRun& cell, const RankFacts& rank,
                   const Transports& transports, const RunRecord& record, const std::string& trace) {
  const std::string& node = plan.layout().node_names.at(static_cast<std::size_t>(record.rank().node));
  return {.back_end = std::string{name_in(backend_choice_names, config.backend)} +
                      (rank.back_end.reason.empty() ? "" : " (" + rank.back_end.reason + ")"),
          .kernel = rank.kernel,
          .threads = rank.threads,
          .peak_flops = rank.peak_flops,
          .flops = record.cell().flops,
          .imbalance = imbalance_of(cell, communicators),
          .transport = transports.text,
          .overlap = transports.overlap,
          .trace = trace,
          .communicators = communicators_text(communicators),
          .ranks = all_gather(communicators.world(), rank_line(record.rank(), record.placement(), node))};
}

void print_header(std::ostream& out, const JobConfig& config, const JobPlan& plan, const RunFacts& facts) {
  const ProblemShape& shape = plan.shape();
  const GridSizes& sizes = plan.grid().sizes();
  for (const auto& [name, value] : build_info()) {
    out << "# " << name << ": " << value << "\n";
  }
  out << "# command: " << config.command_line << "\n";
  out << "# grid: " << plan.grid().world_size() << " ranks = tp " << sizes.tp << " x cp " << sizes.cp
      << " x dp " << sizes.dp << " x pp " << sizes.pp << " on " << plan.layout().nodes() << " nodes"
      << (plan.layout().simulated ? " (nodes: simulated)" : "") << "\n";
  for (const std::string& note : plan.notes()) {
    out << "# " << note << "\n";
  }
  out << "# problem: " << tokens_text(shape) << ", " << shape.doc_lengths.size()
      << " documents per row, heads " << shape.query_heads << ":" << shape.kv_heads << ", channels "
      << channels(shape) << ", " << plan.layers() << " layers, " << describe_partition(config) << ", input "
      << config.qkv.value_or("synthetic, seed " + std::to_string(config.seed)) << "\n";
  out << "# mask: " << describe_mask(config) << "; softmax scale " << number("%.6g", shape.softmax_scale())
      << ", " << name_in(softmax_type_names, config.softmax_type) << ", dropout "
      << number("%.6g", config.attention_dropout) << "\n";
  out << "# back end: " << facts.back_end << "\n";
  out << "# kernel: " << facts.kernel << ", " << facts.threads << " threads per rank, peak "
      << number("%.1f", facts.peak_flops * 1e-9) << " GFLOP/s per rank ("
      << (config.backend == BackendChoice::cuda ? "of the device's units at its clock" : "measured") << ")\n";
  out << "# transport: " << facts.transport << "\n";
  out << "# overlap: " << facts.overlap << "\n";
  out << "# communicators: " << facts.communicators << "\n";
  out << "# work: " << number("%.4g", facts.flops * 1e-12) << " TFLOP per iteration, "
      << number("%.4g", facts.flops * 1e-12 / plan.grid().world_size()) << " per rank, imbalance "
      << number("%.3f", facts.imbalance) << " (visible area, max/mean); ideal time "
      << number("%.3f", facts.flops / plan.grid().world_size() / facts.peak_flops * 1e3) << " ms\n";
  out << "# times: slowest rank of each of " << config.iterations << " iterations after " << config.warmup
      << " warm-ups, each from a barrier; MB = 1e6 bytes of all ranks in one iteration; memory per rank\n";
  out << "# trace: " << (facts.trace.empty() ? "none" : facts.trace) << "\n";
  out << "# rank  node  local  tp  cp  dp  pp   tokens  host, "
      << (config.backend == BackendChoice::cuda ? "device, " : "") << "binding\n";
  for (const std::string& rank : facts.ranks) {
    out << "# " << rank << "\n";
  }
  print_columns(out);
  out.flush();
}

std::vector<std::string> max_logit_lines(const JobConfig& config, const JobPlan& plan,
                                         const HierarchicalCommunicators& communicators,
                                         const CellRun& cell) {
  std::vector<std::string> lines;
  for (int layer = 0; layer < plan.layers() && config.return_max_logit; ++layer) {
    std::vector<double> of_model(static_cast<std::size_t>(plan.shape().query_heads),
                                 -std::numeric_limits<double>::infinity());
    std::ranges::copy(cell.softmax(layer).max_logits,
                      of_model.begin() + communicators.coordinates().tp * plan.query_heads());
    all_reduce(communicators.world(), Reduction::max, of_model);
    std::string line = "max logit of each head, layer " + std::to_string(layer) + ":";
    for (const double logit : of_model) {
      line += " " + number("%.6g", logit);
    }
    lines.push_back(std::move(line));
  }
  return lines;
}

void print_end(std::ostream& out, const CellRow& cell, const ResultRow& result,
               const std::vector<std::string>& remarks, bool stopped, const std::string& trace,
               const std::string& trace_failure) {
  if (stopped) {
    out << "# stopped by a signal: not verified, and /results of the trace has no row of this cell\n";
  }
  print_row(out, cell, result);
  for (const std::string& remark : remarks) {
    out << "# " << remark << "\n";
  }
  out << "# trace: " << (trace_failure.empty() ? trace : "incomplete, " + trace_failure) << "\n"
      << result.verdict.view() << std::endl;
}

}  // namespace hcp
