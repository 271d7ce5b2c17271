from __future__ import annotations

import pytest

from heterformer.errors import InputError
from heterformer.serve.options import KEY_VARIABLE, ServeOptions


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1", "127.9.9.9"])
def test_this_machine_needs_no_key(host: str) -> None:
    assert ServeOptions(host=host).is_local


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.0.1", "example.org"])
def test_others_need_a_key(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(KEY_VARIABLE, raising=False)
    with pytest.raises(InputError, match=r"^host is .*, which others can reach; give api_key, or insecure"):
        ServeOptions(host=host)
    assert not ServeOptions(host=host, insecure=True).is_local
    assert ServeOptions(host=host, api_key="k").key == "k"
    monkeypatch.setenv(KEY_VARIABLE, "secret")
    assert ServeOptions(host=host).key == "secret"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("port", -1),
        ("port", 65536),
        ("timeout", 0),
        ("timeout", float("nan")),
        ("max_inputs", 0),
        ("max_body", 0),
    ],
)
def test_limits_are_checked(name: str, value: float) -> None:
    with pytest.raises(InputError, match=rf"^{name} is {value}, expected "):
        ServeOptions(**{name: value})


def test_as_many_texts_may_wait_as_one_request_has() -> None:
    with pytest.raises(InputError, match=r"^max_waiting is 5, expected at least max_inputs \(6\)\.$"):
        ServeOptions(max_waiting=5, max_inputs=6)
