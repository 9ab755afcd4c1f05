"""Serves SmolLM2-135M as OpenAI does: `serve_model.py PATH` prints the server's address and ends with its input."""

from __future__ import annotations

import sys

import xllamacpp

if __name__ == "__main__":
    parameters = xllamacpp.CommonParams()
    parameters.model.path = sys.argv[1]
    parameters.n_ctx, parameters.n_parallel = 4096, 1
    parameters.cpuparams.n_threads = 2
    parameters.port = 0
    server = xllamacpp.Server(parameters)
    sys.stdout.write(f"{server.listening_address}\n")
    sys.stdout.flush()
    sys.stdin.read()
