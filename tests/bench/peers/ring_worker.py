"""One rank of PyTorch's ring attention over gloo, run when asked to: the peer of `hcp run --cp-comm-type p2p`.

Started by ring_table.py with RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT. Answers each line with one:
  public                                                  -> what the public entry says, by mask and pass
  case HEADS DIM TOKENS fp32|bf16 no_mask|causal fwd|fwdbwd  -> ready
  check                                                   -> the largest relative difference from one rank's
  run CALLS                                               -> the seconds of each call, from a barrier

The public entry, context_parallel, replaces operators of CUDA only. What it would call is generic in the
operator and is called here with that of the CPU: the same loop, exchange and merge.
"""

import logging
import sys
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.experimental import context_parallel
from torch.distributed.tensor.experimental._context_parallel import _attention as ring

from case import Case, parse_case
from torch_attention import operand

logging.getLogger("torch.utils.flop_counter").setLevel(logging.ERROR)  # it misses Triton, of which nothing is used

FORWARD = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
BACKWARD = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward
SEQ_DIM = 2  # of [1, heads, tokens, dim]


class RingAttention:
    def __init__(self, case):
        self._case = case
        self._whole = [operand(number, case) for number in range(4)]
        self._q, self._k, self._v, self._dout = (self._shard(tensor) for tensor in self._whole)
        ring._cp_options.enable_load_balance = case.causal  # the loop knows it with a causal mask only
        self._group = dist.group.WORLD

    def once(self):
        causal = self._case.causal
        q, k, v = self._q, self._k, self._v
        out, lse = ring._templated_ring_attention(self._group, SEQ_DIM, FORWARD, q, k, v, is_causal=causal)
        if not self._case.backward:
            return (out,)
        gradients = ring._templated_ring_attention_backward(
            self._group, SEQ_DIM, BACKWARD, self._dout, "grad_out", q, k, v, out, lse, causal, dropout_p=0.0
        )
        return (out, *gradients[:3])

    def times(self, calls):
        seconds = []
        for _ in range(calls):
            dist.barrier()
            begin = time.perf_counter()
            self.once()
            seconds.append(time.perf_counter() - begin)
        return seconds

    def difference_from_one_rank(self):
        q, k, v = (tensor.requires_grad_(self._case.backward) for tensor in self._whole[:3])
        expected = [F.scaled_dot_product_attention(q, k, v, is_causal=self._case.causal)]
        if self._case.backward:
            expected += torch.autograd.grad(expected[0], (q, k, v), self._whole[3])
        shards = [self._shard(tensor.detach()).float() for tensor in expected]
        return max(((x - y.float()).norm() / x.norm()).item() for x, y in zip(shards, self.once()))

    def _shard(self, tensor):
        """Zigzag with a causal mask, contiguous without: as the public entry deals tokens by default."""
        rank, size = dist.get_rank(), dist.get_world_size()
        if not self._case.causal:
            return tensor.chunk(size, dim=SEQ_DIM)[rank].contiguous()
        chunks = tensor.chunk(2 * size, dim=SEQ_DIM)
        return torch.cat([chunks[rank], chunks[2 * size - 1 - rank]], dim=SEQ_DIM)


def public_entry():
    """What context_parallel does with tensors on the CPU."""
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    said = []
    for mask in ("no_mask", "causal"):
        for direction in ("fwd", "fwdbwd"):
            case = Case(2, 64, 256, "fp32", mask, direction)
            said.append(f"{mask} {direction}: {_try_public_entry(mesh, case)}")
    return "; ".join(said)


def _try_public_entry(mesh, case):
    shards = [operand(number, case) for number in range(3)]
    try:
        with context_parallel(mesh, buffers=shards, buffer_seq_dims=[SEQ_DIM] * 3):
            q, k, v = (shard.clone().requires_grad_(case.backward) for shard in shards)
            out = F.scaled_dot_product_attention(q, k, v, is_causal=case.causal)
            if case.backward:
                out.sum().backward()
        return "runs"
    except (NotImplementedError, RuntimeError) as error:
        return f"{type(error).__name__}: {str(error).splitlines()[0]}"


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    attention = None
    for line in sys.stdin:
        command, *words = line.split()
        if command == "public":
            print(public_entry(), flush=True)
        elif command == "case":
            attention = RingAttention(parse_case(words))
            print("ready", flush=True)
        elif command == "check":
            print(attention.difference_from_one_rank(), flush=True)
        elif command == "run":
            print(*attention.times(int(words[0])), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
