/// A scheme of context parallelism: one algorithm per level of the CP group, inner first.
///
///   p2p+a2a with sizes 2,3:   node        0     1     2
///                             CP ranks   0 1   2 3   4 5
///     level 0, p2p, size 2    a ring in  {0,1} {2,3} {4,5}
///     level 1, a2a, size 3    a swap in  {0,2,4} {1,3,5}
///
/// Names and sizes come from the user; which of them make a scheme is decided here, without any ranks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hcp {

enum class Algorithm : std::uint8_t {
  p2p,         ///< KV blocks circulate in a ring
  all_gather,  ///< KV is gathered once, dKV is scattered and reduced
  a2a,         ///< heads are swapped for sequence before attention and back after it
};
[[nodiscard]] std::string_view name_of(Algorithm algorithm);

struct Level {
  Algorithm algorithm = Algorithm::p2p;
  int size = 1;  ///< ranks in one group of the level
  friend bool operator==(const Level&, const Level&) = default;
};

struct Scheme {
  std::vector<Level> levels;  ///< inner first

  [[nodiscard]] std::string name() const;   ///< "p2p+a2a"; "none" without levels
  [[nodiscard]] std::string sizes() const;  ///< "2,3"; "1" without levels
  [[nodiscard]] int size() const;           ///< ranks in the CP group, the product over all levels
  [[nodiscard]] int a2a_size() const;       ///< ranks in one head swap, the product over the a2a levels
  friend bool operator==(const Scheme&, const Scheme&) = default;
};

/// "p2p+a2a" to its algorithms. `allgather` is read as all_gather.
/// @throws std::invalid_argument for an unknown or missing name
[[nodiscard]] std::vector<Algorithm> parse_scheme_name(std::string_view text);

/// The names joined by '+', in canonical spelling.
[[nodiscard]] std::string scheme_name(const std::vector<Algorithm>& algorithms);

/// Where the ranks of one CP group live; the same for every CP group of a run.
struct CpNodes {
  int ranks_per_node = 1;
  int nodes = 1;
};

enum class SizesSource : std::uint8_t {
  whole_group,  ///< one level spans the CP group
  given,        ///< by the user
  node_layout,  ///< CP ranks per node, nodes
};
[[nodiscard]] std::string_view name_of(SizesSource source);

struct ResolvedScheme {
  Scheme requested;  ///< every level, those of size 1 included
  Scheme effective;  ///< without levels of size 1; no level at all on one rank
  SizesSource source = SizesSource::whole_group;
  std::vector<std::string> notes;  ///< what the user should know, as "p2p+a2a runs as p2p: one node"
};

/// Everything about names and sizes that can be refused before the node layout is known.
/// @param algorithms of one layer, as parse_scheme_name returns them
/// @param sizes inner first; empty when the user gave none
/// @throws std::invalid_argument if a size is below 1, joined names and sizes differ in number, the product
/// of
///         the sizes is not `cp_size` or overflows, or three and more names come without sizes
void check_scheme(const std::vector<Algorithm>& algorithms, int cp_size, const std::vector<int>& sizes);

/// Gives every level its size. Without sizes one name spans the whole group and two names take (CP ranks per
/// node, nodes) from `nodes`; one name with k sizes stands for k levels of that algorithm.
/// @throws std::invalid_argument as check_scheme, and if two names come with neither sizes nor `nodes`
[[nodiscard]] ResolvedScheme resolve_scheme(const std::vector<Algorithm>& algorithms, int cp_size,
                                            const std::vector<int>& sizes, std::optional<CpNodes> nodes);

/// @param query_heads of one rank before the head swap (query heads of the model / tensor-parallel size)
/// @throws std::invalid_argument if the head swap would leave a rank without a query head
void check_query_heads(const Scheme& scheme, std::int64_t query_heads);

}  // namespace hcp
