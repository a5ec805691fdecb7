// Executes the program of a pass, instruction by instruction.
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "src/attention/context_parallel_attention.hpp"

namespace hcp {

/// One pass over the program.
class ContextParallelAttention::Execution {
 public:
  Execution(ContextParallelAttention& attention, const LayerTensors& tensors, Pass pass, Work work,
            const PhaseObserver& observe)
      : a_{attention},
        program_{attention.plan_.program(pass)},
        pass_{pass},
        work_{work},
        observe_{observe},
        open_(program_.transfers.size()) {
    for (int id = 0; id < known_arrays; ++id) {
      known_.push_back(tensors.view(static_cast<KnownArray>(id)));
    }
  }

  void run(const ArrayLifetimes& lifetimes) {
    begin_softmax_terms();
    for (std::size_t i = 0; i < program_.instructions.size(); ++i) {
      for (const ArrayId id : lifetimes.made_before[i]) {
        make(id);
      }
      const Instruction& instruction = program_.instructions[i];
      if (is_executed(instruction.action)) {
        phase_ = {.layer = a_.layer_,
                  .level = static_cast<std::int16_t>(instruction.level),
                  .step = static_cast<std::int16_t>(instruction.step),
                  .kind = std::visit([](const auto& action) { return kind_of(action); }, instruction.action),
                  .pass = pass_};
        tell(phase_);
        const std::size_t interval = a_.clock_.begin(name_of(phase_.kind).data());
        std::visit(*this, instruction.action);
        a_.clock_.end();
        record_phase(interval);
      }
      for (const ArrayId id : lifetimes.freed_after[i]) {
        a_.buffers_[index(id)] = Buffer{};
      }
    }
    catch_up();
    set_times();
  }

  void operator()(const Post& post) {
    const Transfer& transfer = program_.transfers[index(post.transfer)];
    MessageSet messages;
    messages.collective = transfer.collective;
    for (const PlannedMessage& message : transfer.sends) {
      messages.sends.push_back(bound(message));
    }
    for (const PlannedMessage& message : transfer.receives) {
      messages.receives.push_back(bound(message));
    }
    messages.what = "layer " + std::to_string(a_.layer_) +
                    (pass_ == Pass::forward ? ", forward" : ", backward") + ", level " +
                    std::to_string(transfer.level) + ", step " + std::to_string(transfer.step);
    open_[index(post.transfer)] = a_.transports_[index(transfer.communicator)]->post(messages);
    posted_ = post.transfer;
    count(transfer.sends);
  }

  void operator()(const Wait& wait) {
    open_[index(wait.transfer)]->wait();
    count(program_.transfers[index(wait.transfer)].receives);
  }

  void operator()(const Move& move) {
    const BasicRowTable<const std::byte> from = table<const std::byte>(move.from);
    const BasicRowTable<std::byte> to = table<std::byte>(move.to);
    if (move.kind == Move::Kind::add) {
      a_.kernel_.add_rows(from, to, move.rows, move.elements);
    } else {
      a_.kernel_.copy_rows(from, to, move.rows, move.elements);
    }
    phase_.bytes = move.rows * move.elements * static_cast<std::int64_t>(size_of(from.type));
  }

  void operator()(const Fill& fill) {
    const ArrayPlan& array = a_.plan_.arrays[index(fill.array)];
    // Zero has the same bits in every type, and only zero is filled into anything but fp32.
    const std::int64_t bytes =
        fill.rows * array.row_elements() * static_cast<std::int64_t>(size_of(array.type));
    a_.kernel_.fill(as_floats(fill.array), bytes / static_cast<std::int64_t>(sizeof(float)), fill.value);
    phase_.bytes = bytes;
  }

  void operator()(const FinishForward& /*finish*/) {
    const AttentionArrays& arrays = a_.plan_.attention;
    const ArrayPlan& out = a_.plan_.arrays[index(arrays.running_out)];
    if (!a_.softmax_.max_logits.empty()) {
      a_.kernel_.max_logits(as_floats(arrays.running_max), out.rows, out.heads,
                            own_heads(a_.softmax_.max_logits));
    }
    a_.kernel_.finish_forward(
        {as_floats(arrays.running_out), as_floats(arrays.running_max), as_floats(arrays.running_sum)},
        out.rows, out.heads, out.dim, as_floats(array_lse),
        a_.softmax_.sinks.empty() ? nullptr : own_heads(a_.softmax_.sinks));
  }

