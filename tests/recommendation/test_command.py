"""``heterformer recommend`` as a user meets it."""

from __future__ import annotations

import json

import pytest

from heterformer.cli.main import main
from tests.shop import shop, trained_shop


def test_a_table_per_user_or_json(capsys: pytest.CaptureFixture[str]) -> None:
    run = str(trained_shop())
    main(["recommend", run, "user-3", "user-7", "--type", "item", "--exclude-known", "--top", "3"])
    shown = capsys.readouterr().out
    assert "item nodes for user: user-3" in shown
    assert "item nodes for user: user-7" in shown
    main(["recommend", run, "--likes", "item-1", "--likes", "item-2", "--top", "3", "--json"])
    (answer,) = json.loads(capsys.readouterr().out)
    assert [item["id"] for item in answer["likes"]] == ["item-1", "item-2"]
    assert len(answer["ranking"]["hits"]) == 3
    main(["recommend", run, "--likes", "item-1", "--top", "1"])
    assert "item nodes for somebody with item: " in capsys.readouterr().out


@pytest.mark.parametrize("whom", [["user-3"], ["--likes", "item-2", "--likes", "item-10"]])
def test_all_flags_together(whom: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    network = shop()
    users, items = network.edges("bought")
    bought = network.ids("item", items[users == network.rows("user", ["user-3"])[0]])
    known = set(bought if whom == ["user-3"] else whom[1::2])
    departments = dict(zip(network.ids("item"), network.labels("item").list.first(), strict=True))
    department = departments[min(known)]
    able = {item for item, name in departments.items() if name == department}
    flags = [
        "--type",
        "item",
        "--where",
        f"label == '{department}'",
        "--top",
        "160",
        "--device",
        "cpu",
        "--json",
    ]
    main(["recommend", str(trained_shop()), *whom, *flags])
    (every,) = json.loads(capsys.readouterr().out)
    hits = [hit["id"] for hit in every["ranking"]["hits"]]
    assert set(hits) == able
    main(["recommend", str(trained_shop()), *whom, *flags, "--exclude-known"])
    (new,) = json.loads(capsys.readouterr().out)
    assert [hit["id"] for hit in new["ranking"]["hits"]] == [i for i in hits if i not in known]


def test_nobody_is_an_error_before_the_run_is_opened(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_:
        main(["recommend", "no-such-run"])
    assert exit_.value.code == 1
    assert capsys.readouterr().err.startswith("error: there is no user to recommend to")
