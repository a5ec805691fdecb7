/// Mutants of small kernels: each kind changes what it says and nothing else, and all can be decoded.
#include "tests/mutation/ptx_mutants.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <stdexcept>

#include "tests/mutation/kernel_text.hpp"
#include "tests/mutation/text_lines.hpp"
#include "tests/ptx/module.hpp"

namespace hcp::mutation {
namespace {

const std::string head =
    ".version 8.0\n.target sm_80\n.address_size 64\n.extern .shared .align 16 .b8 tile[];\n";

std::string kernel_around(const std::string& body) {
  return head +
         ".visible .entry one()\n{\n.reg .pred %p<4>;\n.reg .f32 %f<8>;\n.reg .b32 %r<12>;\n.reg .b64 "
         "%rd<4>;\n" +
         body + "ret;\n}\n";
}

/// What the mutants of one instruction have in its place.
std::vector<std::string> changes_of(const std::string& instruction, MutationKind kind) {
  const std::string kernel = kernel_around("\t" + instruction + "\n");
  std::vector<std::string> changes;
  for (const Mutant& mutant : mutants_of(kernel)) {
    EXPECT_EQ(mutant.before, instruction);
    EXPECT_NO_THROW(static_cast<void>(ptx::Module::load(mutated(kernel, mutant)))) << mutant.after;
    if (mutant.kind == kind) {
      changes.push_back(mutant.after);
    }
  }
  return changes;
}

using testing::ElementsAre;
using enum MutationKind;

TEST(PtxMutants, WhatBelongsToCopiesAndBarriersIsMissing) {
  EXPECT_THAT(changes_of("bar.sync 0;", barrier), ElementsAre(""));
  EXPECT_THAT(changes_of("cp.async.cg.shared.global [%r1], [%rd1], 16, %r2;", copy), ElementsAre(""));
  EXPECT_THAT(changes_of("cp.async.ca.shared.global [%r1], [%rd1], 4, %r2;", copy), ElementsAre(""));
  EXPECT_THAT(changes_of("cp.async.commit_group;", commit), ElementsAre(""));
  EXPECT_THAT(changes_of("cp.async.wait_group 1;", wait), ElementsAre("", "cp.async.wait_group 2;"));
}

TEST(PtxMutants, Matrices) {
  const std::string mma = "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%f1, %f2, %f3, %f4}, ";
  EXPECT_THAT(changes_of(mma + "{%r1, %r2, %r3, %r4}, {%r5, %r6}, {%f1, %f2, %f3, %f4};", product),
              ElementsAre("", mma + "{%r1, %r2, %r3, %r4}, {%r6, %r5}, {%f1, %f2, %f3, %f4};"));
  const std::string ldmatrix = "ldmatrix.sync.aligned.m8n8.x4";
  const std::string target = ".shared.b16 {%r1, %r2, %r3, %r4}, ";
  EXPECT_THAT(changes_of(ldmatrix + target + "[%r5];", fragment),
              ElementsAre(ldmatrix + target + "[%r5+16];", ldmatrix + ".trans" + target + "[%r5];"));
  EXPECT_THAT(changes_of(ldmatrix + ".trans" + target + "[%r5];", fragment),
              ElementsAre(ldmatrix + ".trans" + target + "[%r5+16];", ldmatrix + target + "[%r5];"));
  EXPECT_THAT(changes_of("cvt.rn.bf16x2.f32 %r1, %f1, %f2;", pack),
              ElementsAre("cvt.rn.bf16x2.f32 %r1, %f2, %f1;"));
}

TEST(PtxMutants, Decisions) {
  EXPECT_THAT(changes_of("setp.lt.s32 %p1, %r1, %r2;", compare), ElementsAre("setp.le.s32 %p1, %r1, %r2;"));
  EXPECT_THAT(changes_of("setp.ge.u32 %p1, %r1, 4;", compare), ElementsAre("setp.gt.u32 %p1, %r1, 4;"));
  EXPECT_THAT(changes_of("setp.ne.s64 %p1, %rd1, 0;", compare), ElementsAre("setp.eq.s64 %p1, %rd1, 0;"));
  EXPECT_THAT(changes_of("setp.gt.f32 %p1, %f1, %f2;", compare), ElementsAre("setp.ge.f32 %p1, %f1, %f2;"));
  EXPECT_THAT(changes_of("@%p1 mov.b32 %r1, %r2;", guard), ElementsAre("@!%p1 mov.b32 %r1, %r2;"));
  EXPECT_THAT(changes_of("@!%p1 mov.b32 %r1, %r2;", guard), ElementsAre("@%p1 mov.b32 %r1, %r2;"));
  EXPECT_THAT(changes_of("selp.f32 %f1, %f2, %f3, %p1;", select),
              ElementsAre("selp.f32 %f1, %f3, %f2, %p1;"));
  EXPECT_THAT(changes_of("and.pred %p1, %p2, %p3;", logic), ElementsAre("or.pred %p1, %p2, %p3;"));
  EXPECT_THAT(changes_of("or.b64 %rd1, %rd2, %rd3;", logic), ElementsAre("and.b64 %rd1, %rd2, %rd3;"));
}

TEST(PtxMutants, Arithmetic) {
  EXPECT_THAT(changes_of("xor.b32 %r1, %r2, 48;", xor_bits), ElementsAre("or.b32 %r1, %r2, 48;"));
  EXPECT_THAT(changes_of("shfl.sync.bfly.b32 %r1|%p1, %r2, %r3, 31, -1;", shuffle),
              ElementsAre("mov.b32 %r1, %r2;"));
  EXPECT_THAT(changes_of("fma.rn.f32 %f1, %f2, %f3, %f4;", arithmetic),
              ElementsAre("mul.f32 %f1, %f2, %f3;"));
  EXPECT_TRUE(changes_of("fma.rn.f32 %f1, %f2, %f3, 0f00000000;", arithmetic).empty());
  EXPECT_THAT(changes_of("mul.f32 %f1, %f2, 0f3FB8AA3B;", arithmetic), ElementsAre("mov.f32 %f1, %f2;"));
  EXPECT_THAT(changes_of("sub.f32 %f1, %f2, %f3;", arithmetic), ElementsAre("add.f32 %f1, %f2, %f3;"));
  EXPECT_THAT(changes_of("ex2.approx.ftz.f32 %f1, %f2;", arithmetic), ElementsAre("mov.f32 %f1, %f2;"));
  EXPECT_THAT(changes_of("st.shared.v2.f32 [%r1+8], {%f1, %f2};", store), ElementsAre(""));
}

TEST(PtxMutants, OtherInstructionsHaveNone) {
  EXPECT_TRUE(
      mutants_of(kernel_around("\tadd.s32 %r1, %r2, %r3;\n\t// bar.sync 0;\n\tbra.uni next;\nnext:\n"))
          .empty());
}

TEST(PtxMutants, ExactlyOneLineChanges) {
  const std::string kernel = kernel_around(
      "\tsetp.lt.s32 \t%p1, %r1, %r2;\n\t@%p1 bra next;\n\tbar.sync \t0;\nnext:\n\tadd.f32 %f1, %f2, %f3;\n");
  const std::vector<Mutant> mutants = mutants_of(kernel);
  EXPECT_EQ(mutants.size(), 4U);
  const auto original = lines_of(kernel);
  std::set<std::string> texts;
  for (const Mutant& mutant : mutants) {
    const std::string text = mutated(kernel, mutant);
    texts.insert(text);
    const auto changed = lines_of(text);
    ASSERT_EQ(changed.size(), original.size());
    for (std::size_t line = 0; line < changed.size(); ++line) {
      EXPECT_EQ(changed[line] != original[line], static_cast<int>(line) + 1 == mutant.line);
    }
  }
  EXPECT_EQ(texts.size(), mutants.size());
  EXPECT_THROW(static_cast<void>(mutated(kernel, {barrier, 3, "bar.sync 0;", ""})), std::invalid_argument);
}

TEST(KernelTexts, EveryKernelIsAModuleOfItsOwn) {
  const auto entry = [](const std::string& name) {
    return ".visible .entry " + name + "(\n\t.param .u32 " + name + "_param_0\n)\n{\n\tret;\n}\n";
  };
  const std::string module = head + entry("first") + "\t// .globl second\n" + entry("second");
  const auto kernels = kernels_of(module);
  ASSERT_EQ(kernels.size(), 2U);
  EXPECT_EQ(kernels[0].text, head + entry("first"));
  EXPECT_EQ(kernels[1].text, head + entry("second"));
  const auto lines = lines_of(module);
  for (const KernelText& kernel : kernels) {
    EXPECT_THAT(ptx::Module::load(kernel.text).kernel_names(), ElementsAre(kernel.name));
    const auto own = lines_of(kernel.text);
    EXPECT_EQ(own[4], lines[static_cast<std::size_t>(4 + kernel.line_offset)]);
  }
  EXPECT_THROW(static_cast<void>(kernels_of(head + ".func twice()\n{\n}\n")), std::invalid_argument);
}

}  // namespace
}  // namespace hcp::mutation
