"""Grids, schemes and types through the whole program: verified, and as `hcp plan` said before.

    program_grid_test.py MPIRUN HCP   (with the repository's root in PYTHONPATH)
"""

import json
import re
import subprocess

import program_case
import h5py
import pandas

SMALL = "--seq-length 91 --num-attention-heads 8 --kv-channels 16".split()
TIMES = "--iterations 2 --warmup 1 --verify full".split()


class Grid(program_case.ProgramCase):
    def require_run_as_planned(self, ranks, options, replicas=1):
        """Verified by the run itself; its bytes and live memory are those of a plan of the same options.

        `replicas`: how many data-parallel groups there are; a plan is of one. Returns tables of the trace.
        """
        options = [*SMALL, *options.split()]
        plan = self.plan_of(options)
        status = self.run_to_end(ranks, *options, *TIMES, "--trace", self.trace)
        self.assertEqual((status, self.stdout().splitlines()[-1]), (0, "PASS"), self.stdout() + self.stderr())
        with h5py.File(self.trace, "r") as file:
            tables = {name: frame(file[name]) for name in ("bytes", "memory", "placement")}
        self.trace.unlink()

        ledger = tables["bytes"]
        self.assertTrue((ledger.bytes_counted == ledger.bytes_planned).all())
        self.assertTrue((ledger.messages_counted == ledger.messages_planned).all())
        self.assertEqual(traffic_in_trace(ledger), traffic_in_plan(plan, replicas))
        self.assertEqual(peaks_in_trace(tables["memory"]), peaks_in_plan(plan))
        return tables

    def text_of_plan(self, options):
        command = [self.hcp, "plan", *options]
        if "--context-parallel-size" not in options:
            command += ["--context-parallel-size", "4"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def plan_of(self, options):
        """The rows of what `hcp plan` prints, split into words."""
        return [line.split() for line in self.text_of_plan(options).splitlines() if not line.startswith("#")]

    def require_sizes(self, tables, **sizes):
        """The coordinates in the grid that are really taken."""
        for axis, size in sizes.items():
            self.assertEqual(sorted(tables["placement"][axis].unique()), list(range(size)), axis)


def frame(dataset):
    table = pandas.DataFrame(dataset[:])
    for column in table.select_dtypes(object):
        table[column] = table[column].str.decode("utf-8")
    return table


def traffic_in_trace(ledger):
    """(level, pass, across nodes) -> (bytes, messages) of all ranks."""
    sums = ledger.groupby(["level", "pass", "across_nodes"])[["bytes_counted", "messages_counted"]].sum()
    return {key: tuple(row) for key, row in zip(sums.index, sums.to_numpy())}


def traffic_in_plan(plan, replicas):
    traffic = {}
    for level, pass_, *numbers in (row for row in plan if len(row) == 6):
        inside_bytes, inside_messages, across_bytes, across_messages = (replicas * int(number) for number in numbers)
        for across, sums in ((0, (inside_bytes, inside_messages)), (1, (across_bytes, across_messages))):
            if sums != (0, 0):
                traffic[int(level), pass_, across] = sums
    return traffic


def peaks_in_trace(memory):
    """Category, or "together" -> smallest and largest peak of a rank; what never was live is left out."""
    memory = memory[~memory.category.isin(["rss", "device"])]
    peaks = memory.groupby(["category", "rank"]).live_bytes.max().unstack(fill_value=0)
    together = [rank_rows.pipe(largest_sum) for _, rank_rows in memory.groupby("rank")]
    return {
        **{category: (row.min(), row.max()) for category, row in peaks.iterrows() if row.max() > 0},
        "together": (min(together), max(together)),
    }


def largest_sum(changes):
    """Of the live bytes of all categories of one rank, whose changes are in the order in which they happened."""
    live = changes.pivot(columns="category", values="live_bytes").ffill().fillna(0)
    return int(live.sum(axis=1).max())


def peaks_in_plan(plan):
    return {row[0]: (int(row[1]), int(row[2])) for row in plan if len(row) == 3 and int(row[2]) > 0}


class Grids(Grid):
    def test_tensor_context_and_pipeline_parallel(self):
        tables = self.require_run_as_planned(
            8,
            "--tensor-model-parallel-size 2 --context-parallel-size 2 --pipeline-model-parallel-size 2"
            " --simulate-ranks-per-node 2 --cp-comm-type p2p",
        )
        self.require_sizes(tables, tp=2, cp=2, pp=2, dp=1)
        self.assertEqual(set(tables["bytes"].across_nodes), {1})  # a node is full of tensor-parallel ranks

    def test_tensor_context_and_data_parallel_with_grouped_queries(self):
        tables = self.require_run_as_planned(
            8,
            "--tensor-model-parallel-size 2 --context-parallel-size 2 --num-query-groups 2"
            " --cp-comm-type a2a --attention-mask-type causal",
            replicas=2,
        )
        self.require_sizes(tables, tp=2, cp=2, pp=1, dp=2)

    def test_three_context_parallel_ranks_beside_two_tensor_parallel_ones(self):
        tables = self.require_run_as_planned(
            6,
            "--tensor-model-parallel-size 2 --context-parallel-size 3 --cp-comm-type p2p"
            " --attention-mask-type causal",
        )
        self.require_sizes(tables, tp=2, cp=3, pp=1, dp=1)


class FourRanks(Grid):
    def test_two_rows_of_documents(self):
        self.require_run_as_planned(
            4,
            "--micro-batch-size 2 --doc-lengths 40,0,34,17 --simulate-ranks-per-node 2 --cp-comm-type a2a+p2p"
            " --attention-mask-type causal",
        )

    def test_layers_with_a_scheme_each(self):
        self.require_run_as_planned(
            4, "--num-layers 3 --cp-comm-type p2p+a2a,all_gather,p2p --simulate-ranks-per-node 2 --num-query-groups 2"
        )

    def test_bfloat16(self):
        self.require_run_as_planned(
            4, "--dtype bf16 --simulate-ranks-per-node 2 --cp-comm-type all_gather+p2p --attention-mask-type causal"
        )

    def test_what_is_told_of_the_partition(self):
        """The stripe size also where it is the default, and the imbalance in header, table, trace and plan."""
        options = [*SMALL, *"--cp-comm-type p2p --attention-mask-type causal --cp-partition striped".split()]
        self.assertEqual(self.run_to_end(4, *options, *TIMES, "--trace", self.trace), 0, self.stderr())
        with h5py.File(self.trace, "r") as file:
            self.assertEqual(json.loads(file["cells"][0]["options"])["stripe-size"], "1")
            imbalance = f"{file['results'][0]['imbalance']:.3f}"
        lines = self.stdout().splitlines()
        (names,) = (line for line in lines if "imbalance mem_min_MB" in line)
        row = lines[lines.index(names) + 1].split()
        self.assertEqual(row[names[1:].split().index("imbalance")], imbalance)
        for text in (self.stdout(), self.text_of_plan(options)):
            self.assertIn("striped partition, stripe size 1", text)
            self.assertEqual(re.findall(r"imbalance (\d.\d+) ", text), [imbalance])
        self.assertGreater(float(imbalance), 1)

    def test_forward_alone(self):
        self.require_run_as_planned(4, "--pass fwd --simulate-ranks-per-node 2 --cp-comm-type p2p+p2p")


if __name__ == "__main__":
    program_case.main()
