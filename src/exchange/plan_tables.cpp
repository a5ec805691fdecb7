// Arrays, views and instructions: the vocabulary in which the plan is written.
#include <algorithm>
#include <stdexcept>
#include <utility>

#include "src/exchange/plan_builder.hpp"

namespace hcp {

ArrayId PlanBuilder::array(const std::string& name, MemoryCategory category, DataType type, std::int64_t rows,
                           std::int64_t heads, std::int64_t dim) {
  const auto [place, inserted] = by_name_.try_emplace(name, static_cast<ArrayId>(plan_.arrays.size()));
  if (inserted) {
    plan_.arrays.push_back({name, category, type, 0, heads, dim});
  }
  ArrayPlan& found = plan_.arrays.at(static_cast<std::size_t>(place->second));
  if (found.heads != heads || found.dim != dim || found.type != type) {
    throw std::logic_error{"array '" + name + "' is asked for with two shapes"};
  }
  found.rows = std::max(found.rows, rows);
  return place->second;
}

View PlanBuilder::view_of(ArrayId id, PositionSet positions) const {
  const ArrayPlan& array = plan_.arrays.at(static_cast<std::size_t>(id));
  return packed(id, 0, array.row_elements(), std::move(positions));
}

View PlanBuilder::heads_of(ArrayId id, PositionSet positions, HeadRange heads) const {
  const ArrayPlan& array = plan_.arrays.at(static_cast<std::size_t>(id));
  return {id, heads.begin * array.dim, array.row_elements(), heads.count() * array.dim, std::move(positions)};
}

View PlanBuilder::packed(ArrayId array, std::int64_t offset, std::int64_t elements, PositionSet positions) {
  return {array, offset, elements, elements, std::move(positions)};
}

BlockView PlanBuilder::kv_block(const std::string& name, MemoryCategory category, DataType type,
                                const PositionSet& positions) {
  const std::int64_t heads = swaps() ? kv_heads(swap_member_).all.count() : geometry_.heads_kv;
  const std::int64_t rows = count_of(positions);
  return {view_of(array(name + "k", category, type, rows, heads, geometry_.dim_qk), positions),
          view_of(array(name + "v", category, type, rows, heads, geometry_.dim_v), positions)};
}

BlockView PlanBuilder::zeroed_block(const std::string& name, MemoryCategory category,
                                    const PositionSet& positions) {
  const BlockView block = kv_block(name, category, DataType::fp32, positions);
  fill(block.k.array, count_of(positions), 0.0F);
  fill(block.v.array, count_of(positions), 0.0F);
  return block;
}

std::vector<BlockView> PlanBuilder::packed_blocks(const std::string& name, MemoryCategory category,
                                                  DataType type, const std::vector<PositionSet>& sets) {
  std::int64_t rows = 0;
  std::vector<BlockView> blocks;
  for (const PositionSet& positions : sets) {
    BlockView block = kv_block(name, category, type, positions);
    block.k.offset = rows * block.k.stride;
    block.v.offset = rows * block.v.stride;
    rows += count_of(positions);
    blocks.push_back(std::move(block));
  }
  for (const BlockView& block : blocks) {
    for (const ArrayId id : {block.k.array, block.v.array}) {
      ArrayPlan& array = plan_.arrays.at(static_cast<std::size_t>(id));
      array.rows = std::max(array.rows, rows);
    }
  }
  return blocks;
}

View PlanBuilder::rounded(const View& view, DataType type, const std::string& name, MemoryCategory category) {
  const bool whole_rows = view.stride == view.elements;
  if (whole_rows && plan_.arrays.at(static_cast<std::size_t>(view.array)).type == type) {
    return view;
  }
  const std::int64_t dim = plan_.arrays.at(static_cast<std::size_t>(view.array)).dim;
  const ArrayId copy = array(name, category, type, count_of(view.positions), view.elements / dim, dim);
  const View result = view_of(copy, view.positions);
  move(Move::Kind::assign, view, result, view.positions);
  return result;
}

void PlanBuilder::emit(decltype(Instruction::action) action) {
  program_->instructions.push_back({std::move(action), current_level_, current_step_});
}

int PlanBuilder::post(Transfer transfer) {
  if (transfer.sends.empty() && transfer.receives.empty()) {
    return -1;
  }
  const int id = static_cast<int>(program_->transfers.size());
  transfer.level = current_level_;
  transfer.step = current_step_;
  program_->transfers.push_back(std::move(transfer));
  emit(Post{id});
  return id;
}

void PlanBuilder::wait(int transfer) {
  if (transfer >= 0) {
    emit(Wait{transfer});
  }
}

void PlanBuilder::fill(ArrayId array, std::int64_t rows, float value) {
  if (rows > 0) {
    emit(Fill{array, rows, value});
  }
}

void PlanBuilder::move(Move::Kind kind, const View& from, const View& to, const PositionSet& subset) {
  const std::vector<RowSpan> sources = rows_of(subset, from.positions);
  const std::vector<RowSpan> targets = rows_of(subset, to.positions);
  if (from.elements == 0) {
    return;
  }
  std::size_t s = 0;
  std::size_t t = 0;
  std::int64_t source_done = 0;  // rows of sources[s] and targets[t] that are moved already
  std::int64_t target_done = 0;
  while (s < sources.size() && t < targets.size()) {
    const std::int64_t rows = std::min(sources[s].count - source_done, targets[t].count - target_done);
    emit(Move{kind,
              {from.array, from.offset + (sources[s].first + source_done) * from.stride, from.stride},
              {to.array, to.offset + (targets[t].first + target_done) * to.stride, to.stride},
              rows,
              from.elements});
    source_done += rows;
    target_done += rows;
    if (source_done == sources[s].count) {
      ++s;
      source_done = 0;
    }
    if (target_done == targets[t].count) {
      ++t;
      target_done = 0;
    }
  }
}

void PlanBuilder::move(Move::Kind kind, const BlockView& from, const BlockView& to,
                       const PositionSet& subset) {
  move(kind, from.k, to.k, subset);
  move(kind, from.v, to.v, subset);
}

void PlanBuilder::append_rows(std::vector<Part>& parts, const View& view, const PositionSet& subset) const {
  if (view.stride != view.elements) {
    throw std::logic_error{"a message takes whole rows only"};
  }
  if (view.elements == 0) {
    return;
  }
  const auto size =
      static_cast<std::int64_t>(size_of(plan_.arrays.at(static_cast<std::size_t>(view.array)).type));
  for (const RowSpan span : rows_of(subset, view.positions)) {
    parts.push_back(
        {view.array, (view.offset + span.first * view.stride) * size, span.count * view.stride * size});
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
