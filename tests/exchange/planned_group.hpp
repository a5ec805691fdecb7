/// The exchange plans of all ranks of one CP group, for tests that look at plans without running them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "src/exchange/exchange_plan.hpp"
#include "tests/kernels/mask_definition.hpp"
#include "topology/sequence_partition.hpp"

namespace hcp {

struct Heads {
  std::int64_t q = 1;
  std::int64_t kv = 1;
};

struct HeadDims {
  std::int64_t qk = 16;
  std::int64_t v = 16;
};

/// What each CP rank holds of the queries and of the keys of a mask. Where these are different tokens, a
/// balanced partition deals keys contiguously.
struct DealtShards {
  std::vector<PositionSet> queries;
  std::vector<PositionSet> keys;
};
[[nodiscard]] DealtShards dealt(const std::vector<Level>& levels, Partition partition,
                                const test::MaskDefinition& definition, std::int64_t stripe_size = 1);

class PlannedGroup {
 public:
  PlannedGroup(std::vector<Level> levels, const test::MaskDefinition& definition, Heads heads,
               Partition partition = Partition::zigzag, DataType storage = DataType::bf16,
               DataType gradient_wire = DataType::fp32, HeadDims dims = {},
               MessageForm form = MessageForm::scattered);
  /// Queries and keys are the same tokens.
  /// @param documents lengths, zero allowed
  PlannedGroup(std::vector<Level> levels, const std::vector<std::int64_t>& documents, bool causal,
               Heads heads, Partition partition = Partition::zigzag, DataType storage = DataType::bf16,
               DataType gradient_wire = DataType::fp32, HeadDims dims = {},
               MessageForm form = MessageForm::scattered);
  PlannedGroup(const PlannedGroup&) = delete;
  PlannedGroup& operator=(const PlannedGroup&) = delete;

  /// Bytes that all ranks send in a pass, of one payload or of all.
  [[nodiscard]] std::int64_t bytes(Pass pass, const std::vector<Payload>& of = {}) const;
  [[nodiscard]] std::int64_t messages(Pass pass) const;
  /// Bytes that all ranks send in a pass and that are booked on one level, of one payload or of all.
  [[nodiscard]] std::int64_t level_bytes(Pass pass, int level, const std::vector<Payload>& of = {}) const;
  template <typename Action>
  void for_each_send(Pass pass, const Action& action) const {
    for (const ExchangePlan& plan : plans) {
      for (const Transfer& transfer : plan.program(pass).transfers) {
        for (const PlannedMessage& message : transfer.sends) {
          action(message);
        }
      }
    }
  }
  [[nodiscard]] const LayerGeometry& geometry() const { return geometry_; }
  [[nodiscard]] std::vector<int> level_sizes() const;
  /// Everything that the group was made from.
  [[nodiscard]] std::string describe() const;

  std::vector<ExchangePlan> plans;

 private:
  test::MaskDefinition definition_;
  Partition partition_;
  AttentionMask mask_;
  LayerGeometry geometry_;
};

}  // namespace hcp
