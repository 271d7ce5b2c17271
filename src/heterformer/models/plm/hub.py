"""The Hugging Face Hub: asked once for a model that is not on this machine, before its files are wanted."""

from __future__ import annotations

from difflib import get_close_matches
from functools import cache

from heterformer.errors import InputError

CONFIGURATION = "config.json"


@cache
def check_reachable(name: str, known: tuple[str, ...] = ()) -> None:
    """Refuse at once a name that is not in the cache if no hub answers.

    Transformers would ask again and again for half a minute, for each of a model's files. What a hub that
    answers says of the name is left to Transformers. ``known`` are names that may be meant instead.
    """
    from huggingface_hub import get_hf_file_metadata, hf_hub_url, try_to_load_from_cache
    from huggingface_hub.errors import FileMetadataError, HfHubHTTPError

    if isinstance(try_to_load_from_cache(name, CONFIGURATION), str):
        return
    try:
        get_hf_file_metadata(hf_hub_url(name, CONFIGURATION))
    except (HfHubHTTPError, FileMetadataError):
        return
    except Exception as error:  # of whichever HTTP library the hub's client uses
        guess = get_close_matches(name, known, n=1)
        hint = f" (did you mean {guess[0]!r}?)" if guess else ""
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        problem = f"no such folder, nor can a model hub be reached: {reason.rstrip('.')}"
        raise InputError(f"{name}{hint}: {problem}.") from None
