"""scaled_dot_product_attention against the attention kernel of hcp, the same threads, window by window."""

import itertools
from dataclasses import replace

from case import Case
from hcp_attention import HcpAttention
from torch_attention import TorchAttention
from windows import PAIRS_WANTED, WINDOW_S, alternate, pairs_within, window

CHECKED_TOKENS = 256
# Relative difference in the Euclidean norm: fp32 sums in two orders, bf16 results rounded twice.
TOLERANCE = {"fp32": 1e-5, "bf16": 2e-2}
CALIBRATION_TOKENS = 1024  # long enough for a rate near that of any longer sequence

COLUMNS = ("heads x dim", "S", "mask", "dtype", "pass", "PyTorch GFLOP/s", "hcp GFLOP/s", "ratio", "least-most")


def all_cases():
    return _cases(shapes=[(32, 128), (16, 64)], lengths=[1024, 2048, 4096, 8192, 16384])


def quick_cases():
    return _cases(shapes=[(32, 128)], lengths=[2048])


def _cases(shapes, lengths):
    return [
        Case(heads, dim, tokens, dtype, mask, direction)
        for (heads, dim), dtype, direction, mask, tokens in itertools.product(
            shapes, ("fp32", "bf16"), ("fwd", "fwdbwd"), ("no_mask", "causal"), lengths
        )
    ]


def attention_rows(program, cases, threads, budget_s):
    """Yields the cells of one row per case. `program`: a LineProgram of bench_attention_once."""
    call_s = {}  # by kind of case, (PyTorch, hcp): one head per thread at CALIBRATION_TOKENS
    for case in cases:
        kind = replace(case, heads=threads, tokens=CALIBRATION_TOKENS)
        if kind not in call_s:
            check_agreement(program, replace(kind, tokens=CHECKED_TOKENS))
            call_s[kind] = _seconds_of_a_call(program, kind)
        yield _row(program, case, kind, call_s[kind], budget_s)


def check_agreement(program, case):
    """@throws RuntimeError if the two sides compute different things"""
    expected = TorchAttention(case).results()
    found = HcpAttention(program, case).results()
    for name, x, y in zip(("out", "dq", "dk", "dv"), expected.chunk(_tensors(case)), found.chunk(_tensors(case))):
        difference = ((x - y).norm() / x.norm()).item()
        if not difference <= TOLERANCE[case.dtype]:
            raise RuntimeError(f"{case}: {name} of PyTorch and of hcp differ by {difference:.1e}")


def _tensors(case):
    return 4 if case.backward else 1


def _seconds_of_a_call(program, case):
    peer, hcp = TorchAttention(case), HcpAttention(program, case)
    for side in (peer, hcp):
        side.run(1)
    return peer.run(1), hcp.run(1)


def _row(program, case, kind, kind_s, budget_s):
    per_head = [seconds * (case.tokens / kind.tokens) ** 2 / kind.heads for seconds in kind_s]
    measured = replace(case, heads=heads_within(budget_s, sum(per_head), case.heads, kind.heads))
    peer_s, hcp_s = (seconds * measured.heads for seconds in per_head)
    peer, hcp = TorchAttention(measured), HcpAttention(program, measured)
    if peer_s + hcp_s < budget_s / 8:  # a longer call hardly notices that it is the first
        peer.run(1)
        hcp.run(1)
    pair_s = max(peer_s, WINDOW_S) + max(hcp_s, WINDOW_S)
    found = alternate(window(peer, peer_s), window(hcp, hcp_s), pairs_within(budget_s, pair_s))
    heads = f"{case.heads}" if measured.heads == case.heads else f"{measured.heads} of {case.heads}"
    return (
        f"{heads} x {case.dim}",
        case.tokens,
        case.mask,
        case.dtype,
        case.direction,
        f"{measured.flop / found.peer_s * 1e-9:.1f}",
        f"{measured.flop / found.hcp_s * 1e-9:.1f}",
        f"{found.ratio:.2f}",
        f"{min(found.ratios):.2f}-{max(found.ratios):.2f}",
    )


def heads_within(budget_s, head_s, heads, threads):
    """As many heads as fit, in whole rounds of the threads; work is proportional to them."""
    if heads * head_s * PAIRS_WANTED <= budget_s:
        return heads
    rounds = int(budget_s / (head_s * PAIRS_WANTED * threads))
    return min(heads, threads * max(1, rounds))
