"""A finished campaign is forged in many ways; each is found, and named."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dossier_support as support
import polars as pl
import pytest
from dossier_support import event, lines, replace, rewrite, write_lines

from gpucost_tui.campaign.committing import Pack, commit
from gpucost_tui.campaign.fold import fold
from gpucost_tui.campaign.folder import Campaign
from gpucost_tui.campaign.journal import Journal
from gpucost_tui.campaign.table import write_tables
from gpucost_tui.dossier.verify import REWRITE, Verification, verify
from gpucost_tui.files import canonical_json, sha256_bytes, sha256_file
from gpucost_tui.pricing import catalogue
from gpucost_tui.report.note import write_report

FIRST = "attempts/0001-batch-1-r1"
SECOND = "attempts/0003-batch-8-r1"


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished campaign with a commitment and an exclusion; never written to."""
    causes = [
        {"name": "late-load", "description": "Slow disk.", "condition": "load_s > 1000"},
        {"name": "other-process", "description": "Another process used the device."},
    ]
    campaign = support.finished(tmp_path_factory.mktemp("sound") / "camp", exclusion_causes=causes)
    commit(campaign, Pack("rtx-4090", 7, 2), catalogue.load())
    write_report([campaign.folder])
    return campaign.folder


@pytest.fixture
def folder(sound: Path, tmp_path: Path) -> Path:
    """A copy to forge."""
    return Path(shutil.copytree(sound, tmp_path / "camp"))


def test_a_sound_campaign_has_no_difference(sound: Path) -> None:
    answer = verify([sound])
    assert answer.findings.differences == []
    assert answer.ok
    assert answer.findings.not_checkable == [REWRITE]
    head = lines(sound)[-1]
    assert answer.to_json()["head"] == sha256_bytes(canonical_json(head))
    assert answer.to_json()["manifest"] == sha256_file(sound / "manifest.json")
    assert answer.to_json()["checked"]["verdicts"] == 6
    assert verify([sound], heads=[answer.to_json()["head"]]).findings.not_checkable == []


def test_nothing_is_written(sound: Path) -> None:
    before = {p: p.stat().st_mtime_ns for p in sound.rglob("*")}
    verify([sound])
    assert {p: p.stat().st_mtime_ns for p in sound.rglob("*")} == before


# -- the ways ----------------------------------------------------------------------------------


def row_removed(folder: Path) -> None:
    path = folder / "raw_results.csv"
    kept = [line for line in path.read_text().splitlines(True) if not line.startswith("3,")]
    path.write_text("".join(kept))


def duration_halved_in_the_table(folder: Path) -> None:
    frame = pl.read_csv(folder / "raw_results.csv", infer_schema=False)
    value = frame["pass_s"][3]
    replace(folder / "raw_results.csv", value, repr(float(value) / 2))


def duration_halved_in_the_journal(folder: Path) -> None:
    records = lines(folder)
    event(records, "attempt_finished", 4)["data"]["row"]["pass_s"] /= 2
    write_lines(folder, records)


def threshold_lowered_in_the_protocol(folder: Path) -> None:
    replace(folder / "protocol.toml", "threshold = 0.5", "threshold = 0.1")


def threshold_lowered_in_the_manifest(folder: Path) -> None:
    replace(folder / "manifest.json", '"threshold":0.5', '"threshold":0.1')


def failed_pass_turned_completed(folder: Path) -> None:
    records = lines(folder)
    event(records, "attempt_finished", 2)["data"].update(status="completed", failure=None)
    write_lines(folder, records)


def failed_pass_turned_completed_in_the_table(folder: Path) -> None:
    replace(folder / "raw_results.csv", ",failed,out-of-memory,", ",completed,,")


def failed_pass_turned_completed_in_a_new_chain(folder: Path) -> None:
    records = lines(folder)
    event(records, "attempt_finished", 2)["data"].update(status="completed", failure=None)
    rewrite(folder, records)


def a_traceback_rewritten(folder: Path) -> None:
    replace(folder / "attempts/0002-batch-4-r1/failure.txt", "Traceback", "It was the weather")


