"""Dropout through the whole program: the same elements drop whatever the grid, the scheme and the partition.

    program_dropout_test.py MPIRUN HCP   (with the repository's root in PYTHONPATH)

Every run holds its gradients against its own reference, and its out also against one that is computed here, from the
definition of what drops (kernels/dropout.hpp), for the whole sequence at once.
"""

import program_case
import h5py
import numpy as np

LENGTHS = (61, 0, 90, 1, 47)
HEADS, GROUPS, DIM = 8, 4, 16
PROBABILITY, SEED = 0.1, 2**33 + 5
OPTIONS = (
    f"--qkv in.h5 --attention-mask-type causal --attention-dropout {PROBABILITY} --iterations 1 --warmup 0 --verify full"
).split()


def philox(counter, key):
    """Philox 4x32-10 (Salmon et al. 2011): four words for each counter; words are arrays that broadcast."""
    word = np.uint64(0xFFFFFFFF)
    c = [np.asarray(each, np.uint64) for each in counter]
    k = [int(each) for each in key]
    for _ in range(10):
        first, second = c[0] * np.uint64(0xD2511F53), c[2] * np.uint64(0xCD9E8D57)
        c = [
            (second >> np.uint64(32)) ^ c[1] ^ np.uint64(k[0]), second & word,
            (first >> np.uint64(32)) ^ c[3] ^ np.uint64(k[1]), first & word,
        ]
        k = [(k[0] + 0x9E3779B9) % 2**32, (k[1] + 0xBB67AE85) % 2**32]
    return c


