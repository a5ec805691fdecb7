"""Random problems for the whole program: what a seed draws, as options of `hcp run`."""

import math
import random

import h5py
import numpy as np

MASKS_OF_ANY_KEYS = ("no_mask", "causal", "causal_bottom_right", "sliding_window", "intervals")
MASKS_OF_OWN_KEYS = ("padding", "padding_causal", "prefix_lm", "block_causal", "block_diffusion")
MOST_RANKS = 8


class RandomProblem:
    """One draw. `ranks` is the size of the world, `options` the words after `hcp run`.

    Equal seeds draw equal problems. A mask file, where there is one, is written to `directory`.
    """

    def __init__(self, seed, directory):
        self._random = random.Random(seed)
        self._directory = directory
        self.options = []
        tensor = self._draw_ranks()
        self._draw_documents()
        self._draw_mask()
        swaps = self._draw_schemes()
        self._draw_heads(tensor, swaps)
        self._draw_partition()
        self._draw_softmax(seed)
        self._draw_measurement()

    def _add(self, **options):
        for name, value in options.items():
            self.options.append("--" + name.replace("_", "-"))
            if value is not True:  # a flag has no value
                self.options.append(",".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value))

    def _chance(self, share):
        return self._random.random() < share

    def _draw_ranks(self):
        choose = self._random.choice
        self._cp = choose((1, 2, 2, 3, 3, 4, 4, 4, 5, 6, 7, 8, 8))
        tensor = choose([size for size in (1, 1, 1, 2) if size * self._cp <= MOST_RANKS])
        pipeline = choose([size for size in (1, 1, 1, 2) if size * tensor * self._cp <= MOST_RANKS])
        data = choose([size for size in (1, 1, 1, 2) if size * pipeline * tensor * self._cp <= MOST_RANKS])
        self.ranks = self._cp * tensor * pipeline * data
        self._add(context_parallel_size=self._cp, tensor_model_parallel_size=tensor, pipeline_model_parallel_size=pipeline)
        nodes = choose([size for size in range(1, self.ranks + 1) if self.ranks % size == 0])
        self._add(simulate_ranks_per_node=self.ranks // nodes)
        return tensor

    def _lengths(self, count):
        """Documents as they come: many short ones, a few long ones, some with nothing in them."""
        lengths = [0 if self._chance(0.15) else int(math.exp(self._random.uniform(0, math.log(160)))) for _ in range(count)]
        lengths[self._random.randrange(count)] += sum(lengths) == 0
        return lengths

    def _draw_documents(self):
        self._rows = self._random.choice((1, 1, 2, 3))
        self._documents = self._lengths(self._random.randint(1, 6))
        self._mask = self._random.choice(MASKS_OF_ANY_KEYS + MASKS_OF_OWN_KEYS)
        if self._mask == "block_diffusion":
            self._documents = [length + length % 2 for length in self._documents]
        self._keys = self._documents
        self._add(seq_length=sum(self._documents), doc_lengths=self._documents, micro_batch_size=self._rows)
        if self._mask in MASKS_OF_ANY_KEYS and self._chance(0.4):
            self._keys = self._lengths(len(self._documents))
            self._add(kv_seq_length=sum(self._keys), kv_doc_lengths=self._keys)

    def _draw_mask(self):
        self._add(attention_mask_type=self._mask)
        part = [self._random.choice((0, length, self._random.randint(0, length))) for length in self._documents]
        if self._mask == "sliding_window":
            self._add(window_size=(self._window_side(), self._window_side()))
        elif self._mask.startswith("causal") and self._chance(0.4):
            self._add(window_size=(self._window_side(), self._random.choice((-1, 0))))
        elif self._mask.startswith("padding"):
            self._add(doc_valid_lengths=part)
        elif self._mask == "prefix_lm":
            self._add(prefix_lengths=part)
        elif self._mask.startswith("block"):
            self._add(mask_block_size=self._random.randint(1, 40))
        elif self._mask == "intervals":
            self._add(mask_file=self._write_mask())

    def _window_side(self):
        return self._random.choice((-1, 0, 1, self._random.randint(2, 100)))

    def _write_mask(self):
        """Two disjoint ranges of random keys for each query of one row or of all, some of them empty."""
        rows = self._random.choice((1, self._rows))
        queries, keys = rows * sum(self._documents), rows * sum(self._keys)
        numbers = np.random.default_rng(self._random.getrandbits(32))
        bounds = np.sort(numbers.integers(0, keys + 1, (queries, 4)), axis=1)
        bounds[numbers.random(queries) < 0.1] = 0
        path = self._directory / "mask.h5"
        with h5py.File(path, "w") as file:
            file["intervals"] = bounds
        return path

    def _draw_schemes(self):
        """Returns over how many ranks heads are swapped at most."""
        algorithms = ("p2p", "all_gather", "a2a")
        sizes = self._factors(self._random.randint(1, 3))
        layers = self._random.choice((1, 1, 2))
        schemes = [[self._random.choice(algorithms) for _ in sizes] for _ in range(layers)]
        self._add(num_layers=layers, cp_comm_type=["+".join(scheme) for scheme in schemes])
        if len(sizes) > 1:
            self._add(hierarchical_context_parallel_sizes=sizes)
        return max(
            math.prod(size for size, algorithm in zip(sizes, scheme) if algorithm == "a2a") for scheme in schemes
        )

    def _factors(self, count):
        """`count` sizes of levels whose product is the context-parallel size; some may be 1."""
        sizes, left = [], self._cp
        for _ in range(count - 1):
            sizes.append(self._random.choice([size for size in range(1, left + 1) if left % size == 0]))
            left //= sizes[-1]
        return [*sizes, left]

    def _draw_heads(self, tensor, swaps):
        groups = self._random.randint(1, 3)
        queries_per_group = self._random.randint(-(-swaps // groups), -(-swaps // groups) + 2)
        self._add(num_attention_heads=tensor * groups * queries_per_group, num_query_groups=tensor * groups)
        self._channels = self._head_dimension()
        self._add(kv_channels=self._channels)
        if self._chance(0.5):
            self._add(v_channels=self._head_dimension())
        types = ("fp32", "fp32", "bf16", "fp16")
        self._add(dtype=self._random.choice(types), grad_comm_dtype=self._random.choice(types))

    def _head_dimension(self):
        return 8 * self._random.choice((1, 2, 3, 4, 8, self._random.randint(1, 32)))

    def _draw_partition(self):
        partition = self._random.choice(("zigzag", "contiguous", "striped", "balanced"))
        self._add(cp_partition=partition)
        if partition == "striped" and self._chance(0.7):
            self._add(stripe_size=self._random.choice((1, 2, self._random.randint(3, 64))))

    def _draw_softmax(self, seed):
        self._add(seed=seed, softmax_type=self._random.choice(("vanilla", "off-by-one", "learnable")))
        if self._chance(0.3):
            # Not steeper: what fp32 knows of an exponential is worth the less the larger its logit is, and the
            # tolerance holds for every single row.
            self._add(softmax_scale=round(self._random.uniform(0.3, 1.5) / math.sqrt(self._channels), 3))
        if self._chance(0.5):
            self._add(attention_dropout=self._random.choice((0.1, 0.5, round(self._random.random() * 0.9, 3))))
        if self._chance(0.5):
            self._add(return_max_logit=True)

    def _draw_measurement(self):
        if self.ranks == 1 and self._chance(0.2):
            self._add(attention_kernel="reference")
        self._add(threads_per_rank=self._random.choice((1, 1, 2, 3)))
        self._add(**{"pass": self._random.choice(("fwd", "bwd", "fwdbwd", "fwdbwd"))})
        self._add(iterations=self._random.randint(1, 2), warmup=self._random.randint(0, 1), verify="full")