def a_traceback_removed(folder: Path) -> None:
    (folder / "attempts/0002-batch-4-r1/failure.txt").unlink()


def prediction_files_exchanged(folder: Path) -> None:
    one, other = folder / FIRST, folder / SECOND
    (one / "predictions.parquet").rename(folder / "aside")
    (other / "predictions.parquet").rename(one / "predictions.parquet")
    (folder / "aside").rename(other / "predictions.parquet")
    # Equal predictions are the same file: make the two differ.
    _edit(one / "predictions.parquet", pl.col("score") * 0.999)


def _edit(path: Path, *changes: pl.Expr) -> None:
    frame = pl.read_parquet(path)
    frame.with_columns(*changes).cast(frame.schema).write_parquet(path)


def an_id_renamed_in_the_predictions(folder: Path) -> None:
    path = folder / FIRST / "predictions.parquet"
    _edit(path, pl.col("id").replace({"t003": "t003x"}))


def an_id_renamed_in_the_corpus(folder: Path) -> None:
    replace(folder / "corpus/corpus.jsonl", '"t003"', '"t003x"')


def a_prediction_bettered_with_its_hash(folder: Path) -> None:
    path = folder / FIRST / "predictions.parquet"
    _edit(path, pl.lit("billing").alias("prediction"))
    records = lines(folder)
    data = event(records, "attempt_finished", 1)["data"]
    data["row"]["predictions_sha256"] = sha256_file(path)
    write_lines(folder, records)


def a_prediction_bettered_in_a_new_chain(folder: Path) -> None:
    a_prediction_bettered_with_its_hash(folder)
    rewrite(folder, lines(folder))


def only_the_best_kept(folder: Path) -> None:
    records = [r for r in lines(folder) if r["data"].get("attempt") != 4]
    write_lines(folder, records)


def only_the_best_kept_in_a_new_chain(folder: Path) -> None:
    rewrite(folder, [r for r in lines(folder) if r["data"].get("attempt") != 4])


def lines_reordered(folder: Path) -> None:
    records = lines(folder)
    records[5], records[6] = records[6], records[5]
    write_lines(folder, records)


def tail_cut(folder: Path) -> None:
    write_lines(folder, lines(folder)[:-4])


def tail_cut_with_its_head(folder: Path) -> None:
    rewrite(folder, lines(folder)[:13], tables=False)


def head_replaced(folder: Path) -> None:
    (folder / "journal.head").write_bytes(canonical_json({"seq": 22, "hash": "0" * 64}))


def head_removed(folder: Path) -> None:
    (folder / "journal.head").unlink()


def lines_added_by_hand(folder: Path) -> None:
    records = lines(folder)
    for _ in range(2):
        last = records[-1]
        new = {**last, "seq": last["seq"] + 1, "prev": sha256_bytes(canonical_json(last))}
        records.append({**new, "event": "run_ended", "data": {"why": "nothing"}})
    write_lines(folder, records)


def frozen_price_changed(folder: Path) -> None:
    (path,) = (folder / "prices").glob("*.json")
    replace(path, '"110.00"', '"90.00"')


def frozen_price_changed_with_its_name(folder: Path) -> None:
    (path,) = (folder / "prices").glob("*.json")
    replace(path, '"110.00"', '"90.00"')
    path.rename(path.with_name(f"{sha256_file(path)}.json"))


def commitment_lowered_in_a_new_chain(folder: Path) -> None:
    records = lines(folder)
    event(records, "committed")["data"]["usd"] = "100.00"
    rewrite(folder, records)


def another_gpu_committed_in_a_new_chain(folder: Path) -> None:
    records = lines(folder)
    event(records, "committed")["data"]["host_gpu"] = "NVIDIA H200"
    rewrite(folder, records)


def host_record_edited(folder: Path) -> None:
    (path,) = (folder / "hosts").glob("*.json")
    record = json.loads(path.read_bytes())
    record["software"]["torch"] = "9.9"
    path.write_text(json.dumps(record))


