"""Reading a raw table: what spreadsheets do to it is accepted or refused, never guessed."""

from __future__ import annotations

import contextlib
import io
from datetime import UTC, datetime
from pathlib import Path

import polars as pl
import pytest
from analysis_support import frame, passes
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpucost_tui.analysis.table import FOR_COMPARE, FOR_DECIDE, read_table
from gpucost_tui.campaign.schema import SCHEMA
from gpucost_tui.errors import InputError, WrongUse

HEADER = "variant,round,status,pass_s"


def write(folder: Path, text: str | bytes, name: str = "table.csv") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def refused(path: Path, *words: str, needed: tuple[str, ...] = ("status",)) -> str:
    with pytest.raises(InputError) as caught:
        read_table(path, needed)
    sentence = str(caught.value)
    for word in words:
        assert word in sentence, sentence
    return sentence


def test_a_sheet_filled_by_hand(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        "\ufeffVariant; round ;STATUS;pass_s;deliverable;excluded;batch_size;my remark;\r\n"
        "batch-1;1;completed;50;007;FALSE;1;first;\r\n"
        "batch-1;2;Completed;5.05e1;007;yes;1.0;;\r\n"
        ";;;;;;;;\r\n"
        "batch-1;3;failed;;007;;;it stopped;\r\n",
    )
    table = read_table(path, FOR_COMPARE)
    assert table.frame.schema == SCHEMA
    assert table.frame["pass_s"].to_list() == [50.0, 50.5, None]
    assert table.frame["status"].to_list() == ["completed", "completed", "failed"]
    assert table.frame["deliverable"].to_list() == ["007"] * 3
    assert table.frame["excluded"].to_list() == [False, True, None]
    assert table.frame["batch_size"].to_list() == [1, 1, None]
    assert table.lines == [2, 3, 5]
    assert table.notes == ["my remark is no column of the raw table: left aside."]


