// A ring: blocks circulate one hop ahead of the visits, and their gradients follow until they are home.
#include <string>
#include <utility>

#include "src/exchange/plan_builder.hpp"

namespace hcp {

void PlanBuilder::add_kv_hop(Transfer& transfer, int level, int step, const BlockView& lent,
                             const BlockView& holding, const BlockView& next) const {
  // A rank gets a row from its predecessor if that one holds it, else from the owner; in the first hop they
  // are the same.
  const int before = neighbour(level, -1);
  const int after = neighbour(level, 1);
  const int owner = neighbour(level, -step);
  const int borrower = neighbour(level, step);
  const PositionSet from_before = block_at(level, before, step - 1);
  add_message(transfer.receives, level, before, Payload::kv,
              rows_of_block(next, set_intersection(next.positions(), from_before)));
  add_message(transfer.receives, level, owner, Payload::kv,
              rows_of_block(next, set_difference(next.positions(), from_before)));
  add_message(transfer.sends, level, after, Payload::kv,
              rows_of_block(holding, set_intersection(block_at(level, after, step), holding.positions())));
  const int before_borrower = sets_.with_digit(borrower, level, sets_.digit(borrower, level) - 1);
  add_message(transfer.sends, level, borrower, Payload::kv,
              rows_of_block(lent, set_difference(block_at(level, borrower, step),
                                                 block_at(level, before_borrower, step - 1))));
}

/// One ring at one place of the recursion.
class PlanBuilder::Ring {
 public:
  Ring(PlanBuilder& plan, int level, const BlockView& block, const BlockView* gradient)
      : p_{plan},
        level_{level},
        size_{plan.sets_.visit_size(level)},
        block_{block},
        gradient_{gradient},
        halves_{gradient != nullptr && level == 0},
        ahead_{plan.gathers(level - 1)},
        name_{"level " + std::to_string(plan.scheme_level(level))},
        rows_{count_of(plan.plan_.rows)},
        half_{halves_ ? plan.half_of(block.positions()) : rows_},
        holding_{block} {}

  void plan(const Interlude& at_middle) {
    if (ahead_) {
      p_.stand_at(level_, 0);
      Transfer first = new_transfer();
      add_kv(first, 1);
      kv_hop_ = p_.post(std::move(first));
      gathered_ = p_.start_gather(level_ - 1, block_, 0);
    }
    for (int step = 0; step < size_; ++step) {
      p_.stand_at(level_, step);
      Transfer transfer = new_transfer();
      if (!ahead_) {
        add_kv(transfer, step + 1);
      }
      const Landing landing = add_gradients(transfer, step - 1);
      const int hop = p_.post(std::move(transfer));
      if (at_middle && step == (size_ + 1) / 2) {
        at_middle();
        p_.stand_at(level_, step);
      }
      BlockView contribution;
      if (gradient_ != nullptr && step > 0) {
        contribution = new_contribution(step);
      }
      visit(step, step > 0 && gradient_ != nullptr ? &contribution : gradient_);
      p_.stand_at(level_, step);
      p_.wait(hop);
      if (!ahead_) {
        holding_ = next_;
      }
      add_arrived(landing, &contribution);
      if (gradient_ != nullptr && step > 0) {
        outgoing_ = on_the_wire(contribution);
      }
    }
    if (gradient_ == nullptr) {
      return;
    }
    p_.stand_at(level_, size_);
    Transfer last = new_transfer();
    const Landing landing = add_gradients(last, size_ - 1);
    const int hop = p_.post(std::move(last));
    if (halves_) {
      p_.attend({half_, rows_ - half_}, block_, gradient_);
    }
    p_.wait(hop);
    add_arrived(landing, nullptr);
  }

 private:
  /// Where the gradients of one step arrive: rows to pass on, and rows that are home.
  struct Landing {
    BlockView passing{};
    BlockView home{};
  };

  [[nodiscard]] Transfer new_transfer() {
    return {.communicator = p_.communicator({p_.scheme_level(level_)})};
  }

  /// The block of `step`, which is the one after the block that is held.
  void add_kv(Transfer& transfer, int step) {
    if (step >= size_) {
      return;
    }
    next_ = p_.kv_block(name_ + " kv " + std::to_string((step - 1) % 2) + " ", MemoryCategory::kv_ring,
                        p_.storage(), p_.block_at(level_, p_.attention_rank_, step));
    p_.add_kv_hop(transfer, level_, step, block_, holding_, next_);
  }

