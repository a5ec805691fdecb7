// Arrays, views and what is done to them: the vocabulary in which the plan is written.
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

void PlanBuilder::fill(ArrayId array, std::int64_t rows, float value) {
  if (rows > 0) {
    emit(Fill{array, rows, value});
  }
}

namespace {

/// How many runs from `first` on are equally long and follow each other at one distance in each table.
std::size_t alike_from(std::size_t first, const std::vector<RowRun>& runs) {
  const auto distance = [&](std::size_t run) {
    return std::pair{runs[run].from - runs[run - 1].from, runs[run].to - runs[run - 1].to};
  };
  std::size_t next = first + 1;
  while (next < runs.size() && runs[next].rows == runs[first].rows && distance(next) == distance(first + 1) &&
         distance(next).first > 0 && distance(next).second > 0) {
    ++next;
  }
  return next - first;
}

}  // namespace

std::vector<Move> PlanBuilder::moves_of(Move::Kind kind, const View& from, const View& to,
                                        const std::vector<RowRun>& runs) const {
  const auto table = [](const View& view, std::int64_t row, std::int64_t stride_rows) {
    return Table{view.array, view.offset + row * view.stride, stride_rows * view.stride};
  };
  const bool whole_rows = from.stride == from.elements && to.stride == to.elements;
  std::vector<Move> moves;
  for (std::size_t i = 0; i < runs.size();) {
    const RowRun& run = runs[i];
    const std::size_t alike = geometry_.message_form == MessageForm::scattered ? 1 : alike_from(i, runs);
    const bool is_one_row = whole_rows || run.rows == 1;
    // A kernel works row by row, so few long rows would leave most of a device idle.
    if (alike > 1 && is_one_row && static_cast<std::int64_t>(alike) >= run.rows) {
      moves.push_back({kind, table(from, run.from, runs[i + 1].from - run.from),
                       table(to, run.to, runs[i + 1].to - run.to), static_cast<std::int64_t>(alike),
                       run.rows * from.elements});
      i += alike;
      continue;
    }
    for (const std::size_t end = i + alike; i < end; ++i) {
      moves.push_back(
          {kind, table(from, runs[i].from, 1), table(to, runs[i].to, 1), runs[i].rows, from.elements});
    }
  }
  return moves;
}

void PlanBuilder::move(Move::Kind kind, const View& from, const View& to, const PositionSet& subset) {
  const std::vector<RowSpan> sources = rows_of(subset, from.positions);
  const std::vector<RowSpan> targets = rows_of(subset, to.positions);
  if (from.elements == 0) {
    return;
  }
  std::vector<RowRun> runs;
  std::size_t s = 0;
  std::size_t t = 0;
  std::int64_t source_done = 0;  // rows of sources[s] and targets[t] that are moved already
  std::int64_t target_done = 0;
  while (s < sources.size() && t < targets.size()) {
    const std::int64_t rows = std::min(sources[s].count - source_done, targets[t].count - target_done);
    runs.push_back({sources[s].first + source_done, targets[t].first + target_done, rows});
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
  for (const Move& move : moves_of(kind, from, to, runs)) {
    emit(move);
  }
}

void PlanBuilder::move(Move::Kind kind, const BlockView& from, const BlockView& to,
                       const PositionSet& subset) {
  move(kind, from.k, to.k, subset);
  move(kind, from.v, to.v, subset);
}

}  // namespace hcp
