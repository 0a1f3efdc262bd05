#!/usr/bin/env bash
# Trains with one process for each device of this machine: examples/torchrun.sh PROCESSES DATA
# All of them, and their data loaders' workers, share one sidecar: each file is fetched once.
set -euo pipefail
[ $# = 2 ] || { echo "usage: $0 PROCESSES DATA" >&2; exit 2; }
exec sluice run -- torchrun --standalone --nproc-per-node "$1" "$(dirname "$0")/train_files.py" "$2"