def host_record_swapped(folder: Path) -> None:
    (path,) = (folder / "hosts").glob("*.json")
    record = json.loads(path.read_bytes())
    record["cpu"]["model"] = "Another CPU"
    path.write_text(json.dumps(record))
    records = lines(folder)
    seen = event(records, "host_seen")["data"]
    seen["record_sha256"] = sha256_bytes(canonical_json(record))
    rewrite(folder, records)


def answer_of_the_reference_changed(folder: Path) -> None:
    path = folder / "reference/corpus.jsonl"
    first, *rest = path.read_text().splitlines(True)
    answer = json.loads(first)["answer"]
    other = "billing" if answer != "billing" else "delivery"
    path.write_text("".join([first.replace(answer, other), *rest]))


def label_of_the_corpus_changed(folder: Path) -> None:
    path = folder / "corpus/corpus.jsonl"
    first, *rest = path.read_text().splitlines(True)
    label = json.loads(first)["label"]
    path.write_text("".join([first.replace(label, "other"), *rest]))


def text_of_the_corpus_changed(folder: Path) -> None:
    replace(folder / "corpus/corpus.jsonl", "My order 5 ", "My order five ")


def corpus_removed(folder: Path) -> None:
    (folder / "corpus/corpus.jsonl").unlink()


def strata_changed(folder: Path) -> None:
    path = folder / "corpus/corpus.strata.parquet"
    _edit(path, pl.lit("short").alias("stratum"))


def tuning_data_changed(folder: Path) -> None:
    replace(folder / "tuning/tuning.jsonl", "parcel", "package")


def verdict_edited(folder: Path) -> None:
    replace(
        folder / "attempts/0002-batch-4-r1/verdict.json", '"accepted": false', '"accepted": true'
    )


def verdict_removed(folder: Path) -> None:
    (folder / FIRST / "verdict.json").unlink()


def verdict_turned_accepted_in_a_new_chain(folder: Path) -> None:
    records = lines(folder)
    data = event(records, "attempt_judged", 2)["data"]
    data["reasons"] = []
    data["row"]["corpus_accepted"] = True
    rewrite(folder, records)


def interval_narrowed_in_a_new_chain(folder: Path) -> None:
    records = lines(folder)
    event(records, "attempt_judged", 1)["data"]["interval"]["low"] = 0.99
    rewrite(folder, records)


def interval_narrowed_in_the_verdict(folder: Path) -> None:
    path = folder / FIRST / "verdict.json"
    told = json.loads(path.read_bytes())
    told["details"]["interval"]["low"] = 0.99
    path.write_text(json.dumps(told))


def device_memory_edited(folder: Path) -> None:
    replace(folder / "device_memory.csv", str(4 << 30), str(2 << 30))


def parquet_edited(folder: Path) -> None:
    _edit(folder / "raw_results.parquet", pl.col("pass_s") / 2)


def parquet_replaced(folder: Path) -> None:
    (folder / "raw_results.parquet").write_bytes(b"PAR1 no table")


def table_of_an_earlier_fold(folder: Path) -> None:
    write_tables(folder, fold(Campaign(folder).events()[:15]))


def extra_attempt_folder(folder: Path) -> None:
    shutil.copytree(folder / FIRST, folder / "attempts/0007-batch-1-r3")


def predictions_removed(folder: Path) -> None:
    (folder / FIRST / "predictions.parquet").unlink()


def manifest_removed(folder: Path) -> None:
    (folder / "manifest.json").unlink()


def journal_removed(folder: Path) -> None:
    (folder / "journal.jsonl").unlink()
    (folder / "journal.head").unlink()


def excluded_without_its_condition(folder: Path) -> None:
    data = {"attempt": 4, "cause": "late-load", "from": None, "to": None}
    Journal(folder).append("excluded", data)
    rewrite(folder, lines(folder))


def excluded_for_a_cause_of_ones_own(folder: Path) -> None:
    data = {"attempt": 4, "cause": "too-slow", "from": None, "to": None}
    Journal(folder).append("excluded", data)
    rewrite(folder, lines(folder))


