"""Attention of hcp in a process of its own that stays alive, one case at a time."""

import os
import subprocess
import tempfile

import torch


class LineProgram:
    """A program that answers each line that it reads with one."""

    def __init__(self, command, environment=None):
        self._command = [str(word) for word in command]
        self._process = subprocess.Popen(
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **(environment or {})},
        )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._process.stdin.close()  # both kinds of program end at the end of their input
        self._process.wait()

    def send(self, line):
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()

    def receive(self):
        answer = self._process.stdout.readline()
        if not answer:
            raise RuntimeError(f"{' '.join(self._command)} ended with status {self._process.wait()}")
        return answer.strip()

    def ask(self, line):
        self.send(line)
        return self.receive()


class HcpAttention:
    def __init__(self, program, case):
        """`program`: a LineProgram of bench_attention_once."""
        self._program = program
        program.ask(f"case {case.words}")

    def run(self, calls):
        """As TorchAttention.run."""
        return float(self._program.ask(f"run {calls}"))

    def results(self):
        """As TorchAttention.results."""
        with tempfile.NamedTemporaryFile(prefix="hcp_peers_") as file:
            self._program.ask("run 1")
            self._program.ask(f"write {file.name}")
            return torch.frombuffer(bytearray(file.read()), dtype=torch.float32)
