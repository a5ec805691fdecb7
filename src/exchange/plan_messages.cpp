// Messages: what they carry, and how the rows of a tensor come to lie side by side where a transport wants
// that.
#include <algorithm>
#include <iterator>
#include <stdexcept>
#include <utility>

#include "src/exchange/plan_builder.hpp"

namespace hcp {

int PlanBuilder::post(Transfer transfer, std::vector<Move> after_wait) {
  if (transfer.sends.empty() && transfer.receives.empty()) {
    return -1;
  }
  if (geometry_.message_form != MessageForm::scattered && transfer.collective == Collective::none) {
    for (const Move& move : pack(transfer.sends, Direction::sent)) {
      emit(move);
    }
    std::ranges::move(pack(transfer.receives, Direction::received), std::back_inserter(after_wait));
  }
  const int id = static_cast<int>(program_->transfers.size());
  transfer.level = current_level_;
  transfer.step = current_step_;
  program_->transfers.push_back(std::move(transfer));
  emit(Post{id});
  after_wait_[id] = std::move(after_wait);
  return id;
}

void PlanBuilder::wait(int transfer) {
  if (transfer < 0) {
    return;
  }
  emit(Wait{transfer});
  const auto moves = after_wait_.extract(transfer);
  for (const Move& move : moves.mapped()) {
    emit(move);
  }
}

std::vector<Move> PlanBuilder::pack(std::vector<PlannedMessage>& messages, Direction direction) {
  std::vector<Move> moves;
  PackedRows packed_rows;
  for (PlannedMessage& message : messages) {
    const std::vector<Part> scattered = std::exchange(message.parts, {});
    for (auto first = scattered.begin(); first != scattered.end();) {
      const ArrayId id = first->array;
      const auto end =
          std::find_if(first, scattered.end(), [id](const Part& part) { return part.array != id; });
      if (end - first == 1) {
        message.parts.push_back(*first++);
        continue;
      }
      const std::int64_t bytes_of_row = row_bytes(id);
      std::vector<RowRun> runs;
      std::int64_t rows = 0;
      for (; first != end; ++first) {
        const RowSpan in_array{first->offset / bytes_of_row, first->bytes / bytes_of_row};
        runs.push_back(direction == Direction::sent ? RowRun{in_array.first, rows, in_array.count}
                                                    : RowRun{rows, in_array.first, in_array.count});
        rows += in_array.count;
      }
      const View apart = view_of(id, {});
      const View together = room(apart, message.payload, direction, rows, packed_rows);
      std::ranges::move(direction == Direction::sent ? moves_of(Move::Kind::assign, apart, together, runs)
                                                     : moves_of(Move::Kind::assign, together, apart, runs),
                        std::back_inserter(moves));
      message.parts.push_back(part_of(together, {0, rows}));
    }
  }
  return moves;
}

View PlanBuilder::room(const View& like, Payload payload, Direction direction, std::int64_t rows,
                       PackedRows& packed_rows) {
  const ArrayPlan& source = plan_.arrays.at(static_cast<std::size_t>(like.array));
  const DataType type = source.type;
  const std::int64_t heads = source.heads;
  const std::int64_t dim = source.dim;
  const std::string name = "level " + std::to_string(current_level_) + ' ' + std::string{name_of(payload)} +
                           (direction == Direction::sent ? " sent " : " received ") + std::to_string(heads) +
                           'x' + std::to_string(dim) + ' ' + std::string{name_of(type)};
  const ArrayId id = array(name, MemoryCategory::packed, type, 0, heads, dim);
  std::int64_t& used = packed_rows[id];
  const View view = packed(id, used * heads * dim, heads * dim, {});
  used += rows;
  array(name, MemoryCategory::packed, type, used, heads, dim);
  return view;
}

std::int64_t PlanBuilder::row_bytes(ArrayId id) const {
  const ArrayPlan& array = plan_.arrays.at(static_cast<std::size_t>(id));
  return array.row_elements() * static_cast<std::int64_t>(size_of(array.type));
}

Part PlanBuilder::part_of(const View& view, RowSpan rows) const {
  const auto size =
      static_cast<std::int64_t>(size_of(plan_.arrays.at(static_cast<std::size_t>(view.array)).type));
  return {view.array, (view.offset + rows.first * view.stride) * size, rows.count * view.stride * size};
}

void PlanBuilder::append_rows(std::vector<Part>& parts, const View& view, const PositionSet& subset) const {
  if (view.stride != view.elements) {
    throw std::logic_error{"a message takes whole rows only"};
  }
  if (view.elements == 0) {
    return;
  }
  for (const RowSpan span : rows_of(subset, view.positions)) {
    parts.push_back(part_of(view, span));
  }
}

std::vector<Part> PlanBuilder::rows_of_block(const BlockView& block, const PositionSet& subset) const {
  std::vector<Part> parts;
  append_rows(parts, block.k, subset);
  append_rows(parts, block.v, subset);
  return parts;
}

void PlanBuilder::add_message(std::vector<PlannedMessage>& list, int visit_level, int attention_rank,
                              Payload payload, std::vector<Part> parts) const {
  if (parts.empty()) {
    return;
  }
  list.push_back({.peer = sets_.digit(attention_rank, visit_level),
                  .peer_cp_rank = sets_.cp_rank_of(attention_rank, swap_member_),
                  .level = sets_.visit_levels().at(static_cast<std::size_t>(visit_level)),
                  .payload = payload,
                  .parts = std::move(parts)});
}

int PlanBuilder::communicator(const std::vector<int>& levels) {
  const auto found = std::find(plan_.communicators.begin(), plan_.communicators.end(), levels);
  const auto index = static_cast<int>(found - plan_.communicators.begin());
  if (found == plan_.communicators.end()) {
    plan_.communicators.push_back(levels);
  }
  return index;
}

}  // namespace hcp
