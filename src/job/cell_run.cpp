#include "src/job/cell_run.hpp"

#include <algorithm>
#include <span>

#include "src/job/input.hpp"
#include "topology/level_digits.hpp"

namespace hcp {
namespace {

Work work_of(const JobConfig& config) {
  if (config.comm_only) {
    return Work::communication;
  }
  return config.compute_only ? Work::computation : Work::all;
}

std::vector<int> sizes_of(const LayerGeometry& geometry) {
  std::vector<int> sizes;
  for (const Level& level : geometry.levels) {
    sizes.push_back(level.size);
  }
  return sizes;
}

/// `data` is one of the two sides of `mirror`.
std::span<float> values_of(std::byte* data, const Mirror& mirror) {
  return {reinterpret_cast<float*>(data), static_cast<std::size_t>(mirror.bytes()) / sizeof(float)};
}

void add(TrafficLedger& sum, const TrafficLedger& ledger) {
  for (const auto& [key, traffic] : ledger) {
    sum[key] += traffic;
  }
}

}  // namespace

CellRun::CellRun(const JobConfig& config, const JobPlan& plan, HierarchicalCommunicators& communicators,
                 BackEnd back_end, const TransportFactory& make_transport)
    : plan_{plan},
      document_offsets_{plan.shape().document_offsets()},
      kv_document_offsets_{plan.shape().kv_document_offsets()},
      dropout_{.probability = config.attention_dropout,
               .seed = config.seed,
               .layer = 0,
               .first_head = communicators.coordinates().tp * plan.query_heads(),
               .query_offsets = document_offsets_,
               .key_offsets = kv_document_offsets_,
               .documents_per_row = std::ssize(plan.shape().doc_lengths)},
      passes_{config.pass},
      work_{work_of(config)},
      cp_rank_{communicators.cp_rank()},
      back_end_{std::move(back_end)} {
  for (int scheme = 0; scheme < static_cast<int>(plan.schemes().size()); ++scheme) {
    const LayerGeometry& geometry = plan.geometry(scheme);
    Exchange exchange{make_exchange_plan(geometry, cp_rank_), {}, {}};
    for (const std::vector<int>& levels : exchange.plan.communicators) {
      exchange.communicators.push_back(communicators.level_group(sizes_of(geometry), levels).value());
      exchange.transports.push_back(make_transport(exchange.communicators.back(), config.timeout));
    }
    exchanges_.push_back(std::move(exchange));
  }
  const BlockRule rule{
      .mask = &plan.mask(), .heads = {}, .softmax_scale = plan.shape().softmax_scale(), .dropout = dropout_};
  for (int layer = 0; layer < plan.layers(); ++layer) {
    Exchange& exchange = exchanges_.at(static_cast<std::size_t>(plan.scheme_of_layer(layer)));
    std::vector<Transport*> transports;
    for (const auto& transport : exchange.transports) {
      transports.push_back(transport.get());
    }
    tensors_.emplace_back(exchange.plan, passes_, memory_, *back_end_.memory);
    softmax_.push_back(make_softmax(config, layer, dropout_.first_head, plan.query_heads()));
    layers_.push_back(std::make_unique<ContextParallelAttention>(exchange.plan, rule, back_end_,
                                                                 std::move(transports), memory_, log_, layer,
                                                                 softmax_.back().of_kernel()));
  }
}

CellRun::Softmax CellRun::make_softmax(const JobConfig& config, int layer, std::int64_t first_head,
                                       std::int64_t heads) {
  const auto make = [&](bool wanted) {
    const std::int64_t bytes = wanted ? heads * static_cast<std::int64_t>(sizeof(float)) : 0;
    return Mirror{terms_memory_, MemoryCategory::accumulator, bytes, *back_end_.memory};
  };
  const bool learnable = config.softmax_type == SoftmaxType::learnable;
  Softmax softmax{.sinks = make(config.softmax_type != SoftmaxType::vanilla),
                  .dsinks = make(learnable),
                  .max_logits = make(config.return_max_logit)};
  const std::span<float> sinks = values_of(softmax.sinks.of_host(), softmax.sinks);
  if (learnable) {
    std::ranges::copy(synthetic_sinks(config.seed, layer, first_head, heads), sinks.begin());
  } else {
    std::ranges::fill(sinks, 0.0F);  // off-by-one
  }
  return softmax;
}

SoftmaxTerms CellRun::Softmax::of_kernel() const {
  return {.sinks = values_of(sinks.of_kernel(), sinks),
          .dsinks = values_of(dsinks.of_kernel(), dsinks),
          .max_logits = values_of(max_logits.of_kernel(), max_logits)};
}

SoftmaxTerms CellRun::Softmax::of_host() const {
  return {.sinks = values_of(sinks.of_host(), sinks),
          .dsinks = values_of(dsinks.of_host(), dsinks),
          .max_logits = values_of(max_logits.of_host(), max_logits)};
}

SoftmaxTerms CellRun::softmax(int layer) const {
  return softmax_.at(static_cast<std::size_t>(layer)).of_host();
}

void CellRun::to_kernel() {
  for (LayerTensors& tensors : tensors_) {
    tensors.to_kernel();
  }
  for (Softmax& softmax : softmax_) {
    softmax.sinks.to_kernel();
  }
}

void CellRun::to_host() {
  for (LayerTensors& tensors : tensors_) {
    tensors.to_host();
  }
  for (Softmax& softmax : softmax_) {
    softmax.dsinks.to_host();
    softmax.max_logits.to_host();
  }
}

Dropout CellRun::dropout(int layer) const {
  Dropout dropout = dropout_;
  dropout.layer = layer;
  return dropout;
}

void CellRun::forward(const PhaseObserver& observe) {
  for (std::size_t layer = 0; layer < layers_.size(); ++layer) {
    layers_[layer]->forward(tensors_[layer], passes_ != PassSelection::forward, work_, observe);
  }
}

void CellRun::backward(const PhaseObserver& observe) {
  for (std::size_t layer = layers_.size(); layer-- > 0;) {
    layers_[layer]->backward(tensors_[layer], work_, observe);
  }
}

const ExchangePlan& CellRun::exchange(int layer) const {
  return exchanges_.at(static_cast<std::size_t>(plan_.scheme_of_layer(layer))).plan;
}

TrafficLedger CellRun::planned() const {
  TrafficLedger ledger;
  for (int scheme = 0; scheme < static_cast<int>(exchanges_.size()); ++scheme) {
    add(ledger, planned(scheme));
  }
  return ledger;
}

TrafficLedger CellRun::planned(int scheme) const {
  TrafficLedger ledger;
  const std::int64_t layers = plan_.layers_with(scheme);
  for (const auto& [key, traffic] : planned_ledger(exchanges_.at(static_cast<std::size_t>(scheme)).plan)) {
    if (key.pass == Pass::forward || passes_ != PassSelection::forward) {
      ledger[key] = {traffic.bytes * layers, traffic.messages * layers};
    }
  }
  return ledger;
}

TrafficLedger CellRun::counted(int scheme) const {
  TrafficLedger ledger;
  const LayerGeometry& geometry = plan_.geometry(scheme);
  const std::vector<int> sizes = sizes_of(geometry);
  const Exchange& exchange = exchanges_.at(static_cast<std::size_t>(scheme));
  for (std::size_t c = 0; c < exchange.transports.size(); ++c) {
    const std::vector<int>& levels = exchange.plan.communicators[c];
    const auto group = static_cast<std::size_t>(level_place(cp_rank_, sizes, levels).group);
    const std::vector<int> members = level_groups(sizes, levels).at(group);
    for (const SentCount& sent : exchange.transports[c]->sent()) {
      const int peer = members.at(static_cast<std::size_t>(sent.peer));
      ledger[{pass_of_tag(sent.tag), peer, outermost_difference(cp_rank_, peer, geometry.levels),
              payload_of_tag(sent.tag)}] += {sent.bytes, sent.messages};
    }
  }
  return ledger;
}

TrafficLedger CellRun::counted() const {
  TrafficLedger ledger;
  for (int scheme = 0; scheme < static_cast<int>(exchanges_.size()); ++scheme) {
    add(ledger, counted(scheme));
  }
  return ledger;
}

TrafficLedger CellRun::counted_per_iteration(int iterations) const {
  TrafficLedger ledger = counted();
  for (auto& [key, traffic] : ledger) {
    traffic.bytes /= iterations;
    traffic.messages /= iterations;
  }
  return ledger;
}

void CellRun::reset_counts() {
  for (Exchange& exchange : exchanges_) {
    for (const auto& transport : exchange.transports) {
      transport->reset_counts();
    }
  }
}

std::int64_t CellRun::area() const {
  std::int64_t area = 0;
  for (int layer = 0; layer < plan_.layers(); ++layer) {
    area += planned_area(exchange(layer));
  }
  return area;
}

double CellRun::flops() const {
  const ProblemShape& shape = plan_.shape();
  double flops = 0.0;
  for (const Pass pass : {Pass::forward, Pass::backward}) {
    if (includes(passes_, pass)) {
      flops += attention_flops(pass, area(), shape.kv_channels, shape.v_channels);
    }
  }
  return flops;
}

}  // namespace hcp
