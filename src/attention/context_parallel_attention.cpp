#include "src/attention/context_parallel_attention.hpp"

#include <stdexcept>
#include <string>
#include <utility>

namespace hcp {

std::string_view name_of(PhaseKind kind) {
  switch (kind) {
    case PhaseKind::compute:
      return "compute";
    case PhaseKind::post:
      return "post";
    case PhaseKind::wait:
      return "wait";
    case PhaseKind::pack:
      return "pack";
    case PhaseKind::copy:
      return "copy";
  }
  return "?";
}

namespace {

void check_heads(std::string_view what, std::size_t heads, const ExchangePlan& plan) {
  const std::int64_t needed = plan.first_head_q + plan.heads_q;
  if (heads > 0 && static_cast<std::int64_t>(heads) < needed) {
    throw std::invalid_argument{"there are " + std::to_string(heads) + ' ' + std::string{what} +
                                ", but this rank computes with query heads up to " +
                                std::to_string(needed - 1)};
  }
}

void check_softmax(const SoftmaxTerms& softmax, const ExchangePlan& plan) {
  check_heads("sinks", softmax.sinks.size(), plan);
  check_heads("sink gradients", softmax.dsinks.size(), plan);
  check_heads("maximum logits", softmax.max_logits.size(), plan);
  if (softmax.sinks.empty() && !softmax.dsinks.empty()) {
    throw std::invalid_argument{"gradients of sinks are wanted, but there are no sinks"};
  }
}

}  // namespace

ContextParallelAttention::ContextParallelAttention(const ExchangePlan& plan, const BlockRule& rule,
                                                   const BackEnd& back_end,
                                                   std::vector<Transport*> transports, MemoryLedger& ledger,
                                                   PhaseLog& log, int layer, const SoftmaxTerms& softmax)
    : plan_{plan},
      rule_{rule},
      softmax_{softmax},
      kernel_{*back_end.kernel},
      memory_{*back_end.memory},
      clock_{*back_end.clock},
      transports_{std::move(transports)},
      ledger_{ledger},
      log_{log},
      layer_{layer},
      forward_alone_{array_lifetimes(plan, Pass::forward, false)},
      forward_saving_{array_lifetimes(plan, Pass::forward, true)},
      backward_{array_lifetimes(plan, Pass::backward, false)},
      buffers_(plan.arrays.size()) {
  rule_.heads = plan.head_map;
  rule_.dropout.layer = layer;
  check_softmax(softmax_, plan);
  if (transports_.size() != plan.communicators.size()) {
    throw std::invalid_argument{"the plan uses " + std::to_string(plan.communicators.size()) +
                                " communicators, but " + std::to_string(transports_.size()) +
                                " transports are given"};
  }
  for (const Transport* transport : transports_) {
    if (transport->memory_space() != kernel_.memory_space()) {
      throw std::invalid_argument{
          "kernel and transport use different memory; both must be host or both device"};
    }
  }
}

}  // namespace hcp