def slots_filled_in_another_order(folder: Path) -> None:
    records = lines(folder)
    for number, slot in ((5, 6), (6, 5)):
        event(records, "attempt_started", number)["data"]["slot"] = slot
    rewrite(folder, records)


def variant_renamed_in_a_new_chain(folder: Path) -> None:
    records = lines(folder)
    event(records, "attempt_started", 4)["data"]["row"]["variant"] = "batch-8"
    rewrite(folder, records)


def batch_renamed_at_its_start(folder: Path) -> None:
    records = lines(folder)
    event(records, "attempt_started", 4)["data"]["row"]["batch_size"] = 8
    rewrite(folder, records)


def commitment_without_a_host(folder: Path) -> None:
    records = lines(folder)
    event(records, "committed")["data"]["hosts"] = []
    rewrite(folder, records)


def more_rounds_than_sealed(folder: Path) -> None:
    Journal(folder).append("rounds_added", {"rounds": 9})


def a_line_of_nonsense(folder: Path) -> None:
    with (folder / "journal.jsonl").open("ab") as stream:
        stream.write(b'{"seq": 23}\n')


def sealed_twice(folder: Path) -> None:
    sealed = event(lines(folder), "sealed")["data"]
    Journal(folder).append("sealed", sealed)


def note_edited(folder: Path) -> None:
    replace(folder / "report/decision.md", "undecided", "decided")


def failure_taken_out_of_the_note(folder: Path) -> None:
    path = folder / "report/decision.md"
    kept = [line for line in path.read_text().splitlines(True) if "out-of-memory" not in line]
    path.write_text("".join(kept))


def page_edited(folder: Path) -> None:
    replace(folder / "report/report.html", "220.00 USD", "120.00 USD")


def script_put_into_the_page(folder: Path) -> None:
    replace(folder / "report/report.html", "</main>", "<script>alert(1)</script></main>")


def note_of_another_campaign(folder: Path) -> None:
    head = sha256_bytes(canonical_json(lines(folder)[-1]))
    replace(folder / "report/decision.md", head, "f" * 64)


def note_without_its_hashes(folder: Path) -> None:
    (folder / "report/decision.md").write_text("# Decided\n\nBatch 8 is the cheapest.\n")


def note_that_is_stale(folder: Path) -> None:
    Journal(folder).append("exported", {"seconds": 12.5})
    write_tables(folder, fold(Campaign(folder).events()), final=True)


def corrected_prices_changed(folder: Path) -> None:
    """An earlier commitment that was corrected keeps its frozen price too."""
    records = lines(folder)
    data = dict(event(records, "committed")["data"])
    data.update(lots=1, gpus=1, usd="70.00")
    last = records[-1]
    records.append({**last, "event": "committed", "data": data})
    rewrite(folder, records)