@pytest.mark.parametrize("mark", [",", ";", "\t"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_separators_and_line_ends(tmp_path: Path, mark: str, end: str) -> None:
    text = end.join([HEADER, "a,1,completed,2.5"]).replace(",", mark) + end
    assert read_table(write(tmp_path, text)).frame["pass_s"].to_list() == [2.5]


@pytest.mark.parametrize(
    ("cell", "words"),
    [
        ('"12,5"', ("'12,5'", "line 2, column pass_s", "comma can mean decimals or thousands")),
        ('"1.234,5"', ("decimal point is expected",)),
        ("NaN", ("a number is expected", "'missing'")),
        ("inf", ("a number is expected",)),
        ("1e999", ("too large",)),
        ("-1", ("above zero",)),
        ("0", ("above zero", "empty cell")),
        ("n/a", ("a number is expected",)),
        ("٣", ("a number is expected",)),
        ("12 s", ("a number is expected",)),
        ("0x10", ("a number is expected",)),
        ("1_000", ("a number is expected",)),
    ],
)
def test_a_duration_that_could_be_anything(
    tmp_path: Path, cell: str, words: tuple[str, ...]
) -> None:
    refused(write(tmp_path, f"{HEADER}\na,1,completed,{cell}\n"), *words)


@pytest.mark.parametrize(
    ("column", "cell", "words"),
    [
        ("status", "done", ("one of completed, failed, stopped, interrupted",)),
        ("failure", "oom", ("out-of-memory",)),
        ("excluded", "maybe", ("true or false",)),
        ("excluded", "2", ("true or false",)),
        ("round", "1.5", ("whole number",)),
        ("round", "-1", ("negative",)),
        ("round", "99999999999999999999", ("too large",)),
        ("batch_size", '"1,000"', ("decimal point",)),
        ("peak_rss_bytes", "-5", ("negative",)),
        ("started_at", "28.09.2026", ("2026-09-28T09:00:00Z",)),
        ("started_at", "2026-09-28 09:00", ("offset",)),
        ("started_at", "0001-01-01T00:00:00+14:00", ("out of range",)),
    ],
)
def test_cells_that_are_no_such_value(
    tmp_path: Path, column: str, cell: str, words: tuple[str, ...]
) -> None:
    header = "variant,status" if column == "status" else f"variant,status,{column}"
    row = f"a,{cell}" if column == "status" else f"a,completed,{cell}"
    refused(write(tmp_path, f"{header}\n{row}\n"), "line 2", f"column {column}", *words)


def test_times_with_an_offset_become_utc(tmp_path: Path) -> None:
    text = "status,started_at\nfailed,2026-09-28T09:00:00+02:00\nfailed,2026-09-28T09:00:00Z\n"
    found = read_table(write(tmp_path, text)).frame["started_at"].to_list()
    assert found == [datetime(2026, 9, 28, 7, tzinfo=UTC), datetime(2026, 9, 28, 9, tzinfo=UTC)]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ("empty", "template")),
        ("\n\n", ("empty",)),
        ("variant,round\na,1\n", ("column is missing: status",)),
        ("variant,status,pass_sec\na,completed,1\n", ("nearly 'pass_s'",)),
        ("variant,status,Pass S\na,completed,1\n", ("nearly 'pass_s'",)),
        ("status,status\nfailed,failed\n", ("'status' is there twice",)),
        ("status,\nfailed,5\n", ("column 2 has cells and no name",)),
        (f"{HEADER}\na,1,completed\n", ("line 2", "3 cells where the header has 4")),
        (f"{HEADER}\na,1,completed,1,2\n", ("line 2", "5 cells")),
        (f'{HEADER}\na,1,"completed,1\n', ("line 2", "quotes")),
        (f"{HEADER}\na,1,,5\n", ("line 2", "a result and no status")),
    ],
)
def test_broken_tables(tmp_path: Path, text: str, words: tuple[str, ...]) -> None:
    refused(write(tmp_path, text), *words)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ("status\nfailed\n".encode("utf-16"), ("UTF-16",)),
        (b"status\nfailed\nfail\xe9d\n", ("0xe9", "line 3")),
        (b"status\nfai\x00led\n", ("NUL", "line 2")),
    ],
)
def test_bytes_that_are_no_utf8_text(tmp_path: Path, data: bytes, words: tuple[str, ...]) -> None:
    refused(write(tmp_path, data), *words)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    refused(tmp_path / "absent.csv", "no such file")
    (tmp_path / "folder.csv").mkdir()
    refused(tmp_path / "folder.csv", "can't be read")
    with pytest.raises(WrongUse):
        read_table(write(tmp_path, "status\n", "table.xlsx"))


def test_needed_columns_are_named(tmp_path: Path) -> None:
    path = write(tmp_path, "status\nfailed\n")
    refused(path, "columns are missing: configuration, corpus_accepted", needed=FOR_DECIDE)


def test_one_attempt_on_two_rows(tmp_path: Path) -> None:
    text = "attempt,host,status\n1,a,failed\n1,b,failed\n1,a,failed\n"
    refused(write(tmp_path, text), "line 4", "attempt 1 stands on line 2 already")


def test_an_attempt_that_still_runs_has_no_status_yet(tmp_path: Path) -> None:
    table = read_table(write(tmp_path, "attempt,status,variant\n1,completed,a\n2,,a\n"))
    assert table.frame["status"].to_list() == ["completed", None]


def test_hostile_names_are_shown_not_obeyed(tmp_path: Path) -> None:
    sentence = refused(
        write(tmp_path, "status,\x1b[31mround\nfailed,1\n\x1b]0;x\x07,2\n"), "line 3"
    )
    assert "\x1b" not in sentence and "\x07" not in sentence


