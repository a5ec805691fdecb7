"""Every mask through the whole program, verified, and the bad ones: one message, exit status 2, nothing written.

    program_mask_test.py MPIRUN HCP   (with the repository's root in PYTHONPATH)
"""

import json

import program_case
import h5py
import numpy as np

RANKS = 4
# Documents of odd lengths and of none, and pairs of rows.
PROBLEM = (
    "--seq-length 90 --doc-lengths 41,0,19,30 --num-attention-heads 4 --num-query-groups 2 --kv-channels 16 "
    "--iterations 1 --warmup 0 --micro-batch-size 2 --simulate-ranks-per-node 2"
).split()
KEYS = "--kv-seq-length 71 --kv-doc-lengths 0,12,9,50".split()
EVEN = "--doc-lengths 42,0,18,30".split()


class MaskProgram(program_case.ProgramCase):
    def setUp(self):
        super().setUp()
        self.mask_file = self.directory / "mask.h5"

    def write_mask(self, bounds):
        with h5py.File(self.mask_file, "w") as file:
            file["intervals"] = bounds

    def random_ranges(self, queries, keys):
        """Two disjoint ranges of random keys for each query, of 0 to all keys."""
        bounds = np.sort(np.random.default_rng(11).integers(0, keys + 1, (queries, 4)), axis=1)
        bounds[::7] = 0  # these see nothing
        return bounds

    def options(self, mask, *more):
        """PROBLEM with a mask; what `more` gives again takes the place of the first."""
        words = [*PROBLEM, "--attention-mask-type", mask]
        for name, value in zip(more[::2], more[1::2]):
            if name in words:
                words[words.index(name) + 1] = value
            else:
                words += [name, value]
        return words


