// Errors and the list of schemes: what a case is held against.
#include <algorithm>
#include <cmath>
#include <deque>
#include <functional>
#include <limits>
#include <span>
#include <stdexcept>

#include "tests/attention/attention_case.hpp"
#include "topology/mpi_collectives.hpp"

namespace hcp {
namespace {

struct Norms {
  double error = 0.0;
  double reference = 0.0;
  double size = 0.0;
  double element = 0.0;

  /// @param m  size of the sum behind `ref`, and of others that are not counted here
  void add(double x, double ref, double m) {
    const bool sums_nothing = ref == 0.0 && m == 0.0;  // sees nothing, or is seen by nobody
    if (std::isinf(ref) || std::isnan(x) || std::isinf(x) || sums_nothing) {
      if (x != ref) {
        error = element = std::numeric_limits<double>::infinity();
      }
      return;
    }
    error += (x - ref) * (x - ref);
    reference += ref * ref;
    element = std::max(element, std::abs(x - ref) / (1.0 + std::abs(ref)));
  }
  void add_size(double m) { size += m * m; }
  [[nodiscard]] double relative() const {
    if (error == 0.0) {
      return 0.0;
    }
    return std::sqrt(error) / std::sqrt(std::max(reference, size));
  }
};

struct Checked {
  const char* name;
  bool of_keys;
  const std::vector<double>& reference;
  const std::vector<double>* size;  ///< of the sums behind the reference, [rows, heads]
  std::int64_t heads;
  std::int64_t dim;
};

/// In the order of LocalResult::tensors.
std::vector<Checked> checked_tensors(const Problem& p, const Answer& answer) {
  return {{"out", false, answer.out, nullptr, p.heads_q, p.dim_v},
          {"dq", false, answer.dq, &answer.dq_size, p.heads_q, p.dim_qk},
          {"dk", true, answer.dk, &answer.dk_size, p.heads_kv, p.dim_qk},
          {"dv", true, answer.dv, &answer.dv_size, p.heads_kv, p.dim_v},
          {"lse", false, answer.lse, &answer.lse_size, p.heads_q, 1}};
}

/// Adds every element of a rank's tensors to norms_of(tensor, range of rows).
template <typename NormsOf>
void compare(const Problem& p, const Answer& answer, const LocalResult& result, const NormsOf& norms_of) {
  const std::vector<Checked> checked = checked_tensors(p, answer);
  for (std::size_t t = 0; t < checked.size(); ++t) {
    const Checked& tensor = checked[t];
    const bool is_lse = t == 4;
    const DataType type = is_lse ? DataType::fp32 : p.type;
    const std::int64_t first_head = is_lse ? result.plan.first_head_q : 0;
    const std::int64_t heads = is_lse ? result.plan.heads_q : tensor.heads;
    std::vector<float> values(result.tensors[t].size() / size_of(type));
    widen(type, result.tensors[t].data(), values.data(), values.size());
    const PositionSet& held = tensor.of_keys ? result.kv_shard : result.shard;
    std::size_t next = 0;
    for (const PositionRange& range : is_lse ? result.plan.rows : held) {
      Norms& norms = norms_of(t, range);
      for (std::int64_t token = range.begin; token < range.end; ++token) {
        for (std::int64_t head = first_head; head < first_head + heads; ++head) {
          const auto row = static_cast<std::size_t>(token * tensor.heads + head);
          const double size = tensor.size ? tensor.size->at(row) : 0.0;
          norms.add_size(size);
          const auto dim = static_cast<std::size_t>(tensor.dim);
          for (std::size_t c = 0; c < dim; ++c) {
            norms.add(values.at(next++), tensor.reference.at(row * dim + c), size);
          }
        }
      }
    }
    if (next != values.size()) {
      throw std::logic_error{std::string{tensor.name} + " has other rows than the rank's shard"};
    }
  }
}

}  // namespace

void CaseErrors::include(const CaseErrors& other) {
  if (!(other.worst <= worst)) {
    worst = other.worst;
    where = other.where;
  }
  element = std::max(element, other.element);
}

CaseErrors errors_of(const Problem& p, const Answer& answer, const LocalResult& result) {
  struct Chunk {
    std::size_t tensor;
    PositionRange range;
    Norms norms;
  };
  std::deque<Chunk> chunks;
  compare(p, answer, result, [&](std::size_t tensor, const PositionRange& range) -> Norms& {
    return chunks.emplace_back(Chunk{tensor, range, {}}).norms;
  });
  const std::vector<Checked> checked = checked_tensors(p, answer);
  CaseErrors errors;
  for (const Chunk& chunk : chunks) {
    errors.include({chunk.norms.relative(),
                    std::string{checked[chunk.tensor].name} + " of tokens " +
                        std::to_string(chunk.range.begin) + ".." + std::to_string(chunk.range.end),
                    chunk.norms.element});
  }
  return errors;
}

HeadTerms head_terms(const LocalResult& result, const MpiCommunicator& comm) {
  HeadTerms terms = head_terms(std::vector{result});
  all_reduce(comm, Reduction::sum, std::span<double>{terms.dsinks});
  all_reduce(comm, Reduction::max, std::span<double>{terms.max_logits});
  return terms;
}

HeadTerms head_terms(const std::vector<LocalResult>& results) {
  HeadTerms terms{
      std::vector<double>(results.front().dsinks.size()),
      std::vector<double>(results.front().max_logits.size(), -std::numeric_limits<double>::infinity())};
  for (const LocalResult& result : results) {
    std::ranges::transform(terms.dsinks, result.dsinks, terms.dsinks.begin(), std::plus<double>{});
    std::ranges::transform(terms.max_logits, result.max_logits, terms.max_logits.begin(),
                           [](double a, double b) { return std::max(a, b); });
  }
  return terms;
}

CaseErrors errors_of(const Answer& answer, const HeadTerms& terms) {
  const auto error = [](const char* name, const std::vector<double>& x, const std::vector<double>& reference,
                        const std::vector<double>& size) -> CaseErrors {
    Norms norms;
    for (std::size_t head = 0; head < reference.size(); ++head) {
      norms.add_size(size[head]);
      norms.add(x.at(head), reference[head], size[head]);
    }
    return {norms.relative(), name, norms.element};
  };
  CaseErrors errors = error("dsinks", terms.dsinks, answer.dsinks, answer.dsinks_size);
  errors.include(error("max_logits", terms.max_logits, answer.max_logits, answer.max_logits_size));
  return errors;
}

std::array<double, 5> whole_errors(const Problem& p, const Answer& answer,
                                   const std::vector<LocalResult>& results) {
  std::array<Norms, 5> norms;
  for (const LocalResult& result : results) {
    compare(p, answer, result,
            [&](std::size_t tensor, const PositionRange&) -> Norms& { return norms.at(tensor); });
  }
  std::array<double, 5> errors{};
  std::transform(norms.begin(), norms.end(), errors.begin(), [](const Norms& n) { return n.relative(); });
  return errors;
}

std::vector<std::vector<Level>> schemes_on(int ranks) {
  constexpr Algorithm algorithms[] = {Algorithm::p2p, Algorithm::all_gather, Algorithm::a2a};
  if (ranks == 1) {
    return {{}};
  }
  std::vector<std::vector<Level>> schemes;
  for (const Algorithm only : algorithms) {
    schemes.push_back({{only, ranks}});
  }
  for (int inner = 2; inner < ranks; ++inner) {
    if (ranks % inner != 0 || ranks / inner < 2) {
      continue;
    }
    for (const Algorithm a : algorithms) {
      for (const Algorithm b : algorithms) {
        schemes.push_back({{a, inner}, {b, ranks / inner}});
      }
    }
  }
  if (ranks == 8) {
    schemes.push_back({{Algorithm::p2p, 2}, {Algorithm::a2a, 2}, {Algorithm::p2p, 2}});
    schemes.push_back({{Algorithm::a2a, 2}, {Algorithm::all_gather, 2}, {Algorithm::p2p, 2}});
    schemes.push_back({{Algorithm::a2a, 2}, {Algorithm::p2p, 2}, {Algorithm::a2a, 2}});
  }
  return schemes;
}

}  // namespace hcp
