"""Two sides measured in turn, so that both meet the same state of a machine that others use as well."""

import math
import statistics
import time
from dataclasses import dataclass

WINDOW_S = 0.1  # a shorter window would weigh a single interruption too much
REST_S = 0.02  # idle OpenMP threads spin for some milliseconds; the other side must not pay for them
PAIRS_LEAST, PAIRS_WANTED, PAIRS_MOST = 2, 5, 9


@dataclass(frozen=True)
class Comparison:
    peer_s: float  # of one call, median over the windows
    hcp_s: float
    ratios: tuple  # peer / hcp, one for each pair of neighbouring windows

    @property
    def ratio(self):
        return statistics.median(self.ratios)


def pairs_within(budget_s, pair_s):
    """How many pairs of windows of `pair_s` seconds fit."""
    return max(PAIRS_LEAST, min(PAIRS_MOST, int(budget_s / pair_s)))


def alternate(peer, hcp, pairs):
    """`peer` and `hcp` each run one window and return the seconds of one call."""
    times = []
    for _ in range(pairs):
        times.append((_rested(peer), _rested(hcp)))
    return Comparison(
        peer_s=statistics.median(peer_s for peer_s, _ in times),
        hcp_s=statistics.median(hcp_s for _, hcp_s in times),
        ratios=tuple(peer_s / hcp_s for peer_s, hcp_s in times),
    )


def window(side, call_s):
    """A window of a side whose single call is expected to take `call_s` seconds."""
    calls = max(1, math.ceil(WINDOW_S / call_s))
    return lambda: side.run(calls) / calls


def _rested(measure):
    time.sleep(REST_S)
    return measure()
