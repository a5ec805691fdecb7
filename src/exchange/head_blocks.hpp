/// How heads are dealt to the members of a head swap (the joined a2a levels).
#pragma once

#include <cstdint>
#include <set>
#include <vector>

namespace hcp {

/// Heads [begin, end).
struct HeadRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  [[nodiscard]] constexpr std::int64_t count() const { return end - begin; }
  [[nodiscard]] constexpr bool contains(std::int64_t head) const { return begin <= head && head < end; }
};

/// The query heads of one member: contiguous, as even as possible, the first heads mod members get one more.
[[nodiscard]] constexpr HeadRange query_heads_of(int member, int members, std::int64_t heads) {
  const std::int64_t base = heads / members;
  const std::int64_t longer = heads % members;
  const std::int64_t begin = member * base + (member < longer ? member : longer);
  return {begin, begin + base + (member < longer ? 1 : 0)};
}

/// The KV heads that a run of query heads uses; `query_heads` is not empty.
[[nodiscard]] constexpr HeadRange kv_heads_of(HeadRange query_heads, std::int64_t queries_per_kv) {
  return {query_heads.begin / queries_per_kv, (query_heads.end - 1) / queries_per_kv + 1};
}

/// The KV heads among a member's that a neighbour uses too: their gradients are summed by the owner of the
/// rows. Everything else a member holds is final. At most a run at the front and one at the back of its KV
/// heads.
struct SharedHeads {
  HeadRange all;    ///< KV heads of the member
  HeadRange final;  ///< those that no other member holds
  [[nodiscard]] constexpr HeadRange front() const { return {all.begin, final.begin}; }
  [[nodiscard]] constexpr HeadRange back() const { return {final.end, all.end}; }
};
[[nodiscard]] constexpr SharedHeads shared_heads_of(int member, int members, std::int64_t heads_q,
                                                    std::int64_t queries_per_kv) {
  const HeadRange all = kv_heads_of(query_heads_of(member, members, heads_q), queries_per_kv);
  HeadRange final = all;
  if (member > 0) {
    const HeadRange before = kv_heads_of(query_heads_of(member - 1, members, heads_q), queries_per_kv);
    if (before.end > final.begin) {
      final.begin = before.end;
    }
  }
  if (member + 1 < members) {
    const HeadRange after = kv_heads_of(query_heads_of(member + 1, members, heads_q), queries_per_kv);
    if (after.begin < final.end) {
      final.end = after.begin;
    }
  }
  if (final.end < final.begin) {
    final.end = final.begin;
  }
  return {all, final};
}

/// The KV heads that more than one member holds, ascending.
[[nodiscard]] inline std::vector<std::int64_t> shared_kv_heads(int members, std::int64_t heads_q,
                                                               std::int64_t queries_per_kv) {
  std::set<std::int64_t> shared;
  for (int member = 0; member < members; ++member) {
    const SharedHeads heads = shared_heads_of(member, members, heads_q, queries_per_kv);
    for (const HeadRange run : {heads.front(), heads.back()}) {
      for (std::int64_t head = run.begin; head < run.end; ++head) {
        shared.insert(head);
      }
    }
  }
  return {shared.begin(), shared.end()};
}

}  // namespace hcp
