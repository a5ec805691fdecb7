"""Attention of PyTorch on the CPU, one case at a time."""

import time

import torch
import torch.nn.functional as F

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}


PERIOD = 1 << 20  # elements after which an operand repeats, so that a long one is made quickly


def operand(number, case):
    """The operand that attention_once.cpp calls `number` (q, k, v, dout), [1, heads, tokens, dim]."""
    low_32 = 0xFFFFFFFF
    bits = torch.arange(PERIOD) ^ (number << 28)
    bits = ((bits ^ (bits >> 16)) * 0x85EBCA6B) & low_32
    bits = ((bits ^ (bits >> 13)) * 0xC2B2AE35) & low_32
    bits ^= bits >> 16
    values = ((bits >> 8).float() * 2.0**-23 - 1.0).to(DTYPES[case.dtype])
    count = case.tokens * case.heads * case.dim
    rows = values.repeat(-(-count // PERIOD))[:count].view(case.tokens, case.heads, case.dim)
    return rows.transpose(0, 1).unsqueeze(0).contiguous()


class TorchAttention:
    """scaled_dot_product_attention in its natural layout [1, heads, tokens, dim]."""

    def __init__(self, case):
        self._case = case
        self._q, self._k, self._v, self._dout = (operand(number, case) for number in range(4))
        for tensor in (self._q, self._k, self._v):
            tensor.requires_grad_(case.backward)

    def _once(self):
        out = F.scaled_dot_product_attention(self._q, self._k, self._v, is_causal=self._case.causal)
        if not self._case.backward:
            return (out,)
        return (out, *torch.autograd.grad(out, (self._q, self._k, self._v), self._dout))

    def run(self, calls):
        """The seconds that `calls` computations took."""
        begin = time.perf_counter()
        for _ in range(calls):
            self._once()
        return time.perf_counter() - begin

    def results(self):
        """out and, with a backward pass, dq, dk, dv, in one row: each [tokens, heads, dim] in fp32."""
        return torch.cat([tensor.detach()[0].transpose(0, 1).float().flatten() for tensor in self._once()])
