#include "tests/software_gpu/nccl/nccl_world.hpp"

#include <cstring>
#include <mutex>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/software_gpu/gpu.hpp"
#include "tests/software_gpu/nccl/launch_order.hpp"
#include "tests/software_gpu/nccl/nccl_record.hpp"
#include "tests/software_gpu/operation.hpp"

namespace hcp::software_gpu {
namespace {

MPI_Comm world = MPI_COMM_NULL;

class Packer {
 public:
  void put(std::int64_t number) {
    bytes_.append(reinterpret_cast<const char*>(&number), sizeof number);  // NOLINT: as it lies in memory
  }
  void put(const std::string& text) {
    put(std::ssize(text));
    bytes_ += text;
  }
  void put(const std::vector<int>& numbers) {
    put(std::ssize(numbers));
    for (const int number : numbers) {
      put(std::int64_t{number});
    }
  }
  [[nodiscard]] const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

class Unpacker {
 public:
  explicit Unpacker(const char* begin) : next_{begin} {}
  std::int64_t number() {
    std::int64_t number = 0;
    std::memcpy(&number, next_, sizeof number);
    next_ += sizeof number;
    return number;
  }
  std::string text() {
    const auto length = static_cast<std::size_t>(number());
    next_ += length;
    return {next_ - length, length};
  }
  std::vector<int> numbers() {
    std::vector<int> numbers(static_cast<std::size_t>(number()));
    for (int& each : numbers) {
      each = static_cast<int>(number());
    }
    return numbers;
  }

 private:
  const char* next_;
};

/// Communicators that were aborted, then launches.
std::string packed(const NcclRecord& record) {
  Packer packer;
  packer.put(std::ssize(record.aborted));
  for (const std::int64_t communicator : record.aborted) {
    packer.put(communicator);
  }
  packer.put(std::ssize(record.launches));
  for (const NcclLaunch& launch : record.launches) {
    packer.put(launch.communicator);
    packer.put(launch.name);
    packer.put(launch.sends_to);
    packer.put(launch.receives_from);
  }
  return packer.bytes();
}

NcclRecord unpacked(const char* begin) {
  Unpacker unpacker{begin};
  NcclRecord record;
  for (std::int64_t left = unpacker.number(); left > 0; --left) {
    record.aborted.insert(unpacker.number());
  }
  record.launches.resize(static_cast<std::size_t>(unpacker.number()));
  for (NcclLaunch& launch : record.launches) {
    launch.communicator = unpacker.number();
    launch.name = unpacker.text();
    launch.sends_to = unpacker.numbers();
    launch.receives_from = unpacker.numbers();
  }
  return record;
}

/// By world rank; empty on all ranks but 0.
std::vector<NcclRecord> gathered(const NcclRecord& record) {
  int rank = 0;
  int size = 0;
  PMPI_Comm_rank(world, &rank);
  PMPI_Comm_size(world, &size);
  const std::string mine = packed(record);
  const int length = static_cast<int>(mine.size());
  std::vector<int> lengths(static_cast<std::size_t>(size));
  PMPI_Gather(&length, 1, MPI_INT, lengths.data(), 1, MPI_INT, 0, world);
  std::vector<int> begins(lengths.size());
  std::exclusive_scan(lengths.begin(), lengths.end(), begins.begin(), 0);
  std::string all(static_cast<std::size_t>(begins.back() + lengths.back()), '\0');
  PMPI_Gatherv(mine.data(), length, MPI_BYTE, all.data(), lengths.data(), begins.data(), MPI_BYTE, 0, world);
  std::vector<NcclRecord> by_rank;
  for (const int begin : rank == 0 ? begins : std::vector<int>{}) {
    by_rank.push_back(unpacked(all.data() + begin));
  }
  return by_rank;
}

/// Of communicators that no rank has aborted.
std::vector<std::vector<NcclLaunch>> launches_of(std::vector<NcclRecord> by_rank) {
  std::set<std::int64_t> aborted;
  for (const NcclRecord& record : by_rank) {
    aborted.insert(record.aborted.begin(), record.aborted.end());
  }
  std::vector<std::vector<NcclLaunch>> launches;
  for (NcclRecord& record : by_rank) {
    std::erase_if(record.launches,
                  [&](const NcclLaunch& launch) { return aborted.contains(launch.communicator); });
    launches.push_back(std::move(record.launches));
  }
  return launches;
}

}  // namespace

MPI_Comm nccl_world() {
  return world;
}

void check_launch_order() {
  const std::lock_guard lock{gpu().mutex};
  NcclRecord& record = nccl_record();
  if (record.open_groups > 0) {
    report(std::to_string(record.open_groups) + " groups of NCCL calls were begun and not ended");
  }
  for (const std::string& finding : launch_order_findings(launches_of(gathered(record)))) {
    report(finding);
  }
  record.launches.clear();
}

}  // namespace hcp::software_gpu

using hcp::software_gpu::world;

int MPI_Init_thread(int* argc, char*** argv, int required, int* provided) {
  const int error = PMPI_Init_thread(argc, argv, required, provided);
  return error == MPI_SUCCESS ? PMPI_Comm_dup(MPI_COMM_WORLD, &world) : error;
}

int MPI_Finalize() {
  hcp::software_gpu::check_launch_order();
  PMPI_Comm_free(&world);
  return PMPI_Finalize();
}
