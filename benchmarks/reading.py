"""What a look at a network's texts says about reading a backbone, whatever the backbone's files say.

python benchmarks/reading.py NET [--backbone minilm]
"""

from __future__ import annotations

import argparse

from heterformer import Network
from heterformer.network.split.draw import make_split
from heterformer.training.reading import look_at_texts


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("network")
    parser.add_argument("--backbone", default="minilm")
    options = parser.parse_args()
    network = Network.open(options.network)
    seen = look_at_texts(options.backbone, network, make_split(network).train)
    print(seen, seen.options() if seen is not None else "too few pairs of texts", sep="\n")


if __name__ == "__main__":
    main()
