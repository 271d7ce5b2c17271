"""The network of Debian's packages, from lists of exactly APT's shape."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from heterformer import InputError, Network
from heterformer.datasets.debian import DebianOptions, build_debian
from tests.datasets.apt_lists import Lists, write_list
from tests.networks import edges_of, kept


def built(lists: Path, **options: Any) -> Network:
    return build_debian(lists.parent / "net", DebianOptions(lists=lists, **options))


def built_of(tmp_path: Path, collected: Lists, **options: Any) -> Network:
    collected.write(tmp_path / "lists")
    return built(tmp_path / "lists", **options)


def some(**changes: str) -> Lists:
    """Three packages of three sources: a reader of PDF, which needs a renderer and a font."""
    lists = Lists()
    needs = {"Depends": "renderer (>= 1.0)", "Recommends": "typeface", "Section": "text"}
    lists.add("viewer", "shows documents\nPages on the screen.", **{**needs, **changes})
    lists.add("renderer", "draws pages\nA library.", Section="libs")
    lists.add("typeface", "some letters\nPretty ones.", Section="fonts")
    return lists


def test_packages_texts_labels_people_and_tags(tmp_path: Path) -> None:
    lists = Lists()
    lists.add(
        "viewer",
        "shows documents\nPages on the screen,\nalso  à la carte.\n\nAnd more.",
        Section="contrib/text",
        Maintainer="Ünal Ü. <Unal@Example.org>",
        Tag="role::program, works-with::{image,\n text}, special::unreviewed, x::TODO",
        Depends="renderer",
        Source="viewer-src (2.0)",
    )
    lists.add("renderer", "draws pages!\nA library.", Maintainer="U. Ünal <unal@example.org>", Section="")
    network = built_of(tmp_path, lists)
    assert network.ids("package") == ["renderer", "viewer"]
    assert network.texts("package") == [
        "draws pages! A library.",
        "shows documents. Pages on the screen, also à la carte. And more.",
    ]
    assert network.names("package") == ["draws pages!", "shows documents"]
    assert network.labels("package").to_list() == [[], ["text"]]
    assert kept(network, "source", "package") == ["renderer", "viewer-src"]
    assert edges_of(network, "tagged") == [
        ("viewer", tag) for tag in ("role::program", "works-with::image", "works-with::text")
    ]
    assert edges_of(network, "maintained_by") == [
        ("renderer", "unal@example.org"),
        ("viewer", "unal@example.org"),
    ]
    assert network.names("maintainer") == ["U. Ünal"]
    assert {t for r in network.schema.relations for t in (r.source, r.target)} == {
        "package",
        "maintainer",
        "tag",
    }
    assert network.schema.predict == "depends"
    assert network.schema.neighbors == {"package": 5, "maintainer": 1, "tag": 5}
    assert network.schema.max_tokens == 64


def test_relations_and_what_they_may_name(tmp_path: Path) -> None:
    lists = Lists()
    lists.add(
        "viewer",
        "shows documents",
        Pre_Depends="base:any",
        Depends="gone | renderer (>= 1.0) [amd64] | typeface, awk, mta, only-virtual (= 3), , viewer, absent",
        Recommends="typeface <!nocheck>,\n renderer",
        Suggests="mta | tail, base",
    )
    for name in ("renderer", "typeface", "base", "tail"):
        lists.add(name, f"{name} and {name} again")
    lists.add("mawk", "words in lines", Provides="awk (= 1), only-virtual")
    lists.add("exim", "letters one way", Provides="mta")
    lists.add("postfix", "letters another way", Provides="mta")
    network = built_of(tmp_path, lists, text="short", mask_names=False)
    assert edges_of(network, "depends") == [("viewer", "base"), ("viewer", "mawk"), ("viewer", "renderer")]
    assert edges_of(network, "recommends") == [("viewer", "typeface")]  # renderer is needed anyway
    assert edges_of(network, "suggests") == [("viewer", "tail")]


def test_a_package_of_several_lists_is_one_of_its_newest_version(tmp_path: Path) -> None:
    folder = tmp_path / "lists"
    old, new = some(Version="1.0-10"), Lists()
    new.add("viewer", "shows more\nFixed.", Version="1.0-10+deb12u1", Depends="typeface")
    new.write(folder, "a-security", ending=".gz")
    old.write(folder, "main", ending=".xz", tail="\nPackage: torn\nVersion: 1\nDescrip")
    old.write(folder, "main_i386", ending="")
    network = built(folder, mask_names=False)
    assert network.ids("package") == ["renderer", "typeface", "viewer"]
    assert network.texts("package")[2] == "shows more. Fixed."
    assert edges_of(network, "depends") == [("viewer", "typeface")]


def test_no_edges_inside_a_source_and_none_to_hubs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lists = Lists()
    lists.add("libc6", "everything needs it")
    lists.add("data", "pictures and sounds", Source="game")
    lists.add("level", "one more level")
    for i, word in enumerate(("chess", "cards", "dice")):
        lists.add(
            word, f"play {word}", Source="game", Depends="libc6, data", Suggests="level" if i else "libc6"
        )
    lists.add("other", "also plays", Depends="data", Recommends="libc6")
    network = built_of(tmp_path, lists, text="short", max_dependents=3, mask_names=False)
    assert [r.name for r in network.schema.relations] == ["depends", "suggests", "maintained_by"]
    assert edges_of(network, "depends") == [("other", "data")]
    assert edges_of(network, "suggests") == [("dice", "level")]
    assert "libc6" in network.ids("package")
    told = capsys.readouterr().err
    assert "3 edges inside one source package, 5 edges to 1 hubs, 1 edges that" in told


def test_siblings_do_not_give_each_other_away(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lists = Lists()
    needs = {"gui": "core, widgets", "gui-extra": "core, other", "tool": "core"}
    for name, needed in needs.items():
        source = "app" if "gui" in name else name
        lists.add(name, f"application {name}", Depends=needed, Suggests="widgets", Source=source)
    for name in ("core", "widgets"):
        lists.add(name, f"kit {name}", Source="kit")
    lists.add("other", "something else")
    network = built_of(tmp_path, lists, text="short", mask_names=False)
    assert edges_of(network, "depends") == [("gui", "core"), ("gui-extra", "other"), ("tool", "core")]
    assert edges_of(network, "suggests") == [("gui-extra", "widgets")]  # the others have core of the same kit
    assert "4 edges that repeat a sibling's." in capsys.readouterr().err


def test_packages_that_repeat_others(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lists = some()
    for name in ("viewer-doc", "viewer-dbg", "renderer-prof"):
        lists.add(name, f"what {name} is", Source=name.partition("-")[0])
    lists.add("manual-doc", "a source of its own")
    lists.add("show", "transitional dummy package", Depends="viewer")
    lists.add("gcc-12-arm", "compiler\nVersion 12.", Depends="renderer")
    lists.add("gcc-9", "compiler\nVersion 9.", Depends="typeface")
    lists.add("needy", "wants a compiler\nNow.", Depends="gcc-12-arm, show, viewer-doc")
    network = built_of(tmp_path, lists, mask_names=False)
    assert network.ids("package") == ["gcc-9", "manual-doc", "needy", "renderer", "typeface", "viewer"]
    assert edges_of(network, "depends") == [
        ("gcc-9", "renderer"),
        ("gcc-9", "typeface"),
        ("needy", "gcc-9"),
        ("viewer", "renderer"),
    ]
    told = capsys.readouterr().err
    assert "Excluded from 11 packages and their relations: 1 transitional packages, 3 -doc" in told
    assert "1 packages of the same description as another" in told


def test_names_are_masked_and_packages_that_differ_by_name_alone_are_one(tmp_path: Path) -> None:
    lists = some()
    for name in ("alpha", "beta"):
        lists.add(f"kit-{name}", f"driver for {name}\nUses viewer.", Source="kit", Depends="typeface")
    lists.add("gamma", "driver for gamma\nUses viewer.", Depends="kit-beta")
    network = built_of(tmp_path, lists)
    texts = dict(zip(network.ids("package"), network.texts("package"), strict=True))
    assert texts["kit-beta"] == texts["gamma"] == "driver for …. Uses viewer."
    assert "kit-alpha" not in texts
    assert ("gamma", "kit-beta") in edges_of(network, "depends")
    assert ("kit-beta", "typeface") in edges_of(network, "depends")


def test_people(tmp_path: Path) -> None:
    folder = tmp_path / "lists"
    lists = some(Original_Maintainer="Ann <ann@example.org>", Maintainer="Ubuntu <all@ubuntu.example>")
    lists.add("orphan", "nobody's", Maintainer="Debian QA Group <packages@qa.debian.org>", Suggests="viewer")
    lists.add("nameless", "no address", Maintainer="Somebody", Suggests="viewer")
    lists.add("unsaid", "no maintainer", Maintainer="", Suggests="viewer")
    lists.write(folder)
    uploaders = "Bo, MD <bo@example.org>, Ann <ann@example.org>,\n Eve <eve@example.org>"
    sources = f"Package: viewer\nUploaders: {uploaders}\n"
    write_list(folder, "main_source_Sources", f"{sources}\nPackage: none\n\nUploaders: X <x@y>\n", ".gz")
    network = built(folder, text="short")
    assert edges_of(network, "maintained_by") == [
        ("nameless", "Somebody"),
        ("renderer", "team@example.org"),
        ("typeface", "team@example.org"),
        ("viewer", "ann@example.org"),
    ]
    assert sorted(edges_of(network, "uploaded_by")) == [
        ("viewer", "ann@example.org"),
        ("viewer", "bo@example.org"),
        ("viewer", "eve@example.org"),
    ]
    assert network.names("maintainer", network.rows("maintainer", ["bo@example.org"])) == ["Bo, MD"]
    assert network.schema.neighbors["maintainer"] == 3


def test_some_sections_only(tmp_path: Path) -> None:
    network = built_of(tmp_path, some(Suggests="typeface"), sections=("text", "libs"))
    assert network.ids("package") == ["renderer", "viewer"]
    assert [r.name for r in network.schema.relations] == ["depends", "maintained_by"]


def test_a_section_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        built_of(tmp_path, some(), sections=("game",))
    expected = "sections has 'game', expected some of fonts, libs, text."
    assert str(caught.value) == expected


def test_a_repository_that_has_whole_descriptions_needs_no_translations(tmp_path: Path) -> None:
    first = "Package: a\nDescription: one\n More of it.\nDepends: b\n"
    write_list(tmp_path / "lists", "Packages", f"{first}\nPackage: b\nDescription: two\n Even more.\n")
    network = built(tmp_path / "lists")
    assert network.texts("package") == ["one. More of it.", "two. Even more."]
    assert network.schema.textless == ()


def test_where_there_are_no_lists(tmp_path: Path) -> None:
    fetch = "fetch them with: apt-get update -o Acquire::Languages=en"
    with pytest.raises(InputError) as caught:
        built(tmp_path / "lists")
    assert str(caught.value) == f"{tmp_path / 'lists'}: no package lists ('*_Packages'); {fetch}."


def test_where_translations_are_missing(tmp_path: Path) -> None:
    some().write(tmp_path / "lists")
    for path in (tmp_path / "lists").glob("*Translation*"):
        path.unlink()
    with pytest.raises(InputError) as caught:
        built(tmp_path / "lists")
    fetch = "fetch them with: apt-get update -o Acquire::Languages=en (or set text to short)"
    found = "3 of 3 packages have no long description, since translation lists are missing"
    assert str(caught.value) == f"{tmp_path / 'lists'}: {found}; {fetch}."
    assert not (tmp_path / "net").exists()
    assert len(built(tmp_path / "lists", text="short").ids("package")) == 3


def test_a_list_without_packages(tmp_path: Path) -> None:
    path = write_list(tmp_path / "lists", "Packages", "Package: a\n")
    with pytest.raises(InputError) as caught:
        built(tmp_path / "lists")
    assert str(caught.value).startswith(f"{path}: has no packages with descriptions; ")


@pytest.mark.parametrize(("option", "value"), [("max_dependents", 0), ("ordinary", -1), ("max_tokens", 2)])
def test_options_out_of_range(option: str, value: int) -> None:
    with pytest.raises(InputError, match=rf"^{option} is {value}, expected at least"):
        DebianOptions(**{option: value})


def test_several_relations_may_be_predicted(tmp_path: Path) -> None:
    network = built_of(tmp_path, some(), predict=("recommends", "depends"))
    assert [relation.name for relation in network.schema.predicted] == ["recommends", "depends"]


@pytest.mark.parametrize(
    ("names", "value"), [((), "''"), (("depends", "depends"), "'depends depends'"), (("needs",), "'needs'")]
)
def test_relations_that_cannot_be_predicted(names: tuple[str, ...], value: str) -> None:
    expected = "expected one or more of depends, recommends, suggests, each once."
    with pytest.raises(InputError) as caught:
        DebianOptions(predict=names)
    assert str(caught.value) == f"predict is {value}, {expected}"


def test_a_predicted_relation_without_pairs_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="suggests"):
        built_of(tmp_path, some(), predict=("depends", "suggests"))
    assert not (tmp_path / "net").exists()


def test_merged_packages_keep_their_own_source(tmp_path: Path) -> None:
    """A need inside a real source is no edge, whatever node stands for either end."""
    lists = Lists()
    lists.add("parser", "makes parsers\nOf grammars.", Source="parser2", Depends="renderer")
    lists.add("parser3", "makes parsers\nOf grammars.", Source="parser3", Depends="parser3-runtime")
    lists.add("parser3-runtime", "runs parsers\nAnd more.", Source="parser3")
    lists.add("renderer", "draws pages\nA library.")
    network = built_of(tmp_path, lists, mask_names=False)
    assert network.ids("package") == ["parser", "parser3-runtime", "renderer"]
    assert edges_of(network, "depends") == [("parser", "renderer")]


def test_a_merged_node_has_the_people_and_tags_of_all(tmp_path: Path) -> None:
    lists = some()
    lists.add(
        "kit1", "a kit\nOf tools.", Tag="role::program", Maintainer="A <a@example.org>", Depends="renderer"
    )
    lists.add("kit22", "a kit\nOf tools.", Tag="use::editing", Maintainer="B <b@example.org>")
    network = built_of(tmp_path, lists, mask_names=False)
    assert edges_of(network, "tagged") == [("kit1", "role::program"), ("kit1", "use::editing")]
    people = [who for package, who in edges_of(network, "maintained_by") if package == "kit1"]
    assert people == ["a@example.org", "b@example.org"]


def test_a_dummy_of_something_is_no_dummy_package(tmp_path: Path) -> None:
    lists = some()
    lists.add("solver", "bridge double dummy solver\nCards.", Depends="renderer")
    lists.add("gone", "old name of it (dummy)\nNothing.", Depends="renderer")
    lists.add("gone2", "old name -- dummy package\nNothing.", Depends="renderer")
    assert built_of(tmp_path, lists).ids("package") == ["renderer", "solver", "typeface", "viewer"]


def test_two_packages_that_need_each_other_have_one_edge(tmp_path: Path) -> None:
    lists = some()
    lists.add("plugin", "adds pages\nMore of them.", Depends="viewer")
    lists.add("viewer-x", "shows it elsewhere\nAlso there.", Source="viewer", Recommends="plugin")
    network = built_of(tmp_path, lists, mask_names=False)
    assert edges_of(network, "depends") == [("plugin", "viewer"), ("viewer", "renderer")]
    assert [r.name for r in network.schema.relations if r.name == "recommends"] == ["recommends"]
    assert edges_of(network, "recommends") == [("viewer", "typeface")]  # not viewer-x and plugin


def test_whatever_is_left_out_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lists = some(Depends="renderer, absent, mta")
    lists.add("exim", "letters one way\nOr another.", Provides="mta", Section="mail")
    lists.add("postfix", "letters\nAll of them.", Provides="mta", Section="mail")
    lists.add("plain", "has one line only", Section="text")
    lists.write(tmp_path / "lists", tail="\nPackage: bare\nVersion: 1\n")
    built(tmp_path / "lists", mask_names=False, sections=("text", "libs", "fonts"))
    said = " ".join(capsys.readouterr().err.split())
    assert "1 packages without a description" in said
    assert "2 packages of other sections" in said
    assert "2 needs that name no package here, or no single one" in said
    assert "1 packages have no long description; their text is the first line." in said


def test_a_name_that_is_taken_is_refused_before_lists_are_read(tmp_path: Path) -> None:
    (tmp_path / "net").mkdir()
    with pytest.raises(InputError, match="exists already"):
        built(tmp_path / "no lists here")
