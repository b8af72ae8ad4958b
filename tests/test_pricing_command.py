"""The words price, window and catalogue: bad input, precedence, what is never done by itself."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from pricing_support import HOURLY_HEADER, PACK_HEADER, Command

from gpucost_tui.pricing import kept
from gpucost_tui.pricing.showing import cells

SEVEN_DAYS = "mine,rtx-4090,1,7,90.50,2026-10-01,\n"
WEEK = ["--start", "2026-09-28T09:00", "--end", "2026-10-02T09:00", "--timezone", "Europe/Paris"]
LONG = ["--start", "2026-11-02T09:00", "--end", "2026-12-02T09:30", "--timezone", "UTC"]


@pytest.fixture(autouse=True)
def data_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GPUCOST_DATA_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(capsys)


def written(path: Path, text: str | bytes) -> Path:
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@pytest.mark.parametrize(
    "number", ["1e3", "NaN", "５", "٧", "+5", " 5", "5 ", "", "0x5", "1_0", "5.0", "9" * 5000, "-1"]
)
@pytest.mark.parametrize("option", ["--lots", "--days", "--accepted-results"])
def test_numbers_by_hand_are_ascii_digits(option: str, number: str, command: Command) -> None:
    given = {"--gpu": "rtx-4090", "--days": "7", option: number}
    sentence = command.refused("price", *(word for pair in given.items() for word in pair))
    assert option in sentence


def test_counts_have_a_maximum(command: Command) -> None:
    asked = ["price", "--gpu", "rtx-4090", "--days", "7"]
    assert command(*asked, "--accepted-results", "1000000").status == 0
    assert "1,000,000" in command.refused(*asked, "--accepted-results", "1000001")
    assert command(*asked, "--lots", "10000").status == 0
    assert "10,000" in command.refused(*asked, "--lots", "10001")
    assert "periods" in command.refused("window", *WEEK, "--periods", "101")


@pytest.mark.parametrize(
    ("name", "suggested"),
    [
        ("RTX 4090", ["rtx-4090"]),
        ("rtx4090", ["rtx-4090"]),
        ("RTX-4090", ["rtx-4090"]),
        ("NVIDIA GeForce RTX 4090", ["rtx-4090"]),
        ("h100", ["h100-nvl", "h100-pcie", "h100-sxm"]),
        ("a100-80gb", ["a100-pcie-80gb", "a100-sxm-80gb"]),
        ("\x1b[31mb200\u202e", ["b200"]),
        ("A100 80 GB", ["a100-pcie-80gb", "a100-sxm-80gb"]),
        ("H100 SXM5", ["h100-sxm"]),
        ("A100 80GB SXM", ["a100-sxm-80gb"]),
    ],
)
def test_a_gpu_name_leads_to_suggestions(name: str, suggested: list[str], command: Command) -> None:
    for word in (["price", "--days", "7"], ["window", *WEEK], ["catalogue", "list"]):
        sentence = command.refused(*word, "--gpu", name)
        assert all(gpu in sentence for gpu in suggested), sentence
        assert "never taken" in sentence
        assert "\x1b" not in sentence


@pytest.mark.parametrize(
    ("name", "others"),
    [
        ("A100 80 GB", ["40gb"]),
        ("a100-40g", ["80gb"]),
        ("A100 80GiB PCIe", ["40gb", "sxm"]),
        ("H100 PCIe", ["sxm", "nvl"]),
        ("H100 SXM5", ["pcie", "nvl"]),
    ],
)
def test_no_suggestion_contradicts_the_name(name: str, others: list[str], command: Command) -> None:
    sentence = command.refused("price", "--days", "7", "--gpu", name)
    _, suggested = sentence.split("Did you mean ")
    assert not [other for other in others if other in suggested], sentence


def test_a_gpu_without_pack_is_no_unknown_gpu(command: Command) -> None:
    sentence = command.refused("price", "--gpu", "h100-sxm", "--days", "7", status=1)
    assert "no 7-day pack of h100-sxm" in sentence
    assert "hourly offers" in sentence


def test_an_explicit_catalogue_stands_alone(tmp_path: Path, command: Command) -> None:
    mine = written(tmp_path / "mine.csv", PACK_HEADER + SEVEN_DAYS)
    asked = ["price", "--days", "7", "--catalogue", mine, "--json"]
    said = command(*asked, "--gpu", "rtx-4090", "--lots", "3").json
    assert (said["committed_usd"], said["catalogue_date"]) == ("271.50", "2026-10-01")
    assert (said["catalogue"], said["others"]) == ("mine.csv", [])
    # The hourly list is of another form and stays; a B200 has no pack in this catalogue.
    assert "no 7-day pack of b200" in command.refused(*asked, "--gpu", "b200", status=1)


def test_a_kept_catalogue_speaks_before_the_shipped_one(
    tmp_path: Path, command: Command, data_home: Path
) -> None:
    rows = "iteragpu,rtx-4090,1,7,,2026-10-01,withdrawn\n" + SEVEN_DAYS
    mine = written(tmp_path / "my list.csv", PACK_HEADER + rows)
    assert command("catalogue", "add", mine).status == 0
    assert (data_home / "catalogues" / "my-list.csv").read_bytes() == mine.read_bytes()
    said = command("price", "--gpu", "rtx-4090", "--days", "7", "--json").json
    assert (said["provider"], said["committed_usd"]) == ("mine", "90.50")
    only = ["price", "--gpu", "rtx-4090", "--days", "7", "--provider", "iteragpu"]
    sentence = command.refused(*only, status=1)
    assert "withdrawn" in sentence
    assert "2026-10-01" in sentence
    assert "my-list.csv, line 2" in sentence
    assert command("price", "--gpu", "b200", "--days", "7").status == 0
    assert "replaced" in command("catalogue", "add", mine).out
    assert command("catalogue", "remove", "my-list.csv").status == 0
    assert "Kept: none" in command.refused("catalogue", "remove", "../my-list.csv")
    assert "110.00" in command(*only).out


def test_several_providers_are_all_shown(tmp_path: Path, command: Command) -> None:
    rows = "a,b200,8,7,900.00,2026-10-01,\nb,b200,1,7,800.00,2026-10-02,\n"
    mine = written(tmp_path / "mine.csv", PACK_HEADER + rows)
    text = command("price", "--gpu", "b200", "--days", "7", "--catalogue", mine).out
    assert "flat 800.00 USD for 1 GPU:" in text
    assert "900.00 USD, 8 GPUs, a," in text


BAD_LISTS = {
    "empty": (b"", 1, "empty"),
    "header alone": (PACK_HEADER.encode(), 1, "no row"),
    "semicolons": ((PACK_HEADER + SEVEN_DAYS).replace(",", ";").encode(), 1, "semicolons"),
    "tabs": ((PACK_HEADER + SEVEN_DAYS).replace(",", "\t").encode(), 1, "tabs"),
    "utf-16": ((PACK_HEADER + SEVEN_DAYS).encode("utf-16"), 1, "UTF-16"),
    "latin-1": (PACK_HEADER.encode() + "caf\xe9".encode("latin-1"), 2, "0xe9 is not UTF-8"),
    "nul": ((PACK_HEADER + SEVEN_DAYS + "\x00").encode(), 3, "NUL"),
    "open quote": ((PACK_HEADER + SEVEN_DAYS + '"abc\n\n').encode(), 3, "never closed"),
    "lone quote": ((PACK_HEADER + '"a"b,rtx-4090,1,7,1,2026-10-01,\n').encode(), 2, "quote"),
    "ten megabytes": (PACK_HEADER.encode() + b"x" * 10_000_000, 2, "131,072"),
    "million cells": (PACK_HEADER.encode() + b"," * 1_000_000, 2, "1,000,001 cells"),
    "negative": ((PACK_HEADER + "a,b200,1,7,-1.00,2026-10-01,\n").encode(), 2, "negative"),
    "1e3": ((PACK_HEADER + "a,b200,1,7,1e3,2026-10-01,\n").encode(), 2, "no plain number"),
    "NaN": ((PACK_HEADER + "a,b200,1,7,NaN,2026-10-01,\n").encode(), 2, "no plain number"),
    "arabic": ((PACK_HEADER + "a,b200,1,7,٧,2026-10-01,\n").encode(), 2, "no plain number"),
    "no reason": ((PACK_HEADER + "a,b200,1,7,,2026-10-01,\n").encode(), 2, "no reason"),
    "both": ((PACK_HEADER + "a,b200,1,7,1,2026-10-01,why\n").encode(), 2, "a price and a reason"),
    "5 days": ((PACK_HEADER + "a,b200,1,5,1,2026-10-01,\n").encode(), 2, "no pack"),
    "no date": ((PACK_HEADER + "a,b200,1,7,1,,\n").encode(), 2, "catalogue_date is missing"),
    "bad date": ((PACK_HEADER + "a,b200,1,7,1,2026-02-30,\n").encode(), 2, "no date"),
    "twice": ((PACK_HEADER + SEVEN_DAYS * 2).encode(), 3, "there already, on line 2"),
    "lot of 0": ((PACK_HEADER + "a,b200,0,7,1,2026-10-01,\n").encode(), 2, "gpus_per_lot"),
    "gpu case": ((PACK_HEADER + "a,B200,1,7,1,2026-10-01,\n").encode(), 2, "no id"),
    "gpu spelling": ((PACK_HEADER + "a,rtx4090,1,7,1,2026-10-01,\n").encode(), 2, "'rtx-4090'"),
    "unknown column": ((PACK_HEADER[:-1] + ",extra\n").encode(), 1, "unknown column 'extra'"),
    "missing column": ((PACK_HEADER[:-1].replace(",days", "") + "\n").encode(), 1, "'days' is mis"),
    "column twice": ((PACK_HEADER[:-1] + ",gpu\n").encode(), 1, "there twice"),
    "other table": (b"a,b\n1,2\n", 1, "no column of a price list"),
    "hourly source": ((HOURLY_HEADER + "a,b200,1,spot,1,x,2026-10-01,,\n").encode(), 2, "source"),
    "hourly kind": ((HOURLY_HEADER + "a,b200,1,now,1,x,2026-10-01,s,\n").encode(), 2, "neither"),
    "hourly price": ((HOURLY_HEADER + "a,b200,1,spot,,x,2026-10-01,s,\n").encode(), 2, "no plain"),
    "hourly count": ((HOURLY_HEADER + "a,b200,0,spot,1,x,2026-10-01,s,\n").encode(), 2, "gpus"),
}


@pytest.mark.parametrize("name", BAD_LISTS)
def test_a_bad_list_is_told_with_its_line_and_changes_nothing(
    name: str, tmp_path: Path, command: Command, data_home: Path
) -> None:
    data, line, told = BAD_LISTS[name]
    good = written(tmp_path / "list.csv", PACK_HEADER + SEVEN_DAYS)
    assert command("catalogue", "add", good).status == 0
    bad = written(tmp_path / "list.csv", data)
    sentence = command.refused("catalogue", "add", bad)
    assert f"list.csv, line {line}: " in sentence
    assert told in sentence
    assert [p.name for p in (data_home / "catalogues").iterdir()] == ["list.csv"]
    assert (data_home / "catalogues" / "list.csv").read_text() == PACK_HEADER + SEVEN_DAYS
    asked = ["--gpu", "rtx-4090", "--days", "7", "--catalogue", bad]
    assert told in command.refused("price", *asked)
    assert told in command.refused("window", *WEEK, "--catalogue", bad)
    checked = command("catalogue", "check", bad)
    assert checked.status == 1
    assert f"line {line}: " in checked.out
    document = command("catalogue", "check", bad, "--json").json
    assert document["ok"] is False
    assert line in [problem["line"] for problem in document["problems"]]


@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_marks_and_line_endings_are_read(
    mark: bytes, ending: str, tmp_path: Path, command: Command
) -> None:
    text = (PACK_HEADER + SEVEN_DAYS + "\n").replace("\n", ending)
    mine = written(tmp_path / "mine.csv", mark + text.encode())
    assert command("catalogue", "check", mine).out.endswith("no problem, 1 good row.\n")
    said = command("price", "--gpu", "rtx-4090", "--days", "7", "--catalogue", mine, "--json").json
    assert said["committed_usd"] == "90.50"


def test_check_lists_every_problem(tmp_path: Path, command: Command) -> None:
    rows = "a,b200,1,7,-1,2026-10-01,\na,b200,1,5,1,2026-10-01,\n" + SEVEN_DAYS
    said = command("catalogue", "check", written(tmp_path / "x.csv", PACK_HEADER + rows))
    assert said.status == 1
    assert "line 2: " in said.out
    assert "line 3: " in said.out
    assert "2 problems, 1 good row." in said.out


@pytest.mark.parametrize("word", ["check", "add", "import"])
def test_a_list_that_is_no_file(word: str, tmp_path: Path, command: Command) -> None:
    more = ["--format", "skypilot"] if word == "import" else []
    assert "no such file" in command.refused("catalogue", word, tmp_path / "none.csv", *more)
    assert "can't be read" in command.refused("catalogue", word, tmp_path, *more)
    assert "larger than 64 MiB" in command.refused("catalogue", word, "/dev/zero", *more)


def test_a_data_folder_that_can_not_be_used(
    tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    good = written(tmp_path / "list.csv", PACK_HEADER + SEVEN_DAYS)
    monkeypatch.setenv("GPUCOST_DATA_HOME", str(good))
    assert "GPUCOST_DATA_HOME" in command.refused("catalogue", "add", good, status=3)


def test_without_a_home_there_are_the_shipped_prices(
    tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nobody(_: Path) -> Path:
        raise RuntimeError("Could not determine home directory.")

    good = written(tmp_path / "list.csv", PACK_HEADER + SEVEN_DAYS)
    for name in ("GPUCOST_DATA_HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Path, "expanduser", nobody)
    assert command("price", "--gpu", "rtx-4090", "--days", "7").status == 0
    assert "GPUCOST_DATA_HOME" in command.refused("catalogue", "add", good, status=3)


def test_kept_lists_that_the_system_does_not_show_are_not_passed_over(
    tmp_path: Path, command: Command, data_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command("catalogue", "add", written(tmp_path / "list.csv", PACK_HEADER + SEVEN_DAYS))
    listing = os.listdir

    def closed(path: object = ".") -> list[str]:
        if Path(str(path)) == data_home / "catalogues":
            raise PermissionError(13, "Permission denied")
        return listing(str(path))

    monkeypatch.setattr(os, "listdir", closed)
    monkeypatch.setattr(os, "scandir", closed)
    sentence = command.refused("price", "--gpu", "rtx-4090", "--days", "7", status=3)
    assert "Permission denied" in sentence
    assert "GPUCOST_DATA_HOME" in sentence


def test_names_of_any_script_are_kept_apart(
    tmp_path: Path, command: Command, data_home: Path
) -> None:
    names = ["模型.csv", "型.csv", "é" * 120 + ".csv", "my list.csv", "\x1b[31m.csv", "...csv"]
    for name in names:
        path = written(tmp_path / name, PACK_HEADER + SEVEN_DAYS)
        assert ": added, 1 row" in command("catalogue", "add", path).out
    kept_names = {path.name for path in (data_home / "catalogues").iterdir()}
    assert len(kept_names) == len(names)
    assert {"模型.csv", "型.csv", "my-list.csv", "31m.csv"} <= kept_names
    assert all(len(name.encode()) <= 180 for name in kept_names)


@pytest.mark.parametrize("kind", ["folder", "link", "loop", "pipe", "device"])
def test_a_kept_list_that_is_no_file_any_more(
    kind: str, tmp_path: Path, command: Command, data_home: Path
) -> None:
    good = written(tmp_path / "list.csv", PACK_HEADER + SEVEN_DAYS)
    command("catalogue", "add", good)
    there = data_home / "catalogues" / "list.csv"
    there.unlink()
    if kind == "folder":
        there.mkdir()
    elif kind == "pipe":
        os.mkfifo(there)
    else:
        targets = {"link": tmp_path / "none", "loop": there, "device": Path("/dev/zero")}
        there.symlink_to(targets[kind])
    sentence = command.refused("price", "--gpu", "rtx-4090", "--days", "7")
    assert "catalogues/list.csv" in sentence
    assert "gpucost catalogue remove list.csv" in sentence
    if kind != "folder":
        assert command("catalogue", "remove", "list.csv").status == 0
        assert command("price", "--gpu", "rtx-4090", "--days", "7").status == 0


def test_a_link_is_replaced_and_what_it_leads_to_stays(
    tmp_path: Path, command: Command, data_home: Path
) -> None:
    good = written(tmp_path / "list.csv", PACK_HEADER + SEVEN_DAYS)
    other = written(tmp_path / "other.txt", "mine")
    (data_home / "catalogues").mkdir(parents=True)
    there = data_home / "catalogues" / "list.csv"
    there.symlink_to(other)
    assert "replaced" in command("catalogue", "add", good).out
    assert other.read_text() == "mine"
    assert there.read_bytes() == good.read_bytes()
    assert not there.is_symlink()


def test_lists_added_at_once_are_each_whole(tmp_path: Path, data_home: Path) -> None:
    import subprocess
    import sys

    texts = []
    running = []
    for number in range(4):
        (tmp_path / str(number)).mkdir()
        text = PACK_HEADER + f"mine-{number},rtx-4090,1,7,9{number}.50,2026-10-01,\n"
        path = written(tmp_path / str(number) / "same.csv", text)
        texts.append(text)
        words = [sys.executable, "-m", "gpucost_tui", "catalogue", "add", str(path)]
        running.append(subprocess.Popen(words, stdout=subprocess.DEVNULL))
    assert [process.wait() for process in running] == [0] * 4
    assert [p.name for p in (data_home / "catalogues").iterdir()] == ["same.csv"]
    assert (data_home / "catalogues" / "same.csv").read_text() in texts


def test_the_data_folder_is_the_one_of_platformdirs(monkeypatch: pytest.MonkeyPatch) -> None:
    import platformdirs

    monkeypatch.delenv("GPUCOST_DATA_HOME")
    for base in ("", "/srv/data", None):
        if base is None:
            monkeypatch.delenv("XDG_DATA_HOME", raising=False)
        else:
            monkeypatch.setenv("XDG_DATA_HOME", base)
        assert kept.data_folder() == platformdirs.user_data_path("gpucost-tui", appauthor=False)


def test_a_damaged_kept_list_is_named(tmp_path: Path, command: Command, data_home: Path) -> None:
    good = written(tmp_path / "list.csv", PACK_HEADER + SEVEN_DAYS)
    command("catalogue", "add", good)
    written(data_home / "catalogues" / "list.csv", b"torn")
    sentence = command.refused("price", "--gpu", "rtx-4090", "--days", "7")
    assert "list.csv, line 1" in sentence
    assert "gpucost catalogue remove list.csv" in sentence


def test_list_is_by_gpu_provider_and_days(command: Command) -> None:
    said = command("catalogue", "list", "--gpu", "b200", "--days", "7", "--json").json
    assert [row["usd_per_lot"] for row in said["packs"]] == ["2071.00"]
    assert said["hourly_offers"] == []
    said = command("catalogue", "list", "--provider", "lambda", "--json").json
    assert {row["provider"] for row in said["hourly_offers"]} == {"lambda"}
    assert said["packs"] == []
    text = command("catalogue", "list", "--gpu", "rtx-4090").out
    assert "not stated by the source" in text
    assert "110.00" in text
    assert "Providers: " in command.refused("catalogue", "list", "--provider", "nobody")
    assert "3, 7 or 30" in command.refused("catalogue", "list", "--days", "5")


def test_periods_are_priced_only_when_asked(command: Command) -> None:
    alone = command("window", *LONG).out
    assert "No single pack covers it" in alone
    assert "Shorten the window by 0.5 h" in alone
    assert "--periods 5 for 7 days each" in alone
    assert "Renewal is never" in alone
    assert command("window", *LONG, "--json").json["candidates"] == []
    said = command("window", *LONG, "--periods", "5", "--gpu", "rtx-4090", "--lots", "2", "--json")
    assert said.json["covering_pack_days"] == []
    assert [(c["days"], c["periods"], c["committed_usd"]) for c in said.json["candidates"]] == [
        (7, 5, "1100.00")
    ]


def test_ways_name_only_what_can_be_priced(command: Command) -> None:
    asked = ["window", *LONG, "--gpu"]
    # Two packs of 30 days cover it, and have no price; nine of 7 days have one.
    said = command(*asked, "rtx-4090", "--periods", "2").out
    assert "2 in sequence do, of 30 days each" in said
    assert "--periods 5 for 7 days each" in said
    assert "once a price list has a price" not in said
    assert "once a price list has a price for them" in " ".join(
        command(*asked, "h100-sxm").out.split()
    )


def test_hourly_offers_are_never_ranked_with_packs_unasked(command: Command) -> None:
    said = command("window", *WEEK, "--json").json
    keys = {"provider", "gpu", "days", "lots", "gpus", "committed_usd"}
    assert all(keys <= set(c) for c in said["candidates"])
    assert "ranking" not in said
    assert {offer["kind"] for offer in said["hourly_offers"]} == {"pay-as-you-go estimate"}
    assert all(offer["observed_on"] for offer in said["hourly_offers"])
    text = command("window", *WEEK).out
    before, after = text.split("Pay-as-you-go estimates")
    assert "~" not in before
    assert "another billing kind" in after
    assert "observed 2026-09-20" in after
    ranking = command("window", *WEEK, "--with-hourly", "--json").json["ranking"]
    amounts = [float(item.get("committed_usd") or item["estimate_usd"]) for item in ranking]
    assert amounts == sorted(amounts)
    assert {item["kind"] for item in ranking} == {"commitment", "pay-as-you-go estimate"}


def test_an_hourly_estimate_has_the_gpus_of_the_lots(command: Command) -> None:
    said = command("window", *WEEK, "--gpu", "b200", "--lots", "2", "--json").json
    assert [c["gpus"] for c in said["candidates"]] == [4]
    akash = [o for o in said["hourly_offers"] if o["provider"] == "akash"]
    assert [(o["gpus"], o["estimate_usd"]) for o in akash] == [(4.0, "1920.00")]


@pytest.mark.parametrize(
    ("start", "told"),
    [
        ("2026-09-28", "no moment"),
        ("2026-09-28 09:00", "no moment"),
        ("2026-W40-1T09:00", "no moment"),
        ("20260928T0900", "no moment"),
        ("２026-09-28T09:00", "no moment"),
        ("2026-02-30T09:00", "no moment"),
        ("0001-01-01T00:00", "no moment"),
        ("9999-12-31T23:59", "no moment"),
        ("2026-09-28T09:00+25:00", "impossible offset"),
        ("2026-09-28T09:00Z", "does not occur there"),
        ("", "no moment"),
        ("\x1b]0;x\x07", "no moment"),
    ],
)
def test_moments(start: str, told: str, command: Command) -> None:
    words = ["--start", start, "--end", "2026-10-02T09:00", "--timezone", "Europe/Paris"]
    assert told in command.refused("window", *words)


@pytest.mark.parametrize(
    "zone",
    ["", "europe/paris", "../../etc/passwd", "Europe", "x" * 5000, "right/UTC", "a\x00b", "CET\n"],
)
def test_zones(zone: str, command: Command) -> None:
    words = ["--start", "2026-09-28T09:00", "--end", "2026-10-02T09:00", "--timezone", zone]
    assert "unknown time zone" in command.refused("window", *words)


def test_offsets_alone_need_no_zone(command: Command) -> None:
    words = ["--start", "2026-09-28T09:00+02:00", "--end", "2026-09-28T09:00Z", "--json"]
    assert command("window", *words).json["hours"] == 2.0
    assert "--timezone" in command.refused("window", *WEEK[:4])


def test_a_window_is_given_one_way(tmp_path: Path, command: Command) -> None:
    tasks = written(tmp_path / "t.toml", "[[tasks]]\nname='a'\nhours=1\n")
    assert "not by both" in command.refused("window", *WEEK, "--tasks", tasks)
    assert "--tasks" in command.refused("window")
    assert "--tasks" in command.refused("window", "--start", "2026-09-28T09:00")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "no [[tasks]]"),
        ("tasks = []", "there is no task"),
        ("tasks = 3", "no [[tasks]]"),
        ("[[tasks", "no TOML"),
        ("[[tasks]]\nname='a'\nhours=1\nextra=2", "unknown key 'extra'"),
        ("[[tasks]]\nhours=1", "name is missing"),
        ("[[tasks]]\nname=''\nhours=1", "name is missing"),
        ("[[tasks]]\nname='a'", "hours is missing"),
        ("[[tasks]]\nname='a'\nhours='1'", "hours is missing or no number"),
        ("[[tasks]]\nname='a'\nhours=true", "no number"),
        ("[[tasks]]\nname='a'\nhours=nan", "no finite"),
        ("[[tasks]]\nname='a'\nhours=inf", "no finite"),
        ("[[tasks]]\nname='a'\nhours=1e99999", "87,600"),
        ("[[tasks]]\nname='a'\nhours=1e-99999", "decimals"),
        ("[[tasks]]\nname='a'\nhours=1e9999999999999999999", "exponent"),
        ("[[tasks]]\nname='a'\nhours=-inf", "no finite"),
        ("[[tasks]]\nname='a'\nhours=" + "9" * 5000, "no TOML"),
        ("[[tasks]]\nname='a'\nhours=1\nafter='b'", "no list"),
        ("[[tasks]]\nname='a'\nhours=1\nafter=['a']", "wait for each other: a"),
        ("[[tasks]]\nname='a'\nhours=1\nkind='rest'", "neither work nor wait"),
        ("[window]\nx=1", "unknown key 'window'"),
    ],
)
def test_task_files(text: str, told: str, tmp_path: Path, command: Command) -> None:
    path = written(tmp_path / "t.toml", text)
    sentence = command.refused("window", "--tasks", path)
    assert told in sentence
    assert "t.toml" in sentence


def test_bytes_that_are_no_task_file(tmp_path: Path, command: Command) -> None:
    assert "UTF-8" in command.refused("window", "--tasks", written(tmp_path / "t", b"\xff\xfe"))
    assert "no such file" in command.refused("window", "--tasks", tmp_path / "none.toml")
    assert "can't be read" in command.refused("window", "--tasks", tmp_path)
    deep = written(tmp_path / "deep.toml", "tasks = " + "[" * 100_000)
    assert "no TOML" in command.refused("window", "--tasks", deep)


def test_a_timeline_of_hostile_names_fits_80_columns(tmp_path: Path, command: Command) -> None:
    names = ["模型" * 30, "\\u001b[31mred\\u202e", "a" * 150, "e\\u0301" * 20]
    tasks = "".join(
        f'[[tasks]]\nname="{name}"\nhours={hours}\nkind="wait"\n'
        for name, hours in zip(names, (0, 0.000001, 87_600, 1), strict=True)
    )
    said = command("window", "--tasks", written(tmp_path / "t.toml", tasks))
    assert said.status == 0
    drawn = said.out.split("\n\n")[0]
    assert all(cells(line) <= 80 for line in drawn.splitlines())
    assert drawn.count("░") >= len(names)
    assert not set(said.out) & {"\x1b", "\u202e"}


def test_a_timeline_fits_a_narrow_terminal(
    tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tmp_path / "t.toml", "[[tasks]]\nname='passes over the corpus'\nhours=3\n")
    for columns, width in (("40", 40), ("60", 60), ("200", 80), ("0", 80), ("3", 40)):
        monkeypatch.setenv("COLUMNS", columns)
        drawn = command("window", "--tasks", path).out.split("\n\n")[0]
        assert max(map(cells, drawn.splitlines())) == width


def test_a_duration_is_exact_where_floats_are_not(tmp_path: Path, command: Command) -> None:
    tasks = "[[tasks]]\nname='t0'\nhours=0.1\n" + "".join(
        f"[[tasks]]\nname='t{n}'\nhours=0.1\nafter=['t{n - 1}']\n" for n in range(1, 720)
    )
    said = command("window", "--tasks", written(tmp_path / "t.toml", tasks), "--json").json
    assert (said["hours"], said["covering_pack_days"]) == (72.0, [3, 7, 30])


def test_a_closed_reader_is_no_error() -> None:
    import subprocess
    import sys

    words = [sys.executable, "-m", "gpucost_tui", "catalogue", "list"]
    process = subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ}
    )
    assert process.stdout is not None and process.stderr is not None
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    process.wait()
