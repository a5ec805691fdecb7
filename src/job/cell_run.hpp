/// One rank's side of a cell: plans, transports, back end, tensors and the layers that are run with them.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "kernels/back_end.hpp"
#include "kernels/buffer.hpp"
#include "kernels/mirror.hpp"
#include "src/attention/context_parallel_attention.hpp"
#include "src/comm/transport.hpp"
#include "src/job/job_config.hpp"
#include "src/job/job_plan.hpp"
#include "src/plan/traffic.hpp"
#include "topology/hierarchical_communicators.hpp"

namespace hcp {

/// Makes the transport of one communicator; `timeout_s` is the longest a step may wait.
using TransportFactory = std::function<std::unique_ptr<Transport>(const MpiCommunicator&, double timeout_s)>;

class CellRun {
 public:
  /// Collective over the CP group.
  /// @param plan  must outlive the cell
  CellRun(const JobConfig& config, const JobPlan& plan, HierarchicalCommunicators& communicators,
          BackEnd back_end, const TransportFactory& make_transport);
  CellRun(const CellRun&) = delete;
  CellRun& operator=(const CellRun&) = delete;

  /// All layers forward, in order. Collective over the CP group, as backward: all layers in reverse order.
  void forward(const PhaseObserver& observe = {});
  void backward(const PhaseObserver& observe = {});

  /// The inputs that the host has written go to the kernel, its results to the host. All layers; nothing to
  /// do where the kernel computes in the host's memory.
  void to_kernel();
  void to_host();

  [[nodiscard]] const LayerTensors& tensors(int layer) const {
    return tensors_.at(static_cast<std::size_t>(layer));
  }
  /// What the softmax of a layer takes and gave, [query heads of the tensor-parallel rank] each, in the
  /// memory of the host.
  [[nodiscard]] SoftmaxTerms softmax(int layer) const;
  [[nodiscard]] Dropout dropout(int layer) const;
  [[nodiscard]] const ExchangePlan& exchange(int layer) const;
  [[nodiscard]] const PositionSet& shard() const {
    return plan_.shards().at(static_cast<std::size_t>(cp_rank_));
  }
  [[nodiscard]] const PositionSet& kv_shard() const {
    return plan_.kv_shards().at(static_cast<std::size_t>(cp_rank_));
  }
  [[nodiscard]] MemoryLedger& memory() { return memory_; }
  [[nodiscard]] PhaseLog& log() { return log_; }

  /// Messages of one iteration as planned, and all that the transports posted since the last reset; of one
  /// scheme of the plan, or of all together.
  [[nodiscard]] TrafficLedger planned() const;
  [[nodiscard]] TrafficLedger planned(int scheme) const;
  [[nodiscard]] TrafficLedger counted() const;
  [[nodiscard]] TrafficLedger counted(int scheme) const;
  [[nodiscard]] TrafficLedger counted_per_iteration(int iterations) const;
  void reset_counts();

  /// Floating-point operations of this rank in one iteration of the timed passes.
  [[nodiscard]] double flops() const;
  [[nodiscard]] std::int64_t area() const;  ///< visible pairs times heads of this rank, all layers

 private:
  struct Exchange {
    ExchangePlan plan;
    std::vector<MpiCommunicator> communicators;
    std::vector<std::unique_ptr<Transport>> transports;
  };

  /// The memory of SoftmaxTerms.
  struct Softmax {
    Mirror sinks;
    Mirror dsinks;
    Mirror max_logits;

    [[nodiscard]] SoftmaxTerms of_kernel() const;
    [[nodiscard]] SoftmaxTerms of_host() const;
  };
  [[nodiscard]] Softmax make_softmax(const JobConfig& config, int layer, std::int64_t first_head,
                                     std::int64_t heads);

  const JobPlan& plan_;
  std::vector<std::int64_t> document_offsets_;  ///< of queries; dropout looks into both
  std::vector<std::int64_t> kv_document_offsets_;
  Dropout dropout_;
  PassSelection passes_;
  Work work_;
  int cp_rank_;
  BackEnd back_end_;
  MemoryLedger memory_;
  MemoryLedger terms_memory_;  ///< a few numbers per head, which plans do not count
  PhaseLog log_;
  std::vector<Exchange> exchanges_;  ///< by scheme
  std::vector<LayerTensors> tensors_;
  std::vector<Softmax> softmax_;  ///< by layer
  std::vector<std::unique_ptr<ContextParallelAttention>> layers_;
};

}  // namespace hcp
