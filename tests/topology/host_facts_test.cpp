#include "topology/host_facts.hpp"

#include <gmock/gmock.h>
#include <sched.h>
#include <unistd.h>

#include <stdexcept>
#include <thread>

namespace hcp {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(CpuList, IsCompact) {
  EXPECT_EQ(cpu_list_text(std::vector{0, 1, 2, 3, 8}), "0-3,8");
  EXPECT_EQ(cpu_list_text(std::vector{5}), "5");
  EXPECT_EQ(cpu_list_text(std::vector{1, 3, 4}), "1,3-4");
  EXPECT_EQ(cpu_list_text({}), "");
}

TEST(CpuList, IsReadBack) {
  EXPECT_THAT(cpus_of_list("0-3,8"), ElementsAre(0, 1, 2, 3, 8));
  EXPECT_THAT(cpus_of_list("7"), ElementsAre(7));
  EXPECT_THAT(cpus_of_list(""), IsEmpty());
  for (const char* wrong : {"a", "1-", "-1", "1,,2", "1 2", "99999999999"}) {
    EXPECT_THROW(static_cast<void>(cpus_of_list(wrong)), std::invalid_argument) << wrong;
  }
}

TEST(RanksSharingCpus, CountsOverlaps) {
  const std::vector<std::string> unbound{"0-3", "0-3", "0-3", "0-3"};
  EXPECT_EQ(ranks_sharing_cpus(unbound, "0-3"), 4);
  const std::vector<std::string> bound{"0", "1", "2", "3"};
  EXPECT_EQ(ranks_sharing_cpus(bound, "2"), 1);
  const std::vector<std::string> sockets{"0-1", "0-1", "2-3", "2-3"};
  EXPECT_EQ(ranks_sharing_cpus(sockets, "2-3"), 2);
}

TEST(DefaultThreads, DividesCoresAndIsAtLeastOne) {
  EXPECT_EQ(default_threads_per_rank(8, 2), 4);
  EXPECT_EQ(default_threads_per_rank(8, 3), 2);
  EXPECT_EQ(default_threads_per_rank(2, 4), 1);
  EXPECT_EQ(default_threads_per_rank(6, 1), 6);
}

TEST(HostFacts, DescribeThisProcess) {
  const HostFacts facts = this_host();
  char name[256] = {};
  ASSERT_EQ(gethostname(name, sizeof name), 0);
  EXPECT_EQ(facts.host_name, name);
  EXPECT_GE(facts.cores, 1);
  EXPECT_LE(facts.cores, static_cast<int>(cpus_of_list(facts.binding).size()));
}

TEST(HostFacts, BindingFollowsTheAffinityMask) {
  const int cpu = cpus_of_list(this_host().binding).back();
  HostFacts facts;
  std::thread{[&] {  // its own mask, which ends with it
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    facts = this_host();
  }}
      .join();
  EXPECT_EQ(facts.binding, std::to_string(cpu));
  EXPECT_EQ(facts.cores, 1);
}

}  // namespace
}  // namespace hcp
