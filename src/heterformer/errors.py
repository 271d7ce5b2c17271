"""The one exception that means: the input is wrong, not the program."""


class InputError(Exception):
    """A mistake in what the user gave. Its message is one sentence that names the place and the remedy.

    The command line prints it without a traceback and exits with 1. It is no ValueError because tyro takes
    those of a group of options for its own and prints them with names that nobody knows.
    """


class ReportedElsewhereError(InputError):
    """A mistake that another process of the same run tells the user; this one ends without a word."""