#: way -> (part of the place, part of what was expected, part of what was found)
WAYS: list[tuple[Callable[[Path], None], str, str, str]] = [
    (row_removed, "raw_results.csv, attempt 3", "a row", "no row"),
    (duration_halved_in_the_table, "raw_results.csv, attempt 4, pass_s", "", ""),
    (duration_halved_in_the_journal, "attempt_finished of attempt 4", "", ""),
    (threshold_lowered_in_the_protocol, "protocol.toml, quality, threshold", "0.5", "0.1"),
    (threshold_lowered_in_the_manifest, "manifest.json", "", ""),
    (failed_pass_turned_completed, "attempt_finished of attempt 2", "", ""),
    (failed_pass_turned_completed, "raw_results.csv, attempt 2, status", "completed", "failed"),
    (
        failed_pass_turned_completed_in_the_table,
        "raw_results.csv, attempt 2, status",
        "failed",
        "completed",
    ),
    (failed_pass_turned_completed_in_a_new_chain, "verdict of attempt 2", "identifiers", "failed"),
    (a_traceback_rewritten, "attempts/0002-batch-4-r1/failure.txt", "SHA-256", ""),
    (a_traceback_removed, "attempts/0002-batch-4-r1/failure.txt", "SHA-256", "No such file"),
    (prediction_files_exchanged, f"{FIRST}/predictions.parquet", "SHA-256", ""),
    (an_id_renamed_in_the_predictions, f"{FIRST}/predictions.parquet", "SHA-256", ""),
    (an_id_renamed_in_the_predictions, "verdict of attempt 1, row, ids_match", "false", "true"),
    (an_id_renamed_in_the_corpus, "corpus/corpus.jsonl", "24 entries", ""),
    (a_prediction_bettered_with_its_hash, "attempt_finished of attempt 1", "", ""),
    (a_prediction_bettered_in_a_new_chain, "verdict of attempt 1, row, quality", "", ""),
    (only_the_best_kept, "journal.jsonl, after line", "line", "line"),
    (
        only_the_best_kept_in_a_new_chain,
        "attempts/0004-batch-4-r2",
        "an attempt of the journal",
        "no such attempt",
    ),
    (lines_reordered, "journal.jsonl, after line", "line 6", "line 7"),
    (tail_cut, "journal.jsonl", "journal.head", "the tail is cut"),
    (tail_cut_with_its_head, "attempts/", "an attempt of the journal", "no such attempt"),
    (tail_cut_with_its_head, "raw_results.csv, attempt 6", "no such row", "a row"),
    (head_replaced, "journal.jsonl, line 22", "0000", ""),
    (head_removed, "journal.head", "line 23", "missing"),
    (lines_added_by_hand, "journal.head", "line 25", "by hand"),
    (frozen_price_changed, "prices/", "frozen", "no longer"),
    (frozen_price_changed_with_its_name, "prices/", "frozen", ""),
    (commitment_lowered_in_a_new_chain, "usd", "220.00", "100.00"),
    (another_gpu_committed_in_a_new_chain, "host_gpu", "RTX 4090", "H200"),
    (host_record_edited, "hosts/", "", ""),
    (host_record_swapped, "hosts/", "the record of host", "the record of host"),
    (answer_of_the_reference_changed, "reference/corpus.jsonl", "answers with SHA-256", ""),
    (answer_of_the_reference_changed, "verdict of attempt 1, row, quality", "", ""),
    (label_of_the_corpus_changed, "corpus/corpus.jsonl, column, label", "", ""),
    (text_of_the_corpus_changed, "corpus/corpus.jsonl", "24 entries with SHA-256", "24 entries"),
    (corpus_removed, "corpus/corpus.jsonl", "24 entries", "no file"),
    (strata_changed, "corpus/corpus.strata.parquet", "", ""),
    (tuning_data_changed, "tuning/tuning.jsonl", "", ""),
    (verdict_edited, "0002-batch-4-r1/verdict.json, accepted", "false", "true"),
    (verdict_removed, f"{FIRST}/verdict.json", "the verdict of the journal", "no file"),
    (
        verdict_turned_accepted_in_a_new_chain,
        "verdict of attempt 2, row, corpus_accepted",
        "false",
        "true",
    ),
    (interval_narrowed_in_a_new_chain, "verdict of attempt 1, interval, low", "", "0.99"),
    (interval_narrowed_in_the_verdict, "details, interval, low", "", "0.99"),
    (
        device_memory_edited,
        "device_memory.csv, attempt 1, peak_device_used_bytes",
        str(4 << 30),
        str(2 << 30),
    ),
    (parquet_edited, "raw_results.parquet, attempt 4, pass_s", "", ""),
    (parquet_replaced, "raw_results.parquet", "the table's Parquet file", "another file"),
    (table_of_an_earlier_fold, "raw_results.csv", "the fold of line 23", "line 15"),
    (extra_attempt_folder, "attempts/0007-batch-1-r3", "an attempt of the journal", "no such"),
    (predictions_removed, f"{FIRST}/predictions.parquet", "SHA-256", "No such file"),
    (manifest_removed, "manifest.json", "the manifest", "no file"),
    (journal_removed, "journal.jsonl", "raw_results.csv", "no file"),
    (excluded_without_its_condition, "attempt 4, exclusion", "late-load", "does not meet"),
    (excluded_for_a_cause_of_ones_own, "attempt 4, exclusion", "too-slow", "no such cause"),
    (slots_filled_in_another_order, "(attempt_started)", "slot 5, the first open one", "slot 6"),
    (variant_renamed_in_a_new_chain, "attempt 4, variant", "batch-4", "batch-8"),
    (batch_renamed_at_its_start, "attempt 4, batch_size", "4", "8"),
    (commitment_without_a_host, "hosts", "the hosts that are rented", "none"),
    (more_rounds_than_sealed, "(rounds_added)", "at most 4 rounds", "11"),
    (a_line_of_nonsense, "journal.jsonl, line 24", "an event", "something else"),
    (note_edited, "report/decision.md, line", "undecided", "decided"),
    (failure_taken_out_of_the_note, "report/decision.md, line", "scripted out-of-memory", ""),
    (page_edited, "report/report.html, line", "220.00 USD", "120.00 USD"),
    (script_put_into_the_page, "report/report.html, line", "</main>", "<script>"),
    (note_of_another_campaign, "report/decision.md, journal head", "ffff", "no such line"),
    (note_without_its_hashes, "report/decision.md", "a note that names", "neither"),
    (note_that_is_stale, "report/decision.md, line", "", "stale: written at line 23"),
    (corrected_prices_changed, "usd", "110.00", "70.00"),
    (sealed_twice, "(sealed)", "one seal", "a second one"),
]


