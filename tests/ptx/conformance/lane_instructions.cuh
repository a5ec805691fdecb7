/// Instructions in which every lane works for itself.
#pragma once

#include "tests/ptx/conformance/registration.cuh"

namespace hcp::ptx {

using enum Values;

/// @source NVIDIA PTX ISA, ex2 and lg2: the largest relative error of ex2, and of lg2 outside of (0.5, 2), is
/// 2^-22, which is at most 4 units in the last place; inside of it, 2^-22 is the largest absolute error
inline constexpr Tolerance of_ex2{.ulp = 4.0};
inline constexpr Tolerance of_lg2{.ulp = 4.0, .absolute = 0x1p-22};

// Results and operands of 32 bits.
#define HCP_WORDS(name, instruction, operands, result, ...) \
  HCP_ASM_KERNEL(name, instruction, instruction " " operands ";", 1, result, Tolerance{}, __VA_ARGS__)
HCP_WORDS(add_f32, "add.f32", "%0, %2, %3", fp32, fp32, fp32);
HCP_WORDS(sub_f32, "sub.f32", "%0, %2, %3", fp32, fp32, fp32);
HCP_WORDS(mul_f32, "mul.f32", "%0, %2, %3", fp32, fp32, fp32);
HCP_WORDS(div_rn_f32, "div.rn.f32", "%0, %2, %3", fp32, fp32, fp32);
HCP_WORDS(rcp_rn_f32, "rcp.rn.f32", "%0, %2", fp32, fp32);
HCP_WORDS(max_f32, "max.f32", "%0, %2, %3", fp32, fp32, fp32);
HCP_WORDS(fma_rn_f32, "fma.rn.f32", "%0, %2, %3, %4", fp32, fp32, fp32, fp32);
HCP_WORDS(cvt_rn_bf16x2_f32, "cvt.rn.bf16x2.f32", "%0, %2, %3", word, fp32, fp32);
HCP_WORDS(cvt_rn_f16x2_f32, "cvt.rn.f16x2.f32", "%0, %2, %3", word, fp32, fp32);
HCP_WORDS(add_s32, "add.s32", "%0, %2, %3", word, word, word);
HCP_WORDS(sub_s32, "sub.s32", "%0, %2, %3", word, word, word);
HCP_WORDS(mul_lo_s32, "mul.lo.s32", "%0, %2, %3", word, word, word);
HCP_WORDS(mul_hi_u32, "mul.hi.u32", "%0, %2, %3", word, word, word);
HCP_WORDS(max_s32, "max.s32", "%0, %2, %3", word, word, word);
HCP_WORDS(and_b32, "and.b32", "%0, %2, %3", word, word, word);
HCP_WORDS(or_b32, "or.b32", "%0, %2, %3", word, word, word);
HCP_WORDS(xor_b32, "xor.b32", "%0, %2, %3", word, word, word);
HCP_WORDS(mad_lo_s32, "mad.lo.s32", "%0, %2, %3, %4", word, word, word, word);
HCP_WORDS(neg_s32, "neg.s32", "%0, %2", word, word);
HCP_WORDS(not_b32, "not.b32", "%0, %2", word, word);
HCP_WORDS(shl_b32, "shl.b32", "%0, %2, %3", word, word, amount);
HCP_WORDS(shr_s32, "shr.s32", "%0, %2, %3", word, word, amount);
HCP_WORDS(shr_u32, "shr.u32", "%0, %2, %3", word, word, amount);
HCP_WORDS(div_s32, "div.s32", "%0, %2, %3", word, word, divisor);
HCP_WORDS(div_u32, "div.u32", "%0, %2, %3", word, word, divisor);
HCP_WORDS(rem_u32, "rem.u32", "%0, %2, %3", word, word, divisor);
HCP_WORDS(prmt_b32, "prmt.b32", "%0, %2, %3, %4", word, word, word, word);
#undef HCP_WORDS
HCP_ASM_KERNEL(ex2_approx_ftz_f32, "ex2.approx.ftz.f32", "ex2.approx.ftz.f32 %0, %2;", 1, fp32, of_ex2, fp32);
HCP_ASM_KERNEL(lg2_approx_ftz_f32, "lg2.approx.ftz.f32", "lg2.approx.ftz.f32 %0, %2;", 1, fp32, of_lg2, fp32);

// Predicates of 32-bit operands, as 0 and 1.
#define HCP_COMPARE(name, instruction, kind)                                                                 \
  HCP_ASM_KERNEL(name, instruction, "{ .reg .pred p; " instruction " p, %2, %3; selp.u32 %0, 1, 0, p; }", 1, \
                 word, Tolerance{}, kind, kind)
HCP_COMPARE(setp_eq_f32, "setp.eq.f32", fp32);
HCP_COMPARE(setp_gt_f32, "setp.gt.f32", fp32);
HCP_COMPARE(setp_eq_b32, "setp.eq.b32", word);
HCP_COMPARE(setp_eq_s32, "setp.eq.s32", word);
HCP_COMPARE(setp_ne_s32, "setp.ne.s32", word);
HCP_COMPARE(setp_lt_s32, "setp.lt.s32", word);
HCP_COMPARE(setp_le_s32, "setp.le.s32", word);
HCP_COMPARE(setp_gt_s32, "setp.gt.s32", word);
HCP_COMPARE(setp_ge_s32, "setp.ge.s32", word);
HCP_COMPARE(setp_lt_u32, "setp.lt.u32", word);
HCP_COMPARE(setp_ge_u32, "setp.ge.u32", word);
#undef HCP_COMPARE

// The operation on whether each of two words is 1.
#define HCP_PREDICATES(name, instruction)                                                      \
  HCP_ASM_KERNEL(name, instruction,                                                            \
                 "{ .reg .pred p, q; setp.eq.u32 p, %2, 1; setp.eq.u32 q, %3, 1; " instruction \
                 " p, p, q; "                                                                  \
                 "selp.u32 %0, 1, 0, p; }",                                                    \
                 1, word, Tolerance{}, word, word)
HCP_PREDICATES(and_pred, "and.pred");
HCP_PREDICATES(or_pred, "or.pred");
#undef HCP_PREDICATES

// The first operand where the third is positive, else the second.
#define HCP_SELECT(name, instruction, kind)                                                         \
  HCP_ASM_KERNEL(name, instruction,                                                                 \
                 "{ .reg .pred p; setp.gt.s32 p, %4, 0; " instruction " %0, %2, %3, p; }", 1, kind, \
                 Tolerance{}, kind, kind, word)
HCP_SELECT(selp_b32, "selp.b32", word);
HCP_SELECT(selp_u32, "selp.u32", word);
HCP_SELECT(selp_f32, "selp.f32", fp32);
#undef HCP_SELECT

// Operands of 16 bits: the low halves of words.
#define HCP_HALVES(name, instruction, use, result, ...)                                                  \
  HCP_ASM_KERNEL(name, instruction,                                                                      \
                 "{ .reg .pred p; .reg .b16 a, b, d; cvt.u16.u32 a, %2; cvt.u16.u32 b, %3; " instruction \
                 " " use " }",                                                                           \
                 1, result, Tolerance{}, __VA_ARGS__)
HCP_HALVES(cvt_f32_f16, "cvt.f32.f16", "%0, a;", fp32, fp16_pair);
HCP_HALVES(and_b16, "and.b16", "d, a, b; cvt.u32.u16 %0, d;", word, word, word);
HCP_HALVES(cvt_s16_s8, "cvt.s16.s8", "d, a; cvt.u32.u16 %0, d;", word, word);
HCP_HALVES(cvt_u16_u32, "cvt.u16.u32", "d, %3; cvt.u32.u16 %0, d;", word, word, word);
HCP_HALVES(cvt_u32_u16, "cvt.u32.u16", "%0, a;", word, word);
HCP_HALVES(mul_wide_u16, "mul.wide.u16", "%0, a, b;", word, word, word);
HCP_HALVES(shr_u16, "shr.u16", "d, a, %3; cvt.u32.u16 %0, d;", word, word, amount);
HCP_HALVES(setp_lt_s16, "setp.lt.s16", "p, a, b; selp.u32 %0, 1, 0, p;", word, word, word);
HCP_HALVES(setp_ne_s16, "setp.ne.s16", "p, a, b; selp.u32 %0, 1, 0, p;", word, word, word);
#undef HCP_HALVES

// Operands and results of 64 bits: two words each, the low one first.
#define HCP_LONGS(name, instruction, use, results, ...)                                                      \
  HCP_ASM_KERNEL(name, instruction,                                                                          \
                 "{ .reg .pred p; .reg .b64 a, b, d; mov.b64 a, {%2, %3}; mov.b64 b, {%4, %5}; " instruction \
                 " " use " }",                                                                               \
                 results, word, Tolerance{}, __VA_ARGS__)
#define HCP_LONG_RESULT "mov.b64 {%0, %1}, d;"
#define HCP_LONG_PREDICATE "selp.u32 %0, 1, 0, p;"
HCP_LONGS(add_s64, "add.s64", "d, a, b; " HCP_LONG_RESULT, 2, word, word, word, word);
HCP_LONGS(sub_s64, "sub.s64", "d, a, b; " HCP_LONG_RESULT, 2, word, word, word, word);
HCP_LONGS(mul_lo_s64, "mul.lo.s64", "d, a, b; " HCP_LONG_RESULT, 2, word, word, word, word);
HCP_LONGS(and_b64, "and.b64", "d, a, b; " HCP_LONG_RESULT, 2, word, word, word, word);
HCP_LONGS(or_b64, "or.b64", "d, a, b; " HCP_LONG_RESULT, 2, word, word, word, word);
HCP_LONGS(not_b64, "not.b64", "d, a; " HCP_LONG_RESULT, 2, word, word);
HCP_LONGS(shl_b64, "shl.b64", "d, a, %4; " HCP_LONG_RESULT, 2, word, word, amount);
HCP_LONGS(shr_s64, "shr.s64", "d, a, %4; " HCP_LONG_RESULT, 2, word, word, amount);
HCP_LONGS(shr_u64, "shr.u64", "d, a, %4; " HCP_LONG_RESULT, 2, word, word, amount);
HCP_LONGS(div_u64, "div.u64", "d, a, b; " HCP_LONG_RESULT, 2, word, word, divisor, amount);
HCP_LONGS(rem_s64, "rem.s64", "d, a, b; " HCP_LONG_RESULT, 2, word, word, divisor, amount);
HCP_LONGS(mul_wide_s32, "mul.wide.s32", "d, %2, %3; " HCP_LONG_RESULT, 2, word, word);
HCP_LONGS(cvt_s64_s32, "cvt.s64.s32", "d, %2; " HCP_LONG_RESULT, 2, word);
HCP_LONGS(cvt_u64_u32, "cvt.u64.u32", "d, %2; " HCP_LONG_RESULT, 2, word);
HCP_LONGS(cvt_u32_u64, "cvt.u32.u64", "%0, a;", 1, word, word);
HCP_LONGS(setp_eq_b64, "setp.eq.b64", "p, a, b; " HCP_LONG_PREDICATE, 1, word, word, word, word);
HCP_LONGS(setp_eq_s64, "setp.eq.s64", "p, a, b; " HCP_LONG_PREDICATE, 1, word, word, word, word);
HCP_LONGS(setp_ne_s64, "setp.ne.s64", "p, a, b; " HCP_LONG_PREDICATE, 1, word, word, word, word);
HCP_LONGS(setp_lt_s64, "setp.lt.s64", "p, a, b; " HCP_LONG_PREDICATE, 1, word, word, word, word);
HCP_LONGS(setp_le_s64, "setp.le.s64", "p, a, b; " HCP_LONG_PREDICATE, 1, word, word, word, word);
HCP_LONGS(setp_ge_s64, "setp.ge.s64", "p, a, b; " HCP_LONG_PREDICATE, 1, word, word, word, word);
HCP_LONGS(setp_lt_u64, "setp.lt.u64", "p, a, b; " HCP_LONG_PREDICATE, 1, word, word, word, word);
HCP_ASM_KERNEL(
    selp_b64, "selp.b64",
    "{ .reg .pred p; .reg .b64 a, b, d; mov.b64 a, {%2, %3}; mov.b64 b, {%3, %4}; setp.gt.s32 p, %5, 0; "
    "selp.b64 d, a, b, p; mov.b64 {%0, %1}, d; }",
    2, word, Tolerance{}, word, word, word, word);
#undef HCP_LONG_PREDICATE
#undef HCP_LONG_RESULT
#undef HCP_LONGS

}  // namespace hcp::ptx