  /// In the middle of a visit whose block was gathered ahead: the next block is here, its gather and the hop
  /// of the one after begin.
  void turn(int step) {
    p_.stand_at(level_, step);
    p_.wait(std::exchange(kv_hop_, -1));
    if (step + 1 >= size_) {
      return;
    }
    p_.stand_at(level_, step + 1);
    holding_ = next_;
    Transfer transfer = new_transfer();
    add_kv(transfer, step + 2);
    kv_hop_ = p_.post(std::move(transfer));
    gathered_ = p_.start_gather(level_ - 1, holding_, (step + 1) % 2);
    p_.stand_at(level_, step);
  }

  void visit(int step, const BlockView* filling) {
    if (ahead_) {
      const OpenGather open = gathered_;
      p_.visit_gathered(level_ - 1, open, filling, [&] { turn(step); });
    } else if (step == 0 && halves_) {
      p_.attend({0, half_}, block_, gradient_);
    } else {
      p_.visit(level_, holding_, filling);
    }
  }

  BlockView new_contribution(int step) {
    // Two, filled and sent in turn; one where what is sent is a rounded copy.
    const int buffer = p_.geometry_.gradient_wire == DataType::fp32 ? (step - 1) % 2 : 0;
    return p_.zeroed_block(name_ + " dkv " + std::to_string(buffer) + " ", MemoryCategory::dkv_ring,
                           holding_.positions());
  }

  BlockView on_the_wire(const BlockView& contribution) {
    const DataType wire = p_.geometry_.gradient_wire;
    return {p_.rounded(contribution.k, wire, name_ + " dkv wire k", MemoryCategory::dkv_ring),
            p_.rounded(contribution.v, wire, name_ + " dkv wire v", MemoryCategory::dkv_ring)};
  }

  /// The gradient of a row goes on to the successor if that one looks at the row too, else home.
  Landing add_gradients(Transfer& transfer, int step) {
    if (gradient_ == nullptr || step < 1) {
      return {};
    }
    const bool last = step + 1 == size_;
    const int before = p_.neighbour(level_, -1);
    const int after = p_.neighbour(level_, 1);
    const int owner = p_.neighbour(level_, -step);
    const int borrower = p_.neighbour(level_, step);
    const auto at_next_step = [&](int rank) {
      return last ? PositionSet{} : p_.block_at(level_, rank, step + 1);
    };
    const PositionSet after_looks = at_next_step(after);
    p_.add_message(transfer.sends, level_, after, Payload::dkv,
                   p_.rows_of_block(outgoing_, set_intersection(outgoing_.positions(), after_looks)));
    p_.add_message(transfer.sends, level_, owner, Payload::dkv,
                   p_.rows_of_block(outgoing_, set_difference(outgoing_.positions(), after_looks)));

    const int after_borrower = p_.sets_.with_digit(borrower, level_, p_.sets_.digit(borrower, level_) + 1);
    const PositionSet passing =
        set_intersection(p_.block_at(level_, before, step), at_next_step(p_.attention_rank_));
    const PositionSet home =
        set_difference(p_.block_at(level_, borrower, step), at_next_step(after_borrower));
    const auto landing = p_.packed_blocks(name_ + " dkv arriving ", MemoryCategory::dkv_ring,
                                          p_.geometry_.gradient_wire, {passing, home});
    p_.add_message(transfer.receives, level_, before, Payload::dkv, p_.rows_of_block(landing[0], passing));
    p_.add_message(transfer.receives, level_, borrower, Payload::dkv, p_.rows_of_block(landing[1], home));
    return {landing[0], landing[1]};
  }

  void add_arrived(const Landing& landing, const BlockView* contribution) {
    if (!landing.passing.positions().empty()) {
      p_.move(Move::Kind::add, landing.passing, *contribution, landing.passing.positions());
    }
    if (!landing.home.positions().empty()) {
      p_.move(Move::Kind::add, landing.home, *gradient_, landing.home.positions());
    }
  }

  PlanBuilder& p_;
  const int level_;
  const int size_;
  const BlockView& block_;           // the own block
  const BlockView* const gradient_;  // of the own block; null in forward
  const bool halves_;                // the own block in two parts, the second under the last homeward hop
  const bool ahead_;                 // the level below gathers what is lent to it one step ahead
  const std::string name_;
  const std::int64_t rows_;
  const std::int64_t half_;
  BlockView holding_;   // the KV block of this step
  BlockView next_;      // and of the one after, on its way
  int kv_hop_ = -1;     // of next_, where it is turned to in the middle of a visit
  BlockView outgoing_;  // the dKV block of the step before
  OpenGather gathered_;
};

void PlanBuilder::ring(int level, const BlockView& block, const BlockView* gradient,
                       const Interlude& at_middle) {
  Ring{*this, level, block, gradient}.plan(at_middle);
}

}  // namespace hcp
