#include <algorithm>
#include <cstdint>
#include <utility>

#include "src/exchange/plan_memory.hpp"
#include "tests/exchange/plan_checker.hpp"

namespace hcp {
namespace {

std::size_t index(int i) {
  return static_cast<std::size_t>(i);
}

/// Bytes [begin, end) of an array.
struct ByteRange {
  ArrayId array = 0;
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

/// What an instruction touches: all reads come before all writes.
struct Accesses {
  std::vector<ByteRange> reads;
  std::vector<ByteRange> writes;

  void update(const ByteRange& range) {
    reads.push_back(range);
    writes.push_back(range);
  }
};

/// What each instruction that is not a message touches, after its description in exchange_plan.hpp.
class AccessesOf {
 public:
  explicit AccessesOf(const ExchangePlan& plan) : plan_{plan} {}

  Accesses operator()(const Post& /*post*/) const { return {}; }
  Accesses operator()(const Wait& /*wait*/) const { return {}; }
  Accesses operator()(const Move& move) const {
    Accesses all;
    add_table(all.reads, move.from, move);
    add_table(all.writes, move.to, move);
    if (move.kind == Move::Kind::add) {
      add_table(all.reads, move.to, move);
    }
    return all;
  }
  Accesses operator()(const Fill& fill) const { return {{}, {rows(fill.array, 0, fill.rows)}}; }
  Accesses operator()(const FinishForward& /*finish*/) const {
    Accesses all{{whole(plan_.attention.running_max), whole(plan_.attention.running_sum)},
                 {whole(array_lse)}};
    all.update(whole(plan_.attention.running_out));
    return all;
  }
  Accesses operator()(const RowDot& dot) const {
    return {{whole(dot.out), whole(dot.dout)}, {whole(dot.delta)}};
  }
  Accesses operator()(const Attend& attend) const {
    const AttentionArrays& arrays = plan_.attention;
    const std::int64_t keys = count_of(attend.positions);
    const auto query_rows = [&](ArrayId array) {
      return rows(array, attend.query.first, attend.query.count);
    };
    Accesses all{{query_rows(arrays.q), rows(attend.k, 0, keys), rows(attend.v, 0, keys)}, {}};
    if (attend.dk < 0) {
      for (const ArrayId running : {arrays.running_out, arrays.running_max, arrays.running_sum}) {
        all.update(query_rows(running));
      }
      return all;
    }
    for (const ArrayId read : {int{array_lse}, arrays.dout, arrays.delta}) {
      all.reads.push_back(query_rows(read));
    }
    all.update(query_rows(arrays.dq));
    all.update(rows(attend.dk, 0, keys));
    all.update(rows(attend.dv, 0, keys));
    return all;
  }

 private:
  [[nodiscard]] std::int64_t element_bytes(ArrayId array) const {
    return static_cast<std::int64_t>(size_of(plan_.arrays.at(index(array)).type));
  }
  [[nodiscard]] ByteRange rows(ArrayId array, std::int64_t first, std::int64_t count) const {
    const std::int64_t row = plan_.arrays.at(index(array)).row_elements() * element_bytes(array);
    return {array, first * row, (first + count) * row};
  }
  [[nodiscard]] ByteRange whole(ArrayId array) const {
    return {array, 0, plan_.arrays.at(index(array)).bytes()};
  }
  void add_table(std::vector<ByteRange>& ranges, const Table& table, const Move& move) const {
    const std::int64_t element = element_bytes(table.array);
    for (std::int64_t row = 0; row < move.rows; ++row) {
      const std::int64_t begin = (table.offset + row * table.stride) * element;
      ranges.push_back({table.array, begin, begin + move.elements * element});
    }
  }

  const ExchangePlan& plan_;
};

/// The state of every byte of one rank.
class MemoryWalk {
 public:
  explicit MemoryWalk(const ExchangePlan& plan) : plan_{plan}, memory_(plan.arrays.size()) {
    for (int id = 0; id < known_arrays; ++id) {
      make(id);
    }
    for (const KnownArray input : {array_q, array_k, array_v, array_dout}) {
      memory_[input].assign(memory_[input].size(), {.written = true});
    }
  }

  std::vector<std::string> faults() && {
    walk(Pass::forward);
    expect_written({array_out, array_lse});
    walk(Pass::backward);
    expect_written({array_dq, array_dk, array_dv});
    return std::move(faults_);
  }

 private:
  struct ByteState {
    bool written = false;
    bool receiving = false;
    int sends = 0;  ///< messages in flight that hold this byte
  };
  enum class TransferState : std::uint8_t { unused, open, done };

  void walk(Pass pass) {
    pass_ = pass;
    const Program& program = plan_.program(pass);
    const ArrayLifetimes lifetimes = array_lifetimes(plan_, pass, pass == Pass::forward);
    transfers_.assign(program.transfers.size(), TransferState::unused);
    for (instruction_ = 0; instruction_ < program.instructions.size(); ++instruction_) {
      for (const ArrayId id : lifetimes.made_before[instruction_]) {
        make(id);
      }
      const auto& action = program.instructions[instruction_].action;
      if (const auto* post = std::get_if<Post>(&action)) {
        begin(post->transfer, program);
      } else if (const auto* wait = std::get_if<Wait>(&action)) {
        end(wait->transfer, program);
      } else {
        touch(std::visit(AccessesOf{plan_}, action));
      }
      for (const ArrayId id : lifetimes.freed_after[instruction_]) {
        free(id);
      }
    }
    for (std::size_t id = 0; id < transfers_.size(); ++id) {
      if (transfers_[id] != TransferState::done) {
        complain("transfer " + std::to_string(id) +
                 (transfers_[id] == TransferState::open ? " is never waited for" : " is never posted"));
      }
    }
  }