@pytest.mark.parametrize(
    ("way", "where", "expected", "found"),
    WAYS,
    ids=[f"{way.__name__}-{n}" for n, (way, *_) in enumerate(WAYS)],
)
def test_a_forgery_is_found_and_named(
    folder: Path, way: Callable[[Path], None], where: str, expected: str, found: str
) -> None:
    way(folder)
    answer = verify([folder])
    assert not answer.ok
    assert any(
        where in one.where and expected in one.expected and found in one.found
        for one in answer.findings.differences
    ), shown(answer)


def shown(answer: Verification) -> str:
    return "\n".join(
        f"{one.where}: expected {one.expected[:90]}, found {one.found[:90]}"
        for one in answer.findings.differences
    )


def test_lines_of_a_later_version_are_named(folder: Path) -> None:
    shutil.rmtree(folder / "report")
    Journal(folder).append("teleported", {"to": "elsewhere"})
    answer = verify([folder])
    assert answer.ok
    assert any("teleported" in said for said in answer.findings.not_checkable)


@pytest.mark.parametrize("odd", [None, "wide", {"low": "0"}, [1, 2]])
def test_a_journal_without_intervals_is_read_and_an_odd_one_is_a_difference(
    folder: Path, odd: Any
) -> None:
    shutil.rmtree(folder / "report")
    records = lines(folder)
    for record in records:
        if record["event"] == "attempt_judged":
            record["data"]["interval"] = odd
            if odd is None:
                del record["data"]["interval"]
    rewrite(folder, records)
    write_report([folder])
    differing = [one for one in verify([folder]).findings.differences if "interval" in one.where]
    assert bool(differing) == (odd is not None)


def test_the_ways_are_many() -> None:
    assert len({way for way, *_ in WAYS}) >= 30


def test_only_a_head_from_elsewhere_shows_a_consistent_rewrite(sound: Path, folder: Path) -> None:
    kept = verify([sound]).to_json()["head"]
    records = lines(folder)
    for number in (1, 6):
        event(records, "attempt_finished", number)["data"]["row"]["pass_s"] /= 2
    rewrite(folder, records)
    assert not verify([folder]).ok  # the note still names the head that was
    write_report([folder])
    answer = verify([folder])
    assert answer.ok, shown(answer)
    assert REWRITE in answer.findings.not_checkable
    answer = verify([folder], heads=[kept])
    assert not answer.ok
    (one,) = answer.findings.differences
    assert one.where == "journal.head (--head)"
    assert one.expected == kept
    assert verify([folder]).to_json()["head"] in one.found