  void operator()(const RowDot& dot) {
    a_.kernel_.row_dot(view(dot.out), view(dot.dout), as_floats(dot.delta));
    if (!a_.softmax_.dsinks.empty()) {
      const ArrayPlan& delta = a_.plan_.arrays[index(dot.delta)];
      a_.kernel_.sink_gradients(own_heads(a_.softmax_.sinks), as_floats(array_lse), as_floats(dot.delta),
                                delta.rows, delta.heads, own_heads(a_.softmax_.dsinks));
    }
  }

  void operator()(const Attend& attend) {
    const AttentionArrays& arrays = a_.plan_.attention;
    const PositionSet positions = positions_of(attend.query, a_.plan_.rows);
    const QueryBlock query{view(arrays.q).row_slice(attend.query.first, attend.query.count), positions};
    const std::int64_t keys = count_of(attend.positions);
    const KvBlock kv{view(attend.k).row_slice(0, keys), view(attend.v).row_slice(0, keys), attend.positions};
    if (pass_ == Pass::forward) {
      a_.kernel_.forward_block(a_.rule_, query, kv,
                               {float_row(arrays.running_out, attend.query.first),
                                float_row(arrays.running_max, attend.query.first),
                                float_row(arrays.running_sum, attend.query.first)});
      return;
    }
    a_.kernel_.backward_block(a_.rule_,
                              {.query = query,
                               .dout = view(arrays.dout).row_slice(attend.query.first, attend.query.count),
                               .lse = float_row(array_lse, attend.query.first),
                               .delta = float_row(arrays.delta, attend.query.first),
                               .dq = float_row(arrays.dq, attend.query.first)},
                              kv, {as_floats(attend.dk), as_floats(attend.dv)});
  }

 private:
  static constexpr int nothing_posted = -1;

  /// A phase of the log that the clock knows by the numbers of its first and its last interval.
  struct Timed {
    std::size_t phase;
    std::size_t first;
    std::size_t last;
    int posted;  ///< transfer that it posts
  };

  static std::size_t index(int i) { return static_cast<std::size_t>(i); }

  static PhaseKind kind_of(const Post&) { return PhaseKind::post; }
  static PhaseKind kind_of(const Wait&) { return PhaseKind::wait; }
  static PhaseKind kind_of(const Move& move) {
    return move.kind == Move::Kind::add ? PhaseKind::copy : PhaseKind::pack;
  }
  static PhaseKind kind_of(const Fill&) { return PhaseKind::copy; }
  template <typename Arithmetic>
  static PhaseKind kind_of(const Arithmetic&) {
    return PhaseKind::compute;
  }

  /// Messages are no part of computation alone, arithmetic none of communication alone; what moves rows
  /// belongs to both.
  [[nodiscard]] bool is_executed(const decltype(Instruction::action)& action) const {
    switch (std::visit([](const auto& a) { return kind_of(a); }, action)) {
      case PhaseKind::post:
      case PhaseKind::wait:
        return work_ != Work::computation;
      case PhaseKind::compute:
        return work_ != Work::communication;
      case PhaseKind::pack:
      case PhaseKind::copy:
        return true;
    }
    return true;
  }

  /// Of the heads that this rank computes with, in a table of all heads of the tensor-parallel rank.
  template <typename Float>
  [[nodiscard]] Float* own_heads(std::span<Float> of_all) const {
    return of_all.data() + a_.plan_.first_head_q;
  }

  /// What a pass returns has a value for every head, also where this rank has no rows.
  void begin_softmax_terms() {
    const std::span<float> logits = a_.softmax_.max_logits;
    const std::span<float> dsinks = a_.softmax_.dsinks;
    if (pass_ == Pass::forward && !logits.empty()) {
      a_.kernel_.fill(logits.data(), std::ssize(logits), -std::numeric_limits<float>::infinity());
    }
    if (pass_ == Pass::backward && !dsinks.empty()) {
      a_.kernel_.fill(dsinks.data(), std::ssize(dsinks), 0.0F);
    }
  }

  /// Rows move in as many instructions as there are runs of them; what follows each other is one phase.
  void record_phase(std::size_t interval) {
    const auto moves = [](const Phase& p) { return p.kind == PhaseKind::pack || p.kind == PhaseKind::copy; };
    if (!timed_.empty() && moves(phase_)) {
      Phase& last = a_.log_.back();
      if (last.kind == phase_.kind && last.level == phase_.level && last.step == phase_.step) {
        timed_.back().last = interval;
        last.bytes += phase_.bytes;
        return;
      }
    }
    timed_.push_back({a_.log_.size(), interval, interval, std::exchange(posted_, nothing_posted)});
    a_.log_.push_back(phase_);
  }

