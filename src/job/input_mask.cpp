#include "src/job/input_mask.hpp"

#include "src/job/input_dataset.hpp"

namespace hcp {

std::vector<std::int64_t> read_mask_intervals(const std::string& path, std::int64_t row_queries,
                                              std::int64_t all_queries) {
  const Hdf5File file = open_for_reading(path);
  if (!has_dataset(file.get(), "intervals")) {
    refuse_input(path, "there is no dataset intervals; a mask is [query rows, 4] of integers");
  }
  const InputDataset dataset{path, "intervals", file.get()};
  dataset.require_integers();
  dataset.require_rank(2, "[query rows, 4], none of them 0");
  dataset.require(dataset.extent(1) == 4, "has " + std::to_string(dataset.extent(1)) +
                                              " numbers per query; 4 are needed: begin, end, begin, end");
  const std::int64_t queries = dataset.extent(0);
  const std::string all =
      all_queries == row_queries ? "" : ", or " + std::to_string(all_queries) + " of all rows";
  dataset.require(
      queries == row_queries || queries == all_queries,
      "is of " + std::to_string(queries) + " queries; a row has " + std::to_string(row_queries) + all);
  return dataset.read_integers();
}

}  // namespace hcp
