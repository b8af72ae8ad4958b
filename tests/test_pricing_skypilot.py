"""SkyPilot's instance lists become hourly offers, and no name becomes another GPU."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from pricing_support import Command, shipped

from gpucost_tui.pricing.catalogue import read_catalogue
from gpucost_tui.pricing.skypilot import gpu_id

# The quirks of the published files: floats as counts, several regions, a CPU machine, an
# accelerator billed apart from its machine, stand-ins and zeros for "no spot price".
VMS = """\
InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,GpuInfo,Price,SpotPrice,Region
cpu_4x,,,4.0,16.0,,0.2,0.1,eu-1
8x_A100,A100,8.0,124.0,1800.0,"{'Gpus': [{'Name': 'A100', 'Count': 8.0}]}",10.32,,eu-1
8x_A100,A100,8.0,124.0,1800.0,"{'Gpus': [{'Name': 'A100', 'Count': 8.0}]}",10.32,,us-1
8x_A100,A100,8.0,124.0,1800.0,"{'Gpus': [{'Name': 'A100', 'Count': 8.0}]}",10.32,,us-1
8x_A100,A100,8.0,124.0,1800.0,"{'Gpus': [{'Name': 'A100', 'Count': 8.0}]}",11.20,,us-1
1x_A100-80GB-SXM,A100-80GB-SXM,1.0,16,80,,2.29,99999999,CA
2x_RTX4090,RTX4090,2,32,64,,0.80,0.00,"Texas, US, NA"
2x_H100,H100,2,32,64,,3.60,1.80,"France, FR, EU"
half_A10,A10,0.5,8,16,,0.30,,us-1
3x_L4,L4,3.0,8,16,,1.00,,us-1
no_price,L4,1.0,8,16,,,,us-1
,A100,1.0,,,,3.00,1.00,us-central1
tpu-host,tpu-v6e,4.0,8,16,,5.00,,us-1
"""


@pytest.fixture
def command(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Command:
    monkeypatch.setenv("GPUCOST_DATA_HOME", str(tmp_path / "home"))
    return Command(capsys)


@pytest.fixture
def vms(tmp_path: Path) -> Path:
    path = tmp_path / "acme" / "vms.csv"
    path.parent.mkdir()
    path.write_text(VMS, encoding="utf-8")
    os.utime(path, (1_790_000_000, 1_790_000_000))  # 2026-09-21
    return path


def test_import_keeps_gpu_prices_and_says_what_it_did(vms: Path, command: Command) -> None:
    said = command("catalogue", "import", vms, "--format", "skypilot")
    assert said.status == 0
    for line in (
        "9 hourly offers by acme, observed on 2026-09-21",
        "A100 is listed as a100 (the file does not say which: not taken for a100-40gb, ",
        "H100 is listed as h100 (the file does not say which: not taken for h100-nvl, ",
        "RTX4090 is listed as rtx-4090\n",
        "A100-80GB-SXM is listed as a100-sxm-80gb\n",
        "1 row without accelerator",
        "1 row without price",
        "1 row repeated",
        "1 row with an accelerator that is no GPU",
        "1 row with the accelerator's price alone",
    ):
        assert line in said.out, line
    rows = command("catalogue", "list", "--provider", "acme", "--json").json["hourly_offers"]
    offers = {(r["product"], r["provisioning"]): r for r in rows}
    assert len(offers) == 9
    assert offers["8x_A100, eu-1", "on-demand"]["usd_per_gpu_hour"] == "1.29"
    assert offers["8x_A100, us-1, line 6", "on-demand"]["usd_per_gpu_hour"] == "1.4"
    assert offers["2x_H100, France, FR, EU", "spot"]["usd_per_gpu_hour"] == "0.9"
    assert offers["half_A10, us-1", "on-demand"]["usd_per_gpu_hour"] == "0.6"
    assert offers["half_A10, us-1", "on-demand"]["gpus"] == "0.5"
    assert "a share of one GPU" in offers["half_A10, us-1", "on-demand"]["notes"]
    third = offers["3x_L4, us-1", "on-demand"]
    assert third["usd_per_gpu_hour"] == "0.3333333333"
    assert third["notes"] == "1 USD an hour for the whole instance of 3 GPU"
    assert {r["gpu"] for r in rows} == {"a100", "a100-sxm-80gb", "rtx-4090", "h100", "a10", "l4"}


def test_an_unspecific_name_stays_a_gpu_of_its_own(vms: Path, command: Command) -> None:
    command("catalogue", "import", vms, "--format", "skypilot")
    week = ["--start", "2026-09-28T09:00", "--end", "2026-10-02T09:00", "--timezone", "UTC"]
    said = command("window", *week, "--gpu", "h100", "--json").json
    assert {offer["gpu"] for offer in said["hourly_offers"]} == {"h100"}
    said = command("window", *week, "--gpu", "h100-sxm", "--json").json
    assert "acme" not in {offer["provider"] for offer in said["hourly_offers"]}
    # Half a GPU is no GPU that a window can be spent on.
    said = command("window", *week, "--gpu", "a10", "--json").json
    assert [offer["provider"] for offer in said["hourly_offers"]] == ["lambda"]


def test_import_to_a_file(vms: Path, tmp_path: Path, command: Command) -> None:
    out = tmp_path / "offers.csv"
    facts = ["--provider", "acme cloud", "--observed-on", "2026-10-05", "--source", "their page"]
    said = command("catalogue", "import", vms, "--format", "skypilot", *facts, "--out", out)
    assert said.status == 0
    assert not (tmp_path / "home").exists()
    offers = read_catalogue(out).offers
    assert {(o.provider, str(o.observed_on), o.source) for o in offers} == {
        ("acme cloud", "2026-10-05", "their page")
    }
    assert command("catalogue", "check", out).status == 0
    lost = ["--out", tmp_path / "none" / "x.csv"]
    command.refused("catalogue", "import", vms, "--format", "skypilot", *lost, status=3)
    command.refused("catalogue", "import", vms, "--format", "skypilot", "--observed-on", "5 Oct")
    command.refused("catalogue", "import", vms, "--format", "parquet")


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ("x,H100,1.0,1,1,,-2,,us", "line 2: Price '-2' is negative"),
        ("x,H100,one,1,1,,2,,us", "line 2: AcceleratorCount 'one' is no number"),
        ("x,H100,,1,1,,2,,us", "line 2: AcceleratorCount '' is empty"),
        ("x,H100,0,1,1,,2,,us", "line 2: AcceleratorCount '0' is no count"),
        ("x,H100,1,1,1,,NaN,,us", "line 2: Price 'NaN' is no number"),
        ("x,\x1b[1m,1,1,1,,2,,us", "can't be made an id"),
        ("x,H100,1", "line 2: 3 cells"),
        ("x,,,1,1,,2,,us", "no row gives an hourly offer (1 without accelerator)"),
        ("", "no row gives an hourly offer"),
    ],
)
def test_a_bad_row_is_told_and_nothing_is_kept(
    row: str, told: str, tmp_path: Path, command: Command
) -> None:
    path = tmp_path / "vms.csv"
    path.write_text(VMS.splitlines()[0] + "\n" + row + "\n", encoding="utf-8")
    sentence = command.refused("catalogue", "import", path, "--format", "skypilot")
    assert told in sentence
    assert "\x1b" not in sentence
    assert not (tmp_path / "home").exists()


def test_another_table_is_no_skypilot_list(tmp_path: Path, command: Command) -> None:
    path = tmp_path / "vms.csv"
    path.write_text("AcceleratorName,Clouds\nA10,['Azure']\n", encoding="utf-8")
    sentence = command.refused("catalogue", "import", path, "--format", "skypilot")
    assert "column 'InstanceType' is missing" in sentence


def test_names_become_ids_by_spelling_alone() -> None:
    ids = set(shipped().gpus())
    same = {
        "RTX4090": "rtx-4090",
        "RTX3090": "rtx-3090",
        "RTXA6000": "rtx-a6000",
        "L40S": "l40s",
        "H100-SXM": "h100-sxm",
        "H100-NVL": "h100-nvl",
        "GH200": "gh200",
        "B200": "b200",
        "A10": "a10",
        "A6000": "rtx-a6000",
    }
    for name, gpu in same.items():
        assert gpu_id(name) == gpu
        assert gpu in ids
    for name in ("A100", "A100-80GB", "H100", "V100", "V100-32GB", "RTX6000", "H100-MEGA", "A10G"):
        assert gpu_id(name) not in ids, name
        assert gpu_id(name, ids) not in ids, name
    for name in ("RTX6000-Ada", "RTX6000Ada", "RTX 6000 Ada"):
        assert gpu_id(name) == "rtx-6000-ada"
    for name in ("RTXPRO6000S", "RTX-PRO-6000S", "RTX PRO 6000S"):
        assert gpu_id(name) == "rtx-pro-6000s"
    assert gpu_id("GTX1660S") == "gtx-1660s"
    for name in ("NVIDIA A10", "nvidia_a10", "A 10"):
        assert gpu_id(name, ids) == "a10"
    assert gpu_id("GeForce RTX 4090", ids) == "rtx-4090"


def test_an_imported_list_never_stands_in_the_way_of_the_next_command(
    tmp_path: Path, command: Command
) -> None:
    text = VMS.splitlines()[0] + "\nx,NVIDIA A10,2.0,4,16,,3.00,,us-1\n"
    (tmp_path / "nv.csv").write_text(text, encoding="utf-8")
    said = command("catalogue", "import", tmp_path / "nv.csv", "--format", "skypilot")
    assert "NVIDIA A10 is listed as a10\n" in said.out
    listed = command("catalogue", "list", "--gpu", "a10", "--provider", "nv", "--json").json
    assert [row["usd_per_gpu_hour"] for row in listed["hourly_offers"]] == ["1.5"]
    assert command("price", "--gpu", "rtx-4090", "--days", "7").status == 0


def test_other_accelerators_than_gpus_are_left_out(tmp_path: Path, command: Command) -> None:
    names = ["Virtex UltraScale (VU9P)", "FPGA", "U30", "Gaudi HL-205", "Inferentia2", "Trainium"]
    rows = [f"m{n},{name},1.0,8,64,,1.65,0.5,us-1" for n, name in enumerate(names)]
    text = "\n".join([VMS.splitlines()[0], *rows, "p5,H100,8.0,192,2048,,55.04,12.5,us-1", ""])
    (tmp_path / "aws.csv").write_text(text, encoding="utf-8")
    said = command("catalogue", "import", tmp_path / "aws.csv", "--format", "skypilot").out
    assert "2 hourly offers by aws" in said
    assert "6 rows with an accelerator that is no GPU" in said


def test_a_providers_name_is_no_path(tmp_path: Path, vms: Path, command: Command) -> None:
    words = ["catalogue", "import", vms, "--format", "skypilot", "--provider", "a/../b"]
    said = command(*words)
    assert said.status == 0
    assert [p.name for p in (tmp_path / "home" / "catalogues").iterdir()] == ["skypilot-a-..-b.csv"]
    assert "in place of" not in said.out
    assert "in place of the list of that name" in command(*words).out


def test_where_an_imported_list_can_not_be_written(
    tmp_path: Path, vms: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ["catalogue", "import", vms, "--format", "skypilot", "--out"]
    for out in (".", tmp_path, ""):
        assert "a folder of that name" in command.refused(*words, out)
    for out in ("none/x.csv", "a\x00b.csv"):
        assert "can't be written" in command.refused(*words, out, status=3)
    assert "Missing option '--format'" in command.refused("catalogue", "import", vms)
    assert "skypilot" in command.refused("catalogue", "import", vms, "--format", "json")
    assert [p.name for p in tmp_path.iterdir()] == ["acme"]