  /// The host has run ahead of a device, and now waits for its phases and messages one by one. Each is told
  /// once more, so that it has its own time to finish. Messages in the order of their posts: the first that
  /// do not finish are those that a peer did not answer.
  void catch_up() {
    for (const Timed& timed : timed_) {
      tell(a_.log_[timed.phase]);
      a_.clock_.wait(timed.last);
      if (timed.posted != nothing_posted) {
        const Transfer& transfer = program_.transfers[index(timed.posted)];
        tell({.layer = a_.layer_,
              .level = static_cast<std::int16_t>(transfer.level),
              .step = static_cast<std::int16_t>(transfer.step),
              .kind = PhaseKind::wait,
              .pass = pass_});
        open_[index(timed.posted)]->finish();
      }
    }
  }

  void tell(const Phase& phase) const {
    if (observe_) {
      observe_(phase);
    }
  }

  void set_times() {
    const std::vector<PhaseClock::Interval> intervals = a_.clock_.read();
    for (const Timed& timed : timed_) {
      a_.log_[timed.phase].begin_s = intervals.at(timed.first).begin_s;
      a_.log_[timed.phase].end_s = intervals.at(timed.last).end_s;
    }
  }

  void make(ArrayId id) {
    const ArrayPlan& array = a_.plan_.arrays[index(id)];
    a_.buffers_[index(id)] = Buffer{a_.ledger_, array.category, array.bytes(), a_.memory_};
    if (work_ ==
        Work::computation) {  // nothing arrives in it, and what lies there may be slow to compute with
      a_.kernel_.fill(as_floats(id), array.bytes() / static_cast<std::int64_t>(sizeof(float)), 0.0F);
    }
  }

  [[nodiscard]] TensorView view(ArrayId id) const {
    if (id < known_arrays) {
      return known_[index(id)];
    }
    const ArrayPlan& array = a_.plan_.arrays[index(id)];
    return {a_.buffers_[index(id)].data(), array.type, array.rows, array.heads, array.dim};
  }
  [[nodiscard]] float* as_floats(ArrayId id) const { return reinterpret_cast<float*>(view(id).data); }
  [[nodiscard]] float* float_row(ArrayId id, std::int64_t row) const {
    return as_floats(id) + row * a_.plan_.arrays[index(id)].row_elements();
  }
  template <typename Byte>
  [[nodiscard]] BasicRowTable<Byte> table(const Table& t) const {
    const TensorView array = view(t.array);
    return {array.data + t.offset * static_cast<std::int64_t>(size_of(array.type)), array.type, t.stride};
  }
  [[nodiscard]] Message bound(const PlannedMessage& planned) const {
    Message message{.peer = planned.peer, .tag = message_tag(pass_, planned.payload), .parts = {}};
    for (const Part& part : planned.parts) {
      message.parts.emplace_back(view(part.array).data + part.offset, static_cast<std::size_t>(part.bytes));
    }
    return message;
  }
  void count(const std::vector<PlannedMessage>& messages) {
    for (const PlannedMessage& message : messages) {
      phase_.bytes += message.bytes();
    }
    phase_.peer = messages.size() == 1 ? messages.front().peer_cp_rank : -1;
  }

  ContextParallelAttention& a_;
  const Program& program_;
  Pass pass_;
  Work work_;
  const PhaseObserver& observe_;
  std::vector<TensorView> known_;
  std::vector<std::optional<Ticket>> open_;  ///< by transfer
  int posted_ = nothing_posted;              ///< transfer of the phase that is under way
  std::vector<Timed> timed_;                 ///< phases of this pass in the log
  Phase phase_;
};

void ContextParallelAttention::forward(const LayerTensors& tensors, bool backward_follows, Work work,
                                       const PhaseObserver& observe) {
  Execution{*this, tensors, Pass::forward, work, observe}.run(backward_follows ? forward_saving_
                                                                               : forward_alone_);
}

void ContextParallelAttention::backward(const LayerTensors& tensors, Work work,
                                        const PhaseObserver& observe) {
  Execution{*this, tensors, Pass::backward, work, observe}.run(backward_);
}

}  // namespace hcp
