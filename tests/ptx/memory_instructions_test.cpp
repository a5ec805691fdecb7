#include <gmock/gmock.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "tests/ptx/ptx_case.hpp"

namespace hcp::ptx {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using Words = std::vector<std::uint32_t>;

/// The first words of the result of one thread.
Words results(const std::string& body, const Words& in, std::size_t count) {
  Words out(16);
  CaseSetup setup;
  setup.threads = 1;
  setup.dynamic_shared_bytes = 64;
  const Report report = run_case(body, in, out, setup);
  EXPECT_THAT(report.findings, IsEmpty());
  out.resize(count);
  return out;
}

TEST(Memory, VectorsAndHints) {
  EXPECT_THAT(results("ld.global.nc.L1::no_allocate.L2::128B.v4.f32 {%r0, %r1, %r2, %r3}, [%d8];"
                      "ld.global.cg.v2.u32 {%r4, %r5}, [%d8+16]; add.u32 %r0, %r0, %r5;"
                      "st.global.cs.v4.u32 [%d9], {%r3, %r2, %r1, %r0};",
                      {1, 2, 3, 4, 5, 60}, 4),
              ElementsAre(4, 3, 2, 61));
}

TEST(Memory, NarrowValuesFillWiderRegisters) {
  EXPECT_THAT(
      results(
          "ld.global.s8 %r0, [%d8+3]; ld.global.u8 %r1, [%d8+3]; ld.global.s16 %r2, [%d8+2];"
          "ld.global.s32 %d1, [%d8]; shr.u64 %d1, %d1, 32; cvt.u32.u64 %r3, %d1; ld.global.u32 %d2, [%d8];"
          "shr.u64 %d2, %d2, 32; cvt.u32.u64 %r4, %d2;"
          "st.global.v4.u32 [%d9], {%r0, %r1, %r2, %r3}; st.global.u32 [%d9+16], %r4;",
          {0x80fe1234}, 5),
      ElementsAre(0xffffff80, 0x80, 0xffff80fe, 0xffffffff, 0));
}

TEST(Memory, StoresOfLowBits) {
  EXPECT_THAT(results("mov.u64 %d1, 0x1122334455667788; st.global.u32 [%d9], %d1; mov.u32 %r0, 0x99aabbcc;"
                      "st.global.u8 [%d9+5], %r0; mov.b32 {%s0, %s1}, %r0; st.global.b16 [%d9+6], %s1;",
                      {0}, 2),
              ElementsAre(0x55667788, 0x99aacc00));
}

TEST(Memory, LocalSharedAndGenericAddresses) {
  EXPECT_THAT(
      results(
          ".local .align 8 .b8 frame[16]; mov.u64 %d0, frame; st.local.u32 [%d0+4], 11;"
          "cvta.local.u64 %d1, %d0; ld.u32 %r0, [%d1+4];"
          ".shared .align 4 .b8 fixed[8]; st.shared.u32 [fixed+4], 22; mov.u64 %d2, fixed;"
          "cvta.shared.u64 %d3, %d2; ld.u32 %r1, [%d3+4]; cvta.to.shared.u64 %d4, %d3;"
          "ld.shared.u32 %r2, [%d4+4]; cvta.param.u64 %d5, in; ld.u64 %d5, [%d5]; ld.global.u32 %r3, [%d5];"
          "st.v4.u32 [%d9], {%r0, %r1, %r2, %r3};",
          {33}, 4),
      ElementsAre(11, 22, 22, 33));
}

TEST(Memory, DynamicFollowsStaticSharedMemory) {
  EXPECT_THAT(
      results(
          ".shared .align 4 .b8 fixed[20]; mov.u32 %r0, fixed; mov.u32 %r1, dynamic; sub.u32 %r2, %r1, %r0;"
          "and.b32 %r3, %r1, 15; st.global.v2.u32 [%d9], {%r2, %r3};",
          {0}, 2),
      ElementsAre(32, 0));
}

TEST(Memory, VariablesOfTheModule) {
  Module module =
      Module::load(module_text(".const .align 4 .b8 table[8] = {1, 0, 0, 0, 2};\n.global .align 4 .u32 "
                               "counter = 40;\n.const .align 4 .f32 scale;\n"
                               ".global .align 4 .b8 pi[4] = {0xff};\n"));
  EXPECT_EQ(module.variable("table").size(), 8U);
  EXPECT_EQ(module.variable("table")[4], std::byte{2});
  EXPECT_EQ(module.variable("counter")[0], std::byte{40});
  EXPECT_THROW((void)module.variable("nothing"), std::invalid_argument);
}

TEST(Memory, ConstantsAreReadAndCountersKeepTheirValue) {
  Module module = Module::load(module_text(
      ".const .align 4 .b8 table[8] = {1, 0, 0, 0, 2};\n.global .align 4 .u32 counter = 40;\n" +
      kernel_text("ld.const.u32 %r0, [table+4]; ld.global.u32 %r1, [counter]; add.u32 %r0, %r0, %r1;"
                  "st.global.u32 [counter], %r0; st.global.u32 [%d9], %r0;")));
  Words out(1);
  DeviceMemory memory;
  memory.add(out.data(), 4, "out");
  const std::uint64_t parameters[2] = {0, reinterpret_cast<std::uintptr_t>(out.data())};
  const Launch launch{module.kernel("test"), {1, 1, 1}, {1, 1, 1}, 0, std::as_bytes(std::span{parameters})};
  EXPECT_THAT(run(launch, module, memory).findings, IsEmpty());
  EXPECT_EQ(out[0], 42U);
  EXPECT_THAT(run(launch, module, memory).findings, IsEmpty());
  EXPECT_EQ(out[0], 44U);
}

TEST(Memory, AtomicsOfManyLanes) {
  Words out(4);
  out[1] = 100;
  const Report report = run_case(
      "atom.global.add.u32 %r0, [%d9], 1; red.global.max.u32 [%d9+4], %r39; cvt.rn.f32.u32 %r1, %r39;"
      "red.global.add.f32 [%d9+8], %r1; atom.global.cas.b32 %r2, [%d9+12], 0, 5;",
      {}, out);
  EXPECT_THAT(report.findings, IsEmpty());
  EXPECT_THAT(out, ElementsAre(32, 100, 0x43f80000, 5));  // 496 as a float
}

TEST(Memory, ParametersArePacked) {
  Module module = Module::load(
      module_text(".visible .entry k(.param .u32 a, .param .align 8 .b8 s[12], .param .u64 c) { ret; }"));
  const Kernel& kernel = module.kernel("k");
  EXPECT_EQ(kernel.parameter_bytes, 32U);
  std::uint32_t a = 1;
  std::array<std::uint32_t, 3> s{2, 3, 4};
  std::uint64_t c = 5;
  void* arguments[3] = {&a, s.data(), &c};
  const auto packed = pack_parameters(kernel, arguments);
  std::array<std::uint32_t, 8> words{};
  std::memcpy(words.data(), packed.data(), 32);
  EXPECT_THAT(words, ElementsAre(1, 0, 2, 3, 4, 0, 5, 0));
}

}  // namespace
}  // namespace hcp::ptx
