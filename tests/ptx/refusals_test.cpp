// Whatever is not known is refused when the text is loaded, with its line.
#include <gmock/gmock.h>

#include <stdexcept>
#include <string>

#include "tests/ptx/ptx_case.hpp"

namespace hcp::ptx {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

/// What loading says; "" if it succeeds.
std::string refusal(const std::string& text) {
  try {
    (void)Module::load(module_text(text));
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

TEST(Refusals, InstructionsModifiersAndOperands) {
  for (const std::string wrong : {"wgmma.fence.sync.aligned;",
                                  "add.cc.u32 %r0, %r1, %r2;",
                                  "ld.global.acquire.gpu.u32 %r0, [%d8];",
                                  "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%r0, %r1, %r2, %r3}, "
                                  "{%r4, %r5, %r6, %r7}, {%r8, %r9}, {%r0, "
                                  "%r1, %r2, %r3};",
                                  "add.u32 %r0, %r1;",
                                  "add.u32 %r0, %r1, %d2;",
                                  "add.u32 %r0, %r1, %r99;",
                                  "add.f32 %r0, %r1, 1.5;",
                                  "bra NOWHERE;",
                                  "mov.u32 %r0, %clock;",
                                  "cvt.s32.f32 %r0, %r1;",
                                  "fma.f32 %r0, %r1, %r2, %r3;",
                                  "atom.shared.add.u32 %r0, [%r1], 1;",
                                  "cp.async.cg.shared.global [%r0], [%d0], 8;",
                                  "shl.b32 %r0, %r1, %d0;",
                                  "cp.async.bulk.commit_group;",
                                  "ld.param.u32 %r0, [in+16];",
                                  "st.param.u32 [in], %r0;",
                                  "setp.lt.b32 %p0, %r0, %r1;",
                                  "ex2.approx.f64 %d0, %d1;",
                                  "call nothing;"}) {
    const std::string said = refusal(kernel_text("\n" + wrong));
    EXPECT_THAT(said, HasSubstr("PTX line 12")) << wrong;
  }
}

TEST(Refusals, DirectivesAndDeclarations) {
  EXPECT_THAT(refusal(".alias a, b;"), HasSubstr("PTX line 4: directive '.alias'"));
  EXPECT_THAT(refusal(".extern .global .u32 elsewhere;"), HasSubstr("another module"));
  EXPECT_THAT(refusal(kernel_text(".reg .b32 %r0;")), HasSubstr("declared twice"));
  EXPECT_THAT(refusal(kernel_text("A: A:")), HasSubstr("stands twice"));
  EXPECT_THAT(refusal(kernel_text("add.u32 %r0, %r1 # %r2;")), HasSubstr("character '#'"));
  EXPECT_THAT(refusal(".visible .entry k() {"), HasSubstr("ends too early"));
  EXPECT_THAT(refusal(".func f() { call f; ret; }\n.visible .entry k() { call f; ret; }"),
              HasSubstr("recursion"));
}

TEST(Refusals, NamesOfInnerScopesEndThere) {
  EXPECT_THAT(refusal(kernel_text("{ .reg .b32 %r0; .reg .b32 %inner; mov.u32 %inner, 1; }")), IsEmpty());
  EXPECT_THAT(refusal(kernel_text("{ .reg .b32 %inner; } mov.u32 %inner, 1;")), HasSubstr("%inner"));
}

TEST(Refusals, WrongLaunches) {
  Module module = Module::load(
      module_text(".visible .entry k(.param .u64 a) .maxntid 64 { .shared .align 16 .b8 big[1024]; ret; }"));
  DeviceMemory memory;
  const std::array<std::byte, 16> bytes{};
  const auto launch = [&](std::size_t parameter_bytes, std::uint32_t threads, std::uint32_t dynamic,
                          std::uint32_t y) {
    (void)run(
        {module.kernel("k"), {1, y, 1}, {threads, 1, 1}, dynamic, std::span{bytes}.first(parameter_bytes)},
        module, memory);
  };
  EXPECT_NO_THROW(launch(8, 64, 0, 1));
  EXPECT_THROW(launch(4, 64, 0, 1), std::invalid_argument);
  EXPECT_THROW(launch(8, 96, 0, 1), std::invalid_argument);
  EXPECT_THROW(launch(8, 0, 0, 1), std::invalid_argument);
  EXPECT_THROW(launch(8, 64, 227 * 1024, 1), std::invalid_argument);
  EXPECT_THROW(launch(8, 64, 0, 0), std::invalid_argument);
  EXPECT_THROW(launch(8, 64, 0, 65536), std::invalid_argument);
  EXPECT_THROW((void)module.kernel("other"), std::invalid_argument);
}

TEST(DeviceMemory, RegionsDoNotOverlap) {
  std::array<std::byte, 64> bytes{};
  DeviceMemory memory;
  memory.add(bytes.data(), 32, "first");
  EXPECT_THROW(memory.add(bytes.data() + 16, 32, "second"), std::invalid_argument);
  EXPECT_NO_THROW(memory.add(bytes.data() + 32, 32, "second"));
  EXPECT_THROW(memory.remove(bytes.data() + 16), std::invalid_argument);
  EXPECT_EQ(memory.find(reinterpret_cast<std::uintptr_t>(bytes.data()) + 28, 8), nullptr);
}

}  // namespace
}  // namespace hcp::ptx
