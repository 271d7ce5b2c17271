"""``python -m heterformer`` is the command line too, for torchrun and the like."""

from heterformer.cli.main import main

main()
