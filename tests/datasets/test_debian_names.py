"""Masked names."""

from __future__ import annotations

from heterformer.datasets.debian_names import NameMask, PackageText, name_words

MATE = PackageText(
    "mate-panel", "mate-panel", "The MATE panel, as Mate-Panel or matepanel. Needs libgtk-3-0."
)
GTK = PackageText("libgtk-3-0", "gtk+3.0", "GTK+ draws a panel; libgtk. Not mate.")


def masked(package: PackageText, *others: PackageText, ordinary: int = 1) -> str:
    return NameMask([package, *others], ordinary).masked(package)


def test_the_words_of_a_name() -> None:
    assert name_words("libgtk-3-0") >= {"libgtk", "gtk", "libgtk30", "gtk30"}
    assert name_words("python3-requests") >= {"python", "python3", "requests"}
    assert "" not in name_words("lib+3")


def test_words_of_the_own_name_are_masked_whatever_their_case() -> None:
    assert masked(MATE, GTK) == "The …, as … or …. Needs …."


def test_a_word_that_many_others_use_stays() -> None:
    others = [PackageText(f"x{i}", f"x{i}", "a panel") for i in range(2)]
    assert masked(MATE, GTK, *others) == "The … panel, as … or …. Needs …."
    assert masked(MATE, GTK, *others, ordinary=3) == "The …, as … or …. Needs …."


def test_others_are_counted_by_source() -> None:
    others = [PackageText(f"x{i}", "x", "a panel") for i in range(5)]
    assert masked(MATE, *others) == "The …, as … or …. Needs libgtk-3-0."


def test_the_word_of_an_ecosystem_stays() -> None:
    def crates(count: int) -> list[PackageText]:
        return [PackageText(f"librust-c{i}-dev", f"rust-c{i}", "Rust crate") for i in range(count)]

    assert masked(*crates(5)) == "… crate"
    assert masked(*crates(6)) == "Rust crate"


def test_names_of_other_packages_are_masked_if_they_are_no_ordinary_words() -> None:
    assert masked(GTK, MATE) == "…+ draws a panel; …. Not mate."
    text = "See mate-panel, python3 and gimp: mate-panels stay."
    other = [PackageText(name, name, "") for name in ("python3", "gimp")]
    assert masked(PackageText("a", "b", text), MATE, *other) == "See …, … and gimp: mate-panels stay."


def test_short_words_stay() -> None:
    assert masked(PackageText("at", "at", "at is AT"), ordinary=0) == "at is AT"