class EveryMask(MaskProgram):
    """Documents, odd lengths and two rows, each under another scheme."""

    def require_pass(self, scheme, mask, *more):
        """The run verifies itself; its trace tells the mask. Returns its options."""
        options = [*self.options(mask, *more), "--cp-comm-type", scheme, "--verify", "full"]
        status = self.run_to_end(RANKS, *options, "--trace", self.trace)
        self.assertEqual((status, self.stdout().splitlines()[-1]), (0, "PASS"), self.stdout() + self.stderr())
        with h5py.File(self.trace, "r") as file:
            cell = file["cells"][0]
            ledger = file["bytes"][:]
        self.trace.unlink()
        self.assertEqual(cell["mask"].decode(), mask)
        self.assertTrue((ledger["bytes_counted"] == ledger["bytes_planned"]).all())
        told = json.loads(cell["options"])
        for name, value in zip(more[::2], more[1::2]):
            self.assertEqual(told[name.removeprefix("--")], str(value))
        return told

    def test_masks_of_positions(self):
        self.require_pass("p2p", "no_mask")
        self.require_pass("a2a+p2p", "causal", "--window-size", "6,-1")
        self.require_pass("p2p+p2p", "causal_bottom_right")
        self.require_pass("p2p+a2a", "sliding_window", "--window-size", "5,3")
        self.require_pass("all_gather+p2p", "sliding_window", "--window-size", "-1,2")

    def test_masks_of_documents(self):
        self.require_pass("a2a", "padding", "--doc-valid-lengths", "40,0,0,3")
        self.require_pass("p2p+all_gather", "padding_causal", "--doc-valid-lengths", "41,0,7,0")
        self.require_pass("p2p", "prefix_lm", "--prefix-lengths", "12,0,19,0")

    def test_masks_of_blocks(self):
        self.require_pass("all_gather", "block_causal", "--mask-block-size", 8)
        self.require_pass("p2p+a2a", "block_diffusion", "--mask-block-size", 4, *EVEN)

    def test_intervals(self):
        mask = ("--mask-file", self.mask_file)
        self.write_mask(self.random_ranges(90, 90))
        self.require_pass("p2p+a2a", "intervals", *mask)
        self.write_mask(self.random_ranges(180, 142).astype(np.int32))
        self.require_pass("a2a+p2p", "intervals", *mask, *KEYS, "--cp-partition", "contiguous")

    def test_keys_of_other_tokens(self):
        self.require_pass("p2p", "no_mask", *KEYS)
        self.require_pass("a2a", "causal", *KEYS)
        self.require_pass("all_gather+a2a", "causal_bottom_right", *KEYS, "--window-size", "9,0")
        self.require_pass("p2p+p2p", "sliding_window", *KEYS, "--window-size", "2,4", "--softmax-scale", "0.125")

    def test_keys_of_other_tokens_from_a_file(self):
        random = np.random.default_rng(3)
        with h5py.File(self.directory / "in.h5", "w") as file:
            for name, tokens in (("q", 33), ("k", 50), ("v", 50)):
                file[name] = random.standard_normal((tokens, 4, 16), np.float32)
            file["doc_lengths"] = [20, 13]
            file["kv_doc_lengths"] = [7, 43]
        options = "--qkv in.h5 --iterations 1 --verify full --cp-comm-type p2p --attention-mask-type causal_bottom_right"
        status = self.run_to_end(RANKS, *options.split(), "--trace", self.trace)
        self.assertEqual((status, self.stdout().splitlines()[-1]), (0, "PASS"), self.stdout() + self.stderr())
        with h5py.File(self.trace, "r") as file:
            told = json.loads(file["cells"][0]["options"])
        self.assertEqual((told["kv-seq-length"], told["kv-doc-lengths"]), ("50", "7,43"))

    def test_the_header_tells_the_mask(self):
        self.require_pass("p2p", "sliding_window", "--window-size", "5,3", *KEYS, "--softmax-scale", "0.5")
        self.assertIn("# mask: sliding_window, window-size 5,3; softmax scale 0.5, vanilla, dropout 0\n", self.stdout())
        self.assertIn("# problem: 2 x 90 tokens of queries, 71 of keys, 4 documents per row", self.stdout())

    def test_a_sample_of_softmax_variants(self):
        terms = "--softmax-type learnable --attention-dropout 0.25 --return-max-logit --verify sample".split()
        for scheme, mask, *more in (
            ("a2a", "causal"), ("p2p", "padding", "--doc-valid-lengths", "40,0,0,3"), ("p2p+p2p", "causal", *KEYS)
        ):
            status = self.run_to_end(
                RANKS, *self.options(mask, *more), *terms, "--cp-comm-type", scheme, "--trace", self.trace)
            self.assertEqual((status, self.stdout().splitlines()[-1]), (0, "PASS"), self.stdout() + self.stderr())
            with h5py.File(self.trace, "r") as file:
                self.assertEqual(file["results"]["verification"][0], b"sample")
            self.trace.unlink()

    def test_softmax_and_dropout(self):
        """Verified by the reference with the same sinks and the same dropped elements, whatever the scheme."""
        terms = ("--softmax-type", "learnable", "--attention-dropout", "0.25", "--return-max-logit")
        logits = set()
        for scheme in ("p2p", "a2a", "p2p+a2a"):
            status = self.run_to_end(
                RANKS, *self.options("sliding_window", "--window-size", "7,0", *KEYS), *terms,
                "--cp-comm-type", scheme, "--verify", "full", "--tensor-model-parallel-size", 2, "--trace", self.trace)
            self.assertEqual((status, self.stdout().splitlines()[-1]), (0, "PASS"), self.stdout() + self.stderr())
            self.trace.unlink()
            (line,) = (line for line in self.stdout().splitlines() if line.startswith("# max logit of each head, layer 0:"))
            self.assertEqual(len(line.partition(": ")[2].split()), 4)
            logits.add(line)
        self.assertEqual(len(logits), 1)
        self.require_pass("all_gather+p2p", "padding", "--doc-valid-lengths", "40,0,0,3", "--softmax-type", "off-by-one")


class BadMask(MaskProgram):
    def require_refusal(self, text, mask, *more):
        status = self.run_to_end(RANKS, *self.options(mask, *more), "--trace", self.trace)
        self.assertEqual(status, 2, self.stderr())
        self.assertEqual(len(self.messages()), 1, self.stderr())
        self.assertIn(text, self.messages()[0])
        self.assertFalse(self.trace.exists())
        self.assertEqual(self.stdout(), "")

    def test_options(self):
        self.require_refusal("'-2' is too small; at least -1", "sliding_window", "--window-size", "-2,0")
        self.require_refusal("--doc-lengths sum to 89, but --seq-length is 90", "causal", "--doc-lengths", "40,0,19,30")
        self.require_refusal("--prefix-lengths 1 does not belong to", "causal", "--prefix-lengths", "1")
        self.require_refusal("length 20 of document 2", "padding", "--doc-valid-lengths", "40,0,20,3")

    def test_intervals(self):
        bounds = self.random_ranges(90, 90)
        bounds[13] = [3, 9, 8, 20]
        self.write_mask(bounds)
        self.require_refusal("query row 13: [3, 9) and [8, 20) overlap", "intervals", "--mask-file", self.mask_file)
        bounds[13] = [3, 9, 80, 91]
        self.write_mask(bounds)
        self.require_refusal("query row 13: [80, 91)", "intervals", "--mask-file", self.mask_file)


if __name__ == "__main__":
    program_case.main()
