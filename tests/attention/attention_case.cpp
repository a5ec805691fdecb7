#include "tests/attention/attention_case.hpp"

#include <algorithm>
#include <chrono>
#include <map>
#include <mutex>
#include <sstream>
#include <utility>

#include "tests/exchange/planned_group.hpp"
#include "tests/harness/delayed_transport.hpp"
#include "tests/harness/thread_network.hpp"
#include "topology/level_digits.hpp"

namespace hcp {
namespace {

constexpr std::chrono::microseconds longest_delay{300};  // several times what a message takes
constexpr float stale = 1e9F;                            // must not survive

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

test::SoftmaxCase Problem::of_kv_head(std::int64_t kv_head) const {
  const std::int64_t queries_per_kv = heads_q / heads_kv;
  const std::int64_t first = kv_head * queries_per_kv;
  test::SoftmaxCase part{.attention = {.heads_q = queries_per_kv,
                                       .heads_kv = 1,
                                       .heads = {first, kv_head, queries_per_kv},
                                       .dim_qk = dim_qk,
                                       .dim_v = dim_v,
                                       .type = type,
                                       .any_mask = mask,
                                       .scale = softmax_scale},
                         .documents_per_row = dropout.documents_per_row,
                         .dropout = dropout.probability,
                         .seed = dropout.seed,
                         .layer = dropout.layer,
                         .first_head = dropout.first_head};
  if (!sinks.empty()) {
    part.sinks.assign(sinks.begin() + first, sinks.begin() + first + queries_per_kv);
  }
  return part;
}

std::string Problem::describe() const {
  std::ostringstream text;
  text << test::text_of(mask) << ", heads " << heads_q << ':' << heads_kv << ", dims " << dim_qk << '/'
       << dim_v << ", " << name_of(type) << ", seed " << seed;
  if (!sinks.empty()) {
    text << ", sinks";
    for (const float sink : sinks) {
      text << ' ' << sink;
    }
  }
  if (softmax_scale) {
    text << ", scale " << *softmax_scale;
  }
  if (dropout.drops()) {
    text << ", dropout " << dropout.probability << " by seed " << dropout.seed << ", layer " << dropout.layer
         << ", heads from " << dropout.first_head << ", " << dropout.documents_per_row
         << " documents in a row";
  }
  return text.str();
}

std::string Setting::describe() const {
  const Scheme scheme{levels};
  std::ostringstream text;
  text << scheme.name() << ' ' << scheme.sizes() << ", " << name_of(partition);
  if (partition == Partition::striped) {
    text << " by " << stripe_size;
  }
  text << ", gradients travel in " << name_of(gradient_wire) << ", threads " << threads;
  if (delay_seed) {
    text << ", delays by seed " << *delay_seed;
  }
  text << ", " << name_of(message_form) << " messages";
  return text.str();
}

namespace {

using TransportMaker =
    std::function<std::unique_ptr<Transport>(const std::vector<int>& levels, const LevelPlace& place)>;

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
  for (const Level& level : setting.levels) {
    sizes.push_back(level.size);
  }
  const AttentionMask mask = problem.mask.mask();
  DealtShards shards = dealt(setting.levels, setting.partition, problem.mask, setting.stripe_size);
  const LayerGeometry geometry{.levels = setting.levels,
                               .shards = std::move(shards.queries),
                               .kv_shards = std::move(shards.keys),
                               .mask = &mask,
                               .heads_q = problem.heads_q,
                               .heads_kv = problem.heads_kv,
                               .dim_qk = problem.dim_qk,
                               .dim_v = problem.dim_v,
                               .storage = problem.type,
                               .gradient_wire = setting.gradient_wire,
                               .message_form = setting.message_form};

  LocalResult result{.plan = make_exchange_plan(geometry, rank),
                     .shard = geometry.shards[static_cast<std::size_t>(rank)],
                     .kv_shard = geometry.kv_shards[static_cast<std::size_t>(rank)],
                     .tensors = {}};
  std::vector<std::unique_ptr<Transport>> transports;
  std::vector<Transport*> borrowed;
  for (const std::vector<int>& levels : result.plan.communicators) {
    transports.push_back(make_transport(levels, level_place(rank, sizes, levels)));
    borrowed.push_back(transports.back().get());
  }

  MemoryLedger ledger;
  PhaseLog log;
  const BackEnd back_end = make_host_back_end(make_cpu_attention_kernel(setting.threads));
  const LayerTensors tensors{result.plan, PassSelection::both, ledger};
  load(answer.q, result.shard, tensors.view(array_q));
  load(answer.k, result.kv_shard, tensors.view(array_k));
  load(answer.v, result.kv_shard, tensors.view(array_v));
  load(answer.dout, result.shard, tensors.view(array_dout));
  for (const KnownArray array : {array_out, array_dq, array_dk, array_dv}) {  // stale values must not survive
    const TensorView stale_view = tensors.view(array);
    std::fill_n(stale_view.data, stale_view.bytes(), std::byte{0xFF});
  }
  const auto heads = static_cast<std::size_t>(problem.heads_q);
  result.dsinks.assign(problem.sinks.empty() ? 0 : heads, stale);
  result.max_logits.assign(heads, stale);
  const std::vector<std::int64_t> query_offsets = test::offsets_of(problem.mask.doc_lengths);
  const std::vector<std::int64_t> key_offsets = test::offsets_of(problem.mask.key_lengths());
  BlockRule rule{.mask = &mask,
                 .heads = {},
                 .softmax_scale = problem.of_kv_head(0).attention.softmax_scale(),
                 .dropout = problem.dropout};
  rule.dropout.query_offsets = query_offsets;
  rule.dropout.key_offsets = key_offsets;
  ContextParallelAttention attention{
      result.plan,
      rule,
      back_end,
      borrowed,
      ledger,
      log,
      static_cast<int>(problem.dropout.layer),
      {.sinks = problem.sinks, .dsinks = result.dsinks, .max_logits = result.max_logits}};
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
