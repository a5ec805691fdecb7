"""What is computed: one attention on one rank or over the ranks of a ring."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Case:
    heads: int  # of queries, keys and values alike
    dim: int  # of one head
    tokens: int
    dtype: str  # fp32 or bf16
    mask: str  # no_mask or causal
    direction: str  # fwd or fwdbwd

    @property
    def causal(self):
        return self.mask == "causal"

    @property
    def backward(self):
        return self.direction == "fwdbwd"

    @property
    def words(self):
        """As the programs read it from a line."""
        return f"{self.heads} {self.dim} {self.tokens} {self.dtype} {self.mask} {self.direction}"

    @property
    def flop(self):
        """Of the visible pairs: 4 dim per pair and head forward, 10 dim backward."""
        pairs = self.tokens * (self.tokens + 1) // 2 if self.causal else self.tokens**2
        return pairs * self.heads * self.dim * (14 if self.backward else 4)


def parse_case(words):
    heads, dim, tokens, dtype, mask, direction = words
    return Case(int(heads), int(dim), int(tokens), dtype, mask, direction)