  void make(ArrayId id) {
    memory_[index(id)].assign(static_cast<std::size_t>(plan_.arrays[index(id)].bytes()), {});
  }
  void free(ArrayId id) {
    check_all({id, 0, std::ssize(memory_[index(id)])}, "frees bytes in flight of",
              [](const ByteState& byte) { return byte.sends == 0 && !byte.receiving; });
    memory_[index(id)] = {};
  }

  void begin(int transfer, const Program& program) {
    TransferState& state = transfers_.at(index(transfer));
    if (state != TransferState::unused) {
      complain("posts transfer " + std::to_string(transfer) + " twice");
      return;
    }
    state = TransferState::open;
    for_each_part(program.transfers[index(transfer)].sends, [&](const ByteRange& part) {
      read(part);
      change_all(part, [](ByteState& byte) { ++byte.sends; });
    });
    for_each_written_part(program.transfers[index(transfer)], [&](const ByteRange& part) {
      write(part);
      change_all(part, [](ByteState& byte) { byte.receiving = true, byte.written = false; });
    });
  }
  void end(int transfer, const Program& program) {
    TransferState& state = transfers_.at(index(transfer));
    if (state != TransferState::open) {
      complain("waits for transfer " + std::to_string(transfer) + ", which is not posted");
      return;
    }
    state = TransferState::done;
    for_each_part(program.transfers[index(transfer)].sends,
                  [&](const ByteRange& part) { change_all(part, [](ByteState& byte) { --byte.sends; }); });
    for_each_written_part(program.transfers[index(transfer)], [&](const ByteRange& part) {
      change_all(part, [](ByteState& byte) { byte.receiving = false, byte.written = true; });
    });
  }
  void touch(const Accesses& accesses) {
    for (const ByteRange& range : accesses.reads) {
      read(range);
    }
    for (const ByteRange& range : accesses.writes) {
      write(range);
      change_all(range, [](ByteState& byte) { byte.written = true; });
    }
  }

  void read(const ByteRange& range) {
    check_all(range, "reads what is being received into",
              [](const ByteState& byte) { return !byte.receiving; });
    check_all(range, "reads what nobody wrote of",
              [](const ByteState& byte) { return byte.written || byte.receiving; });
  }
  void write(const ByteRange& range) {
    check_all(range, "writes what is being sent of", [](const ByteState& byte) { return byte.sends == 0; });
    check_all(range, "writes what is being received into",
              [](const ByteState& byte) { return !byte.receiving; });
  }

  template <typename Action>
  static void for_each_part(const std::vector<PlannedMessage>& messages, const Action& action) {
    for (const PlannedMessage& message : messages) {
      for (const Part& part : message.parts) {
        action(ByteRange{part.array, part.offset, part.offset + part.bytes});
      }
    }
  }
  /// What the messages of a transfer write, and in an all-gather the place of this rank between them.
  template <typename Action>
  static void for_each_written_part(const Transfer& transfer, const Action& action) {
    for_each_part(transfer.receives, action);
    if (transfer.collective != Collective::all_gather) {
      return;
    }
    const auto has_peer = [&](int rank) {
      return std::ranges::any_of(transfer.receives, [&](const PlannedMessage& m) { return m.peer == rank; });
    };
    int own = 0;
    while (has_peer(own)) {
      ++own;
    }
    const PlannedMessage& any = transfer.receives.front();
    for (const Part& part : any.parts) {
      const std::int64_t begin = part.offset + (own - any.peer) * part.bytes;
      action(ByteRange{part.array, begin, begin + part.bytes});
    }
  }
  [[nodiscard]] bool is_inside(const ByteRange& range) const {
    return range.begin >= 0 && range.end <= std::ssize(memory_.at(index(range.array)));
  }
  template <typename Change>
  void change_all(const ByteRange& range, const Change& change) {
    if (is_inside(range)) {
      for (std::int64_t b = range.begin; b < range.end; ++b) {
        change(memory_[index(range.array)][static_cast<std::size_t>(b)]);
      }
    }
  }
  /// One fault for the first byte that is not as it should be.
  template <typename Good>
  void check_all(const ByteRange& range, const char* fault, const Good& is_good) {
    if (!is_inside(range)) {
      complain("leaves " + plan_.arrays.at(index(range.array)).name + " (or it does not live) with bytes " +
               std::to_string(range.begin) + " to " + std::to_string(range.end));
      return;
    }
    for (std::int64_t b = range.begin; b < range.end; ++b) {
      if (!is_good(memory_[index(range.array)][static_cast<std::size_t>(b)])) {
        complain(std::string{fault} + " " + plan_.arrays[index(range.array)].name + ", byte " +
                 std::to_string(b));
        return;
      }
    }
  }
  void expect_written(const std::vector<ArrayId>& outputs) {
    for (const ArrayId id : outputs) {
      check_all({id, 0, plan_.arrays[index(id)].bytes()}, "ends without having written",
                [](const ByteState& byte) { return byte.written; });
    }
  }
  void complain(const std::string& fault) {
    faults_.push_back(std::string{name_of(pass_)} + ", instruction " + std::to_string(instruction_) + " " +
                      fault);
  }

  const ExchangePlan& plan_;
  std::vector<std::vector<ByteState>> memory_;  ///< [array][byte]; empty while the array does not live
  std::vector<TransferState> transfers_;
  std::vector<std::string> faults_;
  Pass pass_ = Pass::forward;
  std::size_t instruction_ = 0;
};

}  // namespace

std::vector<std::string> memory_faults(const ExchangePlan& plan) {
  return MemoryWalk{plan}.faults();
}

}  // namespace hcp
