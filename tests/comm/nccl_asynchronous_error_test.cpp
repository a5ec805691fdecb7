/// An NCCL whose calls succeed and that fails later (failing_nccl.cpp).
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

#include "src/comm/nccl_transport.hpp"
#include "tests/comm/device_case.hpp"

namespace hcp {
namespace {

int ask_library(const char* function) {
  void* library = dlopen("libnccl.so.2", RTLD_NOW | RTLD_NOLOAD);
  if (library == nullptr) throw std::runtime_error{"libnccl.so.2 is not loaded"};
  const int answer = reinterpret_cast<int (*)()>(dlsym(library, function))();
  dlclose(library);
  return answer;
}

TEST(NcclAsynchronousError, EndsAllLevelsInNcclsWords) {
  DeviceRank rank;
  NcclTransports transports{rank.device.stream, false};
  EXPECT_EQ(transports.order(), "serialized");  // by itself: this NCCL cannot keep the order
  const auto inner = transports.make(rank.world, 20);
  const auto outer = transports.make(rank.world, 20);
  EXPECT_EQ(ask_library("failing_nccl_open"), 2);

  Ticket ticket = inner->post({.sends = {}, .receives = {}, .what = "layer 0, forward, level 1, step 3"});
  std::string text = "no error";
  try {
    ticket.wait();
  } catch (const TransportTimeout&) {
    text = "a timeout";
  } catch (const std::runtime_error& error) {
    text = error.what();
  }
  EXPECT_EQ(
      text,
      "NCCL failed on world rank 0, noticed in layer 0, forward, level 1, step 3: remote process exited; "
      "a cable was pulled");
  EXPECT_EQ(ask_library("failing_nccl_aborted"), 2);
  EXPECT_EQ(ask_library("failing_nccl_open"), 0);
  EXPECT_THROW(static_cast<void>(outer->post({.sends = {}, .receives = {}, .what = ""})), std::runtime_error);
}

TEST(NcclAsynchronousError, OfALevelThatWasNeverUsedIsNobodysConcern) {
  DeviceRank rank;
  NcclTransports transports{rank.device.stream, false};
  const int aborted = ask_library("failing_nccl_aborted");
  { const auto transport = transports.make(rank.world, 20); }
  EXPECT_EQ(ask_library("failing_nccl_aborted"), aborted);
  EXPECT_EQ(ask_library("failing_nccl_open"), 0);
}

}  // namespace
}  // namespace hcp
