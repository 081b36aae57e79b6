"""Runs, ranks and growing columns, with their empty and single cases."""

from __future__ import annotations

import numpy as np

from hoicli.records.kit import (
    Growing,
    expanded,
    find,
    rank_by_id,
    ranks_in_groups,
    run_starts,
    runs_of,
    starts_of,
)


def test_runs_begin_where_a_value_differs_from_the_one_before() -> None:
    assert run_starts(np.array([3, 3, 1, 1, 1, 3])).tolist() == [0, 2, 5]
    assert run_starts(np.array([7])).tolist() == [0]
    assert run_starts(np.zeros(0, dtype=np.int64)).tolist() == []


def test_runs_laid_end_to_end() -> None:
    starts = starts_of([2, 0, 3])
    assert starts.tolist() == [0, 2, 2, 5]
    assert runs_of(starts).tolist() == [0, 0, 2, 2, 2]
    run, position = expanded(np.array([4, 9, 1]), np.array([2, 0, 1]))
    assert (run.tolist(), position.tolist()) == ([0, 0, 2], [4, 5, 1])


def test_find_says_what_is_not_there() -> None:
    place, met = find(np.array([2, 5, 9]), np.array([5, 1, 10]))
    assert (place[met].tolist(), met.tolist()) == ([1], [True, False, False])
    assert not find(np.zeros(0, dtype=np.int64), np.array([1]))[1].any()


def test_ranks_in_groups_and_of_equals_the_first_is_better() -> None:
    group, score = np.array([0, 0, 0, 2, 2]), np.array([0.5, 0.9, 0.5, 0.1, 0.1])
    assert ranks_in_groups(group, score).tolist() == [1, 0, 2, 0, 1]
    assert ranks_in_groups(group[:0], score[:0]).tolist() == []


def test_columns_grow_part_by_part() -> None:
    columns = Growing(image=np.int64, hit=np.bool_)
    assert {name: columns[name].dtype for name in columns.names} == {"image": np.int64, "hit": np.bool_}
    for part in ([1, 2], [3]):
        columns.add(image=np.array(part), hit=np.array(part) > 1)
    assert columns["image"].tolist() == [1, 2, 3]
    columns.add(image=np.array([4]), hit=np.array([True]))
    assert columns["hit"].tolist() == [False, True, True, True]


def test_images_rank_by_their_names_whatever_their_order() -> None:
    assert rank_by_id(["b", "10", "a", "9"]).tolist() == [3, 0, 2, 1]
    assert rank_by_id([]).tolist() == []
    assert rank_by_id(["x"]).dtype == np.int64
