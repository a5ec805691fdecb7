"""Times of PyTorch for the problem of attention_timings: lines of "what, mask, milliseconds, TFLOP/s".

bf16, 16384 tokens, 16 heads of dim 128; scaled_dot_product_attention with the back end that PyTorch chooses, and a
matrix product. Exit status 77 and the reason where there is no PyTorch or it sees no device.
"""

import statistics
import sys

try:
    import torch
    import torch.nn.functional as F
except ImportError as error:
    print(f"no PyTorch: {error}", file=sys.stderr)
    sys.exit(77)

TOKENS, HEADS, DIM = 16384, 16, 128
WARM_UP, COUNTED = 3, 11
GEMM = 8192


def report(what, mask, flops, work):
    """Prints the median of several calls, all of them asked for in one go."""
    marks = [torch.cuda.Event(enable_timing=True) for _ in range(WARM_UP + COUNTED + 1)]
    marks[0].record()
    for mark in marks[1:]:
        work()
        mark.record()
    torch.cuda.synchronize()
    times = [begin.elapsed_time(end) for begin, end in zip(marks[WARM_UP:], marks[WARM_UP + 1 :])]
    milliseconds = statistics.median(times)
    print(what, mask, f"{milliseconds:.3f}", f"{flops / milliseconds / 1e9:.1f}", sep="\t", flush=True)


def uniform(*shape):
    return torch.rand(*shape, device="cuda", dtype=torch.float32).mul(2).sub(1).bfloat16()


def main():
    if not torch.cuda.is_available():
        print("PyTorch sees no device", file=sys.stderr)
        sys.exit(77)
    a, b = uniform(GEMM, GEMM), uniform(GEMM, GEMM)
    report("gemm of PyTorch", GEMM, 2 * GEMM**3, lambda: a @ b)
    q, k, v, dout = (uniform(1, HEADS, TOKENS, DIM) for _ in range(4))
    for tensor in (q, k, v):
        tensor.requires_grad_()
    for causal in (False, True):
        mask = "causal" if causal else "full"
        pairs = TOKENS * (TOKENS + 1) // 2 if causal else TOKENS**2
        flops = 4 * DIM * HEADS * pairs
        with torch.no_grad():
            report("SDPA forward", mask, flops, lambda: F.scaled_dot_product_attention(q, k, v, is_causal=causal))
        out = F.scaled_dot_product_attention(q, k, v, is_causal=causal)
        report(
            "SDPA backward",
            mask,
            2.5 * flops,
            lambda: torch.autograd.grad(out, (q, k, v), dout, retain_graph=True),
        )
    print(f"PyTorch {torch.__version__}, CUDA {torch.version.cuda}", file=sys.stderr)


main()
