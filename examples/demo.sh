#!/usr/bin/env bash
# Builds and describes a small synthetic academic network, from tables to a network folder.
set -euo pipefail
cd "$(dirname "$0")/.."
heterformer=.venv/bin/heterformer
rm -rf demo
mkdir demo
$heterformer synth demo/academic --papers 2000
$heterformer build demo/academic/network.yaml demo/academic.net
$heterformer describe demo/academic.net
echo
echo "The tables and their specification are in demo/academic, the network in demo/academic.net."
echo "Next: open demo/academic/network.yaml and describe your own tables in the same way."
