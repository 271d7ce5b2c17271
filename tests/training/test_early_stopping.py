from __future__ import annotations

from heterformer.training.early_stopping import EarlyStopping


def stopped_after(figures: list[float], patience: int = 3) -> int | None:
    """The number of evaluations after which training stops, if it does."""
    early = EarlyStopping(patience)
    for count, figure in enumerate(figures, start=1):
        early.update(figure, step=count)
        if early.should_stop:
            return count
    return None


def test_stops_after_so_many_evaluations_without_a_new_best() -> None:
    assert stopped_after([0.1, 0.2, 0.2, 0.1, 0.19, 0.9]) == 5
    assert stopped_after([0.3, 0.1], patience=1) == 2


def test_a_new_best_gives_the_patience_back() -> None:
    assert stopped_after([0.1, 0.0, 0.0, 0.2, 0.1, 0.1, 0.3, 0.2, 0.2]) is None


def test_an_equal_figure_is_no_new_best() -> None:
    early = EarlyStopping(patience=2)
    assert early.update(0.5, step=10)
    assert not early.update(0.5, step=20)
    assert (early.best, early.best_step) == (0.5, 10)


def test_the_first_figure_is_the_best_whatever_it_is() -> None:
    early = EarlyStopping(patience=1)
    assert early.update(-3.0, step=0)
    assert not early.should_stop


def test_a_figure_that_is_not_a_number_uses_patience_up() -> None:
    assert stopped_after([0.1, float("nan"), float("nan"), float("nan")]) == 4


def test_an_evaluation_that_does_not_count_uses_no_patience_up() -> None:
    early = EarlyStopping(patience=1)
    early.update(0.5, step=1)
    assert not early.update(0.4, step=2, counts=False)
    assert not early.should_stop
    assert early.update(0.6, step=3, counts=False)
    assert (early.best, early.best_step) == (0.6, 3)