def test_text_cells_stay_as_written(tmp_path: Path) -> None:
    table = read_table(write(tmp_path, 'status,variant,notes\nfailed, 007 ,"a, ""b""\nc"\n'))
    assert table.frame["variant"].to_list() == [" 007 "]
    assert table.frame["notes"].to_list() == ['a, "b"\nc']


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_our_own_files_come_back_as_they_were(tmp_path: Path, suffix: str) -> None:
    moment = datetime(2026, 9, 28, 9, 0, 0, 123456, tzinfo=UTC)
    rows = passes([1.5, 1e-7, 12345.678], variant="batch-1", seed=7, started_at=moment)
    table = frame([{**row, "attempt": at} for at, row in enumerate(rows, 1)])
    path = tmp_path / f"raw.{suffix}"
    if suffix == "csv":
        table.write_csv(path, datetime_format="%Y-%m-%dT%H:%M:%S%.6fZ")
    else:
        table.write_parquet(path)
    assert read_table(path).frame.equals(table)


def test_parquet_of_other_types(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pl.DataFrame(
        {
            "status": pl.Series(["completed"], dtype=pl.Categorical),
            "pass_s": pl.Series([2], dtype=pl.Int32),
            "round": pl.Series([1.0], dtype=pl.Float64),
            "seed": pl.Series(["3"], dtype=pl.String),
            "excluded": pl.Series([None], dtype=pl.Null),
            "quality": pl.Series([0.5], dtype=pl.Float32),
        }
    ).write_parquet(path)
    found = read_table(path).frame
    assert found.schema == SCHEMA
    assert found.select("pass_s", "round", "seed", "quality").row(0) == (2.0, 1, 3, 0.5)


@pytest.mark.parametrize(
    ("column", "values", "words"),
    [
        ("pass_s", [1.0, float("nan")], ("row 2, column pass_s", "finite")),
        ("pass_s", [1.0, -1.0], ("row 2", "above zero")),
        ("round", [1.0, 1.5], ("row 2", "whole number")),
        ("pass_s", [[1.0], [2.0]], ("the column holds",)),
        ("started_at", [datetime(2026, 1, 1)] * 2, ("the column holds",)),
    ],
)
def test_parquet_with_impossible_values(
    tmp_path: Path, column: str, values: list, words: tuple[str, ...]
) -> None:
    path = tmp_path / "t.parquet"
    pl.DataFrame({"status": ["failed", "failed"], column: values}).write_parquet(path)
    refused(path, *words)


def test_parquet_that_is_none(tmp_path: Path) -> None:
    refused(write(tmp_path, b"PAR1 not really", "t.parquet"), "no readable Parquet file")


def test_a_large_table_is_read_whole(tmp_path: Path) -> None:
    rows = 20_000
    lines = [f"a,{at % 50 + 1},completed,{1 + at / 1000}" for at in range(rows)]
    table = read_table(write(tmp_path, "\n".join([HEADER, *lines])))
    assert table.frame.height == rows
    assert table.frame["pass_s"].sum() == pytest.approx(sum(1 + at / 1000 for at in range(rows)))


@given(data=st.binary(max_size=300))
@settings(
    max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_any_bytes_end_in_rows_or_a_sentence(tmp_path: Path, suffix: str, data: bytes) -> None:
    with contextlib.suppress(InputError):
        read_table(write(tmp_path, data, f"any.{suffix}"))


@given(
    cells=st.lists(st.lists(st.text(max_size=8), min_size=3, max_size=3), min_size=1, max_size=5)
)
@settings(
    max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_any_cells_end_in_rows_or_a_sentence(tmp_path: Path, cells: list[list[str]]) -> None:
    import csv

    sheet = io.StringIO(newline="")
    csv.writer(sheet).writerows([["status", "pass_s", "started_at"], *cells])
    path = write(tmp_path, sheet.getvalue().encode("utf-8", "surrogatepass"))
    with contextlib.suppress(InputError):
        assert read_table(path).frame.schema == SCHEMA
