"""Input files that cannot be used, given to the whole program: one message, exit status 2, nothing written.

    program_input_test.py MPIRUN HCP   (with the repository's root in PYTHONPATH)
"""

import json
import pathlib

import program_case
import h5py
import numpy as np

RANKS = 3
TOKENS, HEADS, DIM = 48, 2, 16
REAL = pathlib.Path(__file__).parents[2] / "inputs" / "real" / "minilm_layer3.h5"


class BadInputFile(program_case.ProgramCase):
    def setUp(self):
        super().setUp()
        self.path = self.directory / "in.h5"

    def write(self, **replaced):
        """A good file, but for the datasets given; None leaves one out."""
        random = np.random.default_rng(7)
        values = {name: random.standard_normal((TOKENS, HEADS, DIM), np.float32) for name in ("q", "k", "v")}
        with h5py.File(self.path, "w") as file:
            for name, value in {**values, **replaced}.items():
                if value is not None:
                    file[name] = value

    def require_refusal(self, *texts, options=()):
        status = self.run_to_end(RANKS, "--qkv", self.path, "--iterations", 1, "--trace", self.trace, *options)
        self.assertEqual(status, 2, self.stderr())
        self.assertEqual(len(self.messages()), 1, self.stderr())
        for text in texts:
            self.assertIn(text, self.messages()[0])
        self.assertFalse(self.trace.exists())
        self.assertEqual(self.stdout(), "")

    def tensor(self, *shape, dtype=np.float32):
        return np.ones(shape or (TOKENS, HEADS, DIM), dtype)

    def with_value(self, value, token):
        tensor = self.tensor()
        tensor[token, 1, 2] = value
        return tensor

    def test_good_file_passes(self):
        self.write(doc_lengths=np.array([40, 0, 8]))
        status = self.run_to_end(RANKS, "--qkv", self.path, "--iterations", 1, "--trace", self.trace)
        self.assertEqual((status, self.stdout().splitlines()[-1]), (0, "PASS"), self.stderr())

    def test_many_documents(self):
        lengths = [str(1 + number % 2) for number in range(20000)]
        deck = self.directory / "many.cfg"
        deck.write_text(f"doc-lengths = {','.join(lengths)}\n")
        problem = ("--seq-length", 30000, "--num-attention-heads", 3, "--kv-channels", 8)
        status = self.run_to_end(RANKS, deck, *problem, "--iterations", 1, "--verify", "off", "--trace", self.trace)
        self.assertEqual(status, 0, self.stderr())
        with h5py.File(self.trace, "r") as file:
            options = json.loads(file["cells"][0]["options"])
            self.assertEqual(options["doc-lengths"], ",".join(lengths[:64]) + ",… (20000 values)")
            self.assertEqual(file.attrs["doc_lengths"].decode(), ",".join(lengths))

    def test_broken_during_the_run(self):
        """What goes wrong after the start may be one rank's own error, whatever its type: said, and the job ends."""
        self.write()
        with h5py.File(self.path, "r") as file:
            first_value = file["q"].id.get_offset()
        job = self.start(RANKS, "--qkv", self.path, "--iterations", 600, "--verify", "full", "--trace", self.trace)
        self.wait_until(lambda: "TFLOP/s" in self.stdout() or job.poll() is not None, "the head of the table")
        with open(self.path, "r+b") as file:
            file.seek(first_value)
            file.write(np.float32(np.nan).tobytes())
        self.assertEqual(job.wait(timeout=program_case.WAIT_S), 3, self.stderr())
        self.assertRegex(self.stderr(), r"(?m)^hcp: world rank \d: .*holds nan at \[0, 0, 0\]")

    def test_missing(self):
        self.require_refusal("in.h5: there is no such file")

    def test_directory(self):
        self.path.mkdir()
        self.require_refusal("in.h5: it is not a file")

    def test_not_hdf5(self):
        self.path.write_text("q,k,v\n1,2,3\n")
        self.require_refusal("in.h5: it is not an HDF5 file")

    def test_truncated(self):
        whole = REAL.read_bytes()
        for size in (100, len(whole) // 2, len(whole) - 1):
            self.path.write_bytes(whole[:size])
            self.require_refusal("in.h5: ", "truncated")

    def test_missing_dataset(self):
        self.write(v=None)
        self.require_refusal("there is no dataset v; q, k and v are needed")

    def test_wrong_shape(self):
        self.write(q=self.tensor(TOKENS, HEADS * DIM))
        self.require_refusal("dataset q has the shape [48, 32]; it has to be [tokens, heads, dim]")
        self.write(k=self.tensor(TOKENS - 1, HEADS, DIM))
        self.require_refusal("dataset v has the shape [48, 2, 16]", "= [47, 2, 16]")
        self.write(v=self.tensor(TOKENS, HEADS - 1, DIM))
        self.require_refusal("dataset v has the shape [48, 1, 16]", "= [48, 2, 16]")
        self.write(q=self.tensor(TOKENS, HEADS, 12), k=self.tensor(TOKENS, HEADS, 12))
        self.require_refusal("12 is not possible; head dimensions are 8 to 256 in steps of 8")

    def test_wrong_type(self):
        self.write(k=self.tensor(dtype=np.int32))
        self.require_refusal("dataset k has elements of another type (4 bytes each)")
        self.write(k=self.tensor(dtype=np.float64))
        self.require_refusal("dataset k has elements of another type (8 bytes each); use floating point of 2 or 4")

    def test_document_lengths(self):
        self.write(doc_lengths=np.array([40, 7]))
        self.require_refusal("dataset doc_lengths sums to 47; the tensors have 48 tokens")
        self.write(doc_lengths=np.array([60, -12]))
        self.require_refusal("doc_lengths holds the length 60 where 48 of 48 tokens are left")

    def test_values_that_one_rank_alone_reads(self):
        for token in (0, 20, TOKENS - 1):  # of rank 0, of rank 2, of rank 0 again; contiguous: of rank 0, 1, 2
            self.write(k=self.with_value(np.nan, token))
            self.require_refusal(f"dataset k holds nan at [{token}, 1, 2]; values have to be finite")
            self.require_refusal(f"at [{token}, 1, 2]", options=("--cp-partition", "contiguous"))
        self.write(dout=self.with_value(np.inf, 20))
        self.require_refusal("dataset dout holds inf at [20, 1, 2]")
        self.write(v=self.with_value(70000.0, 20))
        self.require_refusal("dataset v holds 70000", "finite in fp16", options=("--dtype", "fp16"))

    def test_output_to_compare_with(self):
        self.write(out=self.with_value(np.nan, 20))
        self.require_refusal("dataset out holds nan at [20, 1, 2]")

    def test_options_that_disagree(self):
        self.write()
        self.require_refusal("--num-attention-heads 5 disagrees", "has 2", options=("--num-attention-heads", 5))
        self.require_refusal("swaps heads over 3 ranks", options=("--cp-comm-type", "a2a"))


if __name__ == "__main__":
    program_case.main()