def kept(document, head, length):
    """[queries, keys] of one document: 0 where dropped, else what the element is multiplied by."""
    stream = [int(each) for each in philox((0, 0, document, head), (SEED % 2**32, SEED >> 32))]
    query, key = np.meshgrid(np.arange(length), np.arange(length), indexing="ij")
    call = 8 * (key // 64) + key % 32 // 4
    words = np.stack(philox((call, query, stream[2], stream[3]), stream[:2]))
    half, place = key % 64 // 32, key % 4
    word = np.take_along_axis(words, (2 * half + place // 2)[None], axis=0)[0]
    number = (word >> (16 * (place % 2)).astype(np.uint64)) & np.uint64(0xFFFF)
    threshold = round(PROBABILITY * 65536)
    return np.where(number < threshold, 0.0, 65536 / (65536 - threshold))


def attention(q, k, v):
    """Causal attention of packed documents in fp64, dense."""
    out = np.zeros(q.shape)
    begin = 0
    for document, length in enumerate(LENGTHS):
        rows = slice(begin, begin + length)
        begin += length
        for head in range(HEADS if length > 0 else 0):
            group = head * GROUPS // HEADS
            scores = q[rows, head].astype(float) @ k[rows, group].astype(float).T / np.sqrt(DIM)
            scores[np.triu_indices(length, 1)] = -np.inf
            p = np.exp(scores - scores.max(axis=1, keepdims=True))
            p /= p.sum(axis=1, keepdims=True)
            out[rows, head] = (p * kept(document, head, length)) @ v[rows, group].astype(float)
    return out


class SameElements(program_case.ProgramCase):
    largest = 0.0  # error of all runs

    @classmethod
    def tearDownClass(cls):
        print(f"\nlargest error {cls.largest:.1e}", flush=True)

    def setUp(self):
        super().setUp()
        random = np.random.default_rng(2)
        q, k, v, dout = (
            random.standard_normal((sum(LENGTHS), heads, DIM), np.float32) for heads in (HEADS, GROUPS, GROUPS, HEADS)
        )
        with h5py.File(self.directory / "in.h5", "w") as file:
            file["q"], file["k"], file["v"], file["dout"] = q, k, v, dout
            file["doc_lengths"] = LENGTHS
            file["out"] = attention(q, k, v).astype(np.float32)

    def run_problem(self, ranks, options, seed=SEED):
        status = self.run_to_end(ranks, *OPTIONS, *options.split(), "--seed", seed, "--trace", self.trace)
        self.assertTrue(self.trace.exists(), self.stderr())
        with h5py.File(self.trace, "r") as file:
            (result,) = file["results"][:]
        self.trace.unlink()
        return status, result

    def require_agreement(self, ranks, options):
        status, result = self.run_problem(ranks, options)
        self.assertEqual((status, result["verdict"], result["verification"]), (0, b"PASS", b"full"), self.stderr())
        self.require_small(result["error"], options)

    def require_small(self, error, options):
        self.assertLessEqual(error, 2e-6, options)
        SameElements.largest = max(SameElements.largest, error)

    def test_one_rank(self):
        self.require_agreement(1, "")

    def test_other_elements_are_noticed(self):
        status, result = self.run_problem(1, "", seed=SEED + 1)
        self.assertEqual(status, 1)
        self.assertGreater(result["error"], 0.01)
        self.assertRegex(self.stderr(), "in stored out of tokens")

    def test_two_ranks(self):
        self.require_agreement(2, "--cp-comm-type p2p")
        self.require_agreement(2, "--cp-comm-type a2a --cp-partition striped --stripe-size 3")

    def test_four_ranks(self):
        sizes = " --hierarchical-context-parallel-sizes 2,2"
        self.require_agreement(4, "--cp-comm-type all_gather --cp-partition contiguous")
        self.require_agreement(4, "--cp-comm-type p2p --cp-partition balanced")
        self.require_agreement(4, "--cp-comm-type p2p+a2a" + sizes)
        self.require_agreement(4, "--cp-comm-type a2a+p2p --cp-partition contiguous" + sizes)
        self.require_agreement(4, "--cp-comm-type p2p+p2p --cp-partition striped" + sizes)
        self.require_agreement(4, "--cp-comm-type all_gather+p2p --cp-partition balanced" + sizes)

    def test_eight_ranks(self):
        self.require_agreement(8, "--cp-comm-type p2p")
        self.require_agreement(8, "--cp-comm-type a2a --cp-partition contiguous")
        self.require_agreement(
            8, "--cp-comm-type all_gather+a2a --hierarchical-context-parallel-sizes 4,2 --cp-partition balanced")
        self.require_agreement(
            8, "--cp-comm-type a2a+p2p+p2p --hierarchical-context-parallel-sizes 2,2,2 --cp-partition striped")

    def test_heads_are_counted_over_tensor_parallel_ranks(self):
        self.require_agreement(4, "--tensor-model-parallel-size 2 --context-parallel-size 2 --cp-comm-type a2a")
        self.require_agreement(4, "--tensor-model-parallel-size 4 --context-parallel-size 1")

    def test_replicas_drop_alike(self):
        self.require_agreement(4, "--context-parallel-size 2 --cp-comm-type p2p")
        self.require_agreement(4, "--context-parallel-size 2 --pipeline-model-parallel-size 2 --cp-comm-type p2p")

    def test_rows_of_a_micro_batch(self):
        """An input file is one row, so these are held against the program's own reference alone."""
        options = (
            f"--seq-length 90 --doc-lengths 41,0,49 --micro-batch-size 2 --num-attention-heads 4 --kv-channels 16"
            f" --attention-mask-type causal --attention-dropout {PROBABILITY} --iterations 1 --warmup 0 --verify full"
        )
        for scheme, partition in (("p2p", "zigzag"), ("a2a", "balanced"), ("all_gather", "striped")):
            status = self.run_to_end(
                4, *options.split(), "--cp-comm-type", scheme, "--cp-partition", partition, "--trace", self.trace)
            self.assertEqual(status, 0, self.stderr())
            with h5py.File(self.trace, "r") as file:
                self.require_small(file["results"]["error"][0], (scheme, partition))
            self.trace.unlink()


if __name__ == "__main__":
    program_case.main()
