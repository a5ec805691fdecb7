#include "topology/device_locality.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <stdexcept>

namespace hcp {
namespace {

/// hwloc's XML of a machine of 8 cores, one CPU each:
///
///     package 0: cores 0-1 with device 0000:1b:00.0, cores 2-3 with device 0000:2c:00.0
///     package 1: cores 4-7 with device 0001:9a:00.0, of the whole package
class Machine {
 public:
  Machine() {
    begin("Machine", 0xff, R"(allowed_cpuset="0xff" allowed_nodeset="0x3")");
    begin("Package", 0x0f);
    node(0, 0x0f);
    begin("Group", 0x03, R"(kind="1001")");
    cores(0, 1);
    device("0000:1b");
    end();
    begin("Group", 0x0c, R"(kind="1001")");
    cores(2, 3);
    device("0000:2c");
    end();
    end();
    begin("Package", 0xf0);
    node(1, 0xf0);
    cores(4, 7);
    device("0001:9a");
    end();
    end();
  }

  [[nodiscard]] std::string xml() const {
    return "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">\n"
           "<topology version=\"2.0\">\n" +
           text_ + "</topology>\n";
  }

 private:
  void open(const std::string& type, const std::string& attributes) {
    text_ += "<object type=\"" + type + "\" gp_index=\"" + std::to_string(++objects_) + "\" " + attributes;
  }
  void begin(const std::string& type, int cpus, const std::string& more = "") {
    open(type, sets(cpus) + " " + more + ">\n");
  }
  void end() { text_ += "</object>\n"; }

  static std::string sets(int cpus) {
    const int nodes = ((cpus & 0x0f) != 0 ? 1 : 0) + ((cpus & 0xf0) != 0 ? 2 : 0);
    std::array<char, 128> text{};
    std::snprintf(text.data(), text.size(),
                  R"(cpuset="0x%x" complete_cpuset="0x%x" nodeset="0x%x" complete_nodeset="0x%x")",
                  static_cast<unsigned>(cpus), static_cast<unsigned>(cpus), static_cast<unsigned>(nodes),
                  static_cast<unsigned>(nodes));
    return text.data();
  }
  void node(int index, int cpus) {
    begin("NUMANode", cpus, "os_index=\"" + std::to_string(index) + "\" local_memory=\"1048576\"");
    end();
  }
  void cores(int first, int last) {
    for (int core = first; core <= last; ++core) {
      const std::string index = "os_index=\"" + std::to_string(core) + "\"";
      begin("Core", 1 << core, index);
      begin("PU", 1 << core, index);
      end();
      end();
    }
  }
  /// @param bus  with its domain
  void device(const std::string& bus) {
    open("Bridge", R"(bridge_type="0-1" depth="0" bridge_pci=")" + bus.substr(0, 5) + "[" + bus.substr(5) +
                       "-" + bus.substr(5) + "]\">\n");
    open("PCIDev", "pci_busid=\"" + bus +
                       R"(:00.0" pci_type="0302 [10de:2330] [10de:16c1] a1" pci_link_speed="0.0"/>)" + "\n");
    end();
  }

  std::string text_;
  int objects_ = 0;
};

TEST(DeviceLocality, DistancesOfAMachineOfTwoPackages) {
  const DeviceLocality machine = DeviceLocality::from_xml(Machine{}.xml());
  const auto distances = [&](const std::string& cpus) {
    std::array<int, 3> all{};
    for (std::size_t i = 0; const char* id : {"0000:1b:00.0", "0000:2c:00.0", "0001:9a:00.0"}) {
      all[i++] = machine.distance(cpus, id);
    }
    return all;
  };
  using Distances = std::array<int, 3>;
  EXPECT_EQ(distances("0"), (Distances{0, 1, 2}));
  EXPECT_EQ(distances("0-1"), (Distances{0, 1, 2}));
  EXPECT_EQ(distances("3"), (Distances{1, 0, 2}));
  EXPECT_EQ(distances("1,2"), (Distances{1, 1, 2})) << "half of it is elsewhere";
  EXPECT_EQ(distances("5,7"), (Distances{2, 2, 0}));
  EXPECT_EQ(distances("3-4"), (Distances{2, 2, 2}));
  EXPECT_EQ(distances("0-7"), (Distances{2, 2, 2})) << "may run anywhere";
}

TEST(DeviceLocality, DevicesThatHwlocDoesNotKnowAreFar) {
  const DeviceLocality machine = DeviceLocality::from_xml(Machine{}.xml());
  EXPECT_EQ(machine.distance("0", "0000:77:00.0"), 2);
  EXPECT_EQ(machine.distance("0", "no such name"), 2);
}

TEST(DeviceLocality, ThisMachineIsRead) {
  EXPECT_EQ(DeviceLocality{}.distance("0", "ffff:ff:1f.7"), 2);
}

TEST(DeviceLocality, OtherTextIsRefused) {
  EXPECT_THROW(static_cast<void>(DeviceLocality::from_xml("<machine/>")), std::runtime_error);
}

}  // namespace
}  // namespace hcp
