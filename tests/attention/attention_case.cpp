#include "tests/attention/attention_case.hpp"

#include <chrono>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <mutex>
#include <numeric>
#include <random>
#include <utility>

#include "tests/harness/delayed_transport.hpp"
#include "tests/harness/thread_network.hpp"
#include "topology/level_digits.hpp"
#include "topology/mpi_collectives.hpp"

namespace hcp {
namespace {

constexpr std::chrono::microseconds longest_delay{300};  // several times what a message takes

std::size_t at(std::int64_t row, std::int64_t heads, std::int64_t head, std::int64_t dim = 1,
               std::int64_t c = 0) {
  return static_cast<std::size_t>((row * heads + head) * dim + c);
}

std::vector<float> random_tensor(std::int64_t count, DataType type, std::uint64_t seed) {
  std::mt19937_64 generator{seed};
  std::normal_distribution<float> normal;
  std::vector<float> exact(static_cast<std::size_t>(count));
  for (float& value : exact) {
    value = normal(generator);
  }
  std::vector<std::byte> stored(exact.size() * size_of(type));
  round_to(type, exact.data(), stored.data(), exact.size());
  widen(type, stored.data(), exact.data(), exact.size());
  return exact;
}

std::vector<std::int64_t> document_of_tokens(const Problem& problem) {
  std::vector<std::int64_t> document;
  for (std::size_t d = 0; d < problem.documents.size(); ++d) {
    document.insert(document.end(), static_cast<std::size_t>(problem.documents[d]),
                    static_cast<std::int64_t>(d));
  }
  return document;
}

void solve_head(const Problem& p, std::int64_t head, const std::vector<std::int64_t>& document, Answer& a) {
  const std::int64_t tokens = p.tokens();
  const std::int64_t kv_head = head / (p.heads_q / p.heads_kv);
  const double scale = p.scale();
  const auto sees = [&](std::int64_t i, std::int64_t j) {
    return document[static_cast<std::size_t>(i)] == document[static_cast<std::size_t>(j)] &&
           (!p.causal || j <= i);
  };
  std::vector<double> weight(static_cast<std::size_t>(tokens));
  for (std::int64_t i = 0; i < tokens; ++i) {
    double largest = -std::numeric_limits<double>::infinity();
    for (std::int64_t j = 0; j < tokens; ++j) {
      double s = 0.0;
      for (std::int64_t c = 0; c < p.dim_qk; ++c) {
        s += static_cast<double>(a.q[at(i, p.heads_q, head, p.dim_qk, c)]) *
             a.k[at(j, p.heads_kv, kv_head, p.dim_qk, c)];
      }
      weight[static_cast<std::size_t>(j)] = sees(i, j) ? s * scale : -std::numeric_limits<double>::infinity();
      largest = std::max(largest, weight[static_cast<std::size_t>(j)]);
    }
    double sum = 0.0;
    for (double& w : weight) {
      sum += w = std::exp(w - largest);
    }
    a.lse[at(i, p.heads_q, head)] = largest + std::log(sum);
    double delta = 0.0;
    for (std::int64_t c = 0; c < p.dim_v; ++c) {
      double out = 0.0;
      for (std::int64_t j = 0; j < tokens; ++j) {
        out += weight[static_cast<std::size_t>(j)] / sum * a.v[at(j, p.heads_kv, kv_head, p.dim_v, c)];
      }
      a.out[at(i, p.heads_q, head, p.dim_v, c)] = out;
      delta += out * a.dout[at(i, p.heads_q, head, p.dim_v, c)];
    }
    for (std::int64_t j = 0; j < tokens; ++j) {
      const double probability = weight[static_cast<std::size_t>(j)] / sum;
      if (probability == 0.0) {
        continue;
      }
      double dp = 0.0;
      for (std::int64_t c = 0; c < p.dim_v; ++c) {
        const double dout = a.dout[at(i, p.heads_q, head, p.dim_v, c)];
        dp += dout * a.v[at(j, p.heads_kv, kv_head, p.dim_v, c)];
        a.dv[at(j, p.heads_kv, kv_head, p.dim_v, c)] += probability * dout;
        a.dv_size[at(j, p.heads_kv, kv_head, p.dim_v, c)] += probability * std::abs(dout);
      }
      const double ds = scale * probability * (dp - delta);
      const double ds_size = scale * probability * (std::abs(dp) + std::abs(delta));
      for (std::int64_t c = 0; c < p.dim_qk; ++c) {
        const std::size_t iq = at(i, p.heads_q, head, p.dim_qk, c);
        const std::size_t jk = at(j, p.heads_kv, kv_head, p.dim_qk, c);
        a.dq[iq] += ds * a.k[jk];
        a.dq_size[iq] += ds_size * std::abs(static_cast<double>(a.k[jk]));
        a.dk[jk] += ds * a.q[iq];
        a.dk_size[jk] += ds_size * std::abs(static_cast<double>(a.q[iq]));
      }
    }
  }
}

void load(const std::vector<float>& whole, const PositionSet& rows, TensorView target) {
  std::int64_t row = 0;
  const std::int64_t elements = target.row_elements();
  for (const PositionRange& range : rows) {
    round_to(target.type, whole.data() + range.begin * elements, target.row_slice(row, range.size()).data,
             static_cast<std::size_t>(range.size() * elements));
    row += range.size();
  }
}

std::vector<std::byte> bytes_of(TensorView view) {
  return {view.data, view.data + view.bytes()};
}

}  // namespace

std::int64_t Problem::tokens() const {
  return std::accumulate(documents.begin(), documents.end(), std::int64_t{0});
}

float Problem::scale() const {
  return 1.0F / std::sqrt(static_cast<float>(dim_qk));
}

AttentionMask Problem::mask() const {
  std::vector<std::int64_t> offsets{0};
  for (const std::int64_t length : documents) {
    offsets.push_back(offsets.back() + length);
  }
  return causal ? AttentionMask::causal(offsets) : AttentionMask::no_mask(offsets);
}

std::string Problem::describe() const {
  std::string text = std::to_string(tokens()) + " tokens in documents of";
  for (const std::int64_t length : documents) {
    text += " " + std::to_string(length);
  }
  return text + (causal ? ", causal" : ", no_mask") + ", heads " + std::to_string(heads_q) + ":" +
         std::to_string(heads_kv) + ", dims " + std::to_string(dim_qk) + "/" + std::to_string(dim_v) + ", " +
         std::string{name_of(type)} + ", seed " + std::to_string(seed);
}

std::string Setting::describe() const {
  const Scheme scheme{levels};
  return scheme.name() + " " + scheme.sizes() + ", " + std::string{name_of(partition)} +
         ", gradients travel in " + std::string{name_of(gradient_wire)};
}

namespace {

/// The share of every `stride`-th head from `first` on, zero elsewhere.
Answer solve_heads(const Problem& p, Answer a, int first, int stride) {
  a.out.assign(a.dout.size(), 0.0);
  a.lse.assign(static_cast<std::size_t>(p.tokens() * p.heads_q), 0.0);
  for (auto* tensor : {&a.dq, &a.dq_size}) {
    tensor->assign(a.q.size(), 0.0);
  }
  for (auto* tensor : {&a.dk, &a.dk_size}) {
    tensor->assign(a.k.size(), 0.0);
  }
  for (auto* tensor : {&a.dv, &a.dv_size}) {
    tensor->assign(a.v.size(), 0.0);
  }
  const std::vector<std::int64_t> document = document_of_tokens(p);
  for (std::int64_t head = first; head < p.heads_q; head += stride) {
    solve_head(p, head, document, a);
  }
  return a;
}

using TransportMaker =
    std::function<std::unique_ptr<Transport>(const std::vector<int>& levels, const LevelPlace& place)>;

}  // namespace

Answer random_input(const Problem& p) {
  const std::int64_t n = p.tokens();
  Answer a;
  a.q = random_tensor(n * p.heads_q * p.dim_qk, p.type, p.seed * 4);
  a.k = random_tensor(n * p.heads_kv * p.dim_qk, p.type, p.seed * 4 + 1);
  a.v = random_tensor(n * p.heads_kv * p.dim_v, p.type, p.seed * 4 + 2);
  a.dout = random_tensor(n * p.heads_q * p.dim_v, p.type, p.seed * 4 + 3);
  if (p.positive_dv) {
    for (float& value : a.dout) {
      value = std::abs(value);
    }
  }
  return a;
}

Answer solve(const Problem& problem) {
  return solve(problem, random_input(problem));
}

Answer solve(const Problem& problem, Answer input) {
  return solve_heads(problem, std::move(input), 0, 1);
}

Answer solve(const Problem& p, const MpiCommunicator& comm) {
  Answer a = solve_heads(p, random_input(p), comm.rank(), comm.size());
  for (auto* tensor : {&a.out, &a.lse, &a.dq, &a.dk, &a.dv, &a.dq_size, &a.dk_size, &a.dv_size}) {
    all_reduce(comm, Reduction::sum, std::span<double>{*tensor});
  }
  return a;
}

namespace {

/// What the transport of each communicator of the plan sent, by CP rank of the receiver.
TrafficLedger counted_by(const std::vector<std::unique_ptr<Transport>>& transports, const ExchangePlan& plan,
                         const std::vector<Level>& levels, const std::vector<int>& sizes, int rank) {
  TrafficLedger ledger;
  for (std::size_t c = 0; c < transports.size(); ++c) {
    const auto group = static_cast<std::size_t>(level_place(rank, sizes, plan.communicators[c]).group);
    const std::vector<int> members = level_groups(sizes, plan.communicators[c]).at(group);
    for (const SentCount& count : transports[c]->sent()) {
      const int peer = members.at(static_cast<std::size_t>(count.peer));
      ledger[{pass_of_tag(count.tag), peer, outermost_difference(rank, peer, levels),
              payload_of_tag(count.tag)}] += {count.bytes, count.messages};
    }
  }
  return ledger;
}

LocalResult run_rank(const Problem& problem, const Setting& setting, const Answer& answer, int rank,
                     const TransportMaker& make_transport, const std::function<void()>& before_forward) {
  std::vector<int> sizes;
  std::vector<int> swaps;
  for (std::size_t level = 0; level < setting.levels.size(); ++level) {
    sizes.push_back(setting.levels[level].size);
    if (setting.levels[level].algorithm == Algorithm::a2a) {
      swaps.push_back(static_cast<int>(level));
    }
  }
  const int ranks = Scheme{setting.levels}.size();
  const SequencePartition partition{setting.partition, problem.documents, ranks};
  const AttentionMask mask = problem.mask();
  LayerGeometry geometry{.levels = setting.levels,
                         .shards = {},
                         .mask = &mask,
                         .heads_q = problem.heads_q,
                         .heads_kv = problem.heads_kv,
                         .dim_qk = problem.dim_qk,
                         .dim_v = problem.dim_v,
                         .storage = problem.type,
                         .gradient_wire = setting.gradient_wire};
  for (int holder = 0; holder < ranks; ++holder) {
    PositionSet shard;
    for (const TokenRange& range : partition.ranges_of(shard_number(holder, sizes, swaps))) {
      shard.push_back({range.begin, range.end});
    }
    geometry.shards.push_back(std::move(shard));
  }

  LocalResult result{.plan = make_exchange_plan(geometry, rank),
                     .shard = geometry.shards[static_cast<std::size_t>(rank)],
                     .tensors = {}};
  std::vector<std::unique_ptr<Transport>> transports;
  std::vector<Transport*> borrowed;
  for (const std::vector<int>& levels : result.plan.communicators) {
    transports.push_back(make_transport(levels, level_place(rank, sizes, levels)));
    borrowed.push_back(transports.back().get());
  }

  MemoryLedger ledger;
  PhaseLog log;
  const auto kernel = make_cpu_attention_kernel(setting.threads);
  const LayerTensors tensors{result.plan, PassSelection::both, ledger};
  load(answer.q, result.shard, tensors.view(array_q));
  load(answer.k, result.shard, tensors.view(array_k));
  load(answer.v, result.shard, tensors.view(array_v));
  load(answer.dout, result.shard, tensors.view(array_dout));
  for (const KnownArray array : {array_out, array_dq, array_dk, array_dv}) {  // stale values must not survive
    std::memset(tensors.view(array).data, 0xFF, static_cast<std::size_t>(tensors.view(array).bytes()));
  }
  ContextParallelAttention attention{result.plan,
                                     {.mask = &mask, .heads = {}, .softmax_scale = problem.scale()},
                                     *kernel,
                                     borrowed,
                                     ledger,
                                     log,
                                     0};
  if (before_forward) {
    before_forward();
  }
  attention.forward(tensors, true);
  attention.backward(tensors);

  for (const KnownArray array : {array_out, array_dq, array_dk, array_dv, array_lse}) {
    result.tensors.push_back(bytes_of(tensors.view(array)));
  }
  result.counted = counted_by(transports, result.plan, setting.levels, sizes, rank);
  for (std::size_t c = 0; c < memory_categories; ++c) {
    result.peaks[c] = ledger.peak(static_cast<MemoryCategory>(c));
  }
  result.peak_total = ledger.peak_total();
  return result;
}

}  // namespace

LocalResult run_case(const Problem& problem, const Setting& setting, const Answer& answer,
                     const MpiCommunicator& comm, const std::function<void()>& before_forward) {
  return run_rank(
      problem, setting, answer, comm.rank(),
      [&](const std::vector<int>& /*levels*/, const LevelPlace& place) -> std::unique_ptr<Transport> {
        const MpiCommunicator group = comm.split(place.group, place.rank);
        std::unique_ptr<Transport> transport = make_mpi_transport(group, 60.0);
        return setting.delay_seed
                   ? make_delayed_transport(std::move(transport), *setting.delay_seed, longest_delay)
                   : std::move(transport);
      },
      before_forward);
}

std::vector<LocalResult> run_case_on_threads(const Problem& problem, const Setting& setting,
                                             const Answer& answer) {
  std::vector<LocalResult> results(static_cast<std::size_t>(Scheme{setting.levels}.size()));
  std::mutex mutex;
  std::map<std::pair<std::vector<int>, int>, ThreadNetwork> networks;  // by levels and group
  run_as_threads(static_cast<int>(results.size()), [&](int rank) {
    results[static_cast<std::size_t>(rank)] =
        run_rank(problem, setting, answer, rank,
                 [&](const std::vector<int>& levels, const LevelPlace& place) {
                   const std::lock_guard lock{mutex};
                   return networks[{levels, place.group}].transport(place.rank, place.size);
                 },
                 {});
  });
  return results;
}

}  // namespace hcp
