"""The blank kit: same bytes every time, and a calculator that needs only Python 3.10."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
from pricing_support import PACK_HEADER, Command, golden

from gpucost_tui import resources

KIT = resources.file("data", "kit")
PRICES = golden("prices")


def other_pythons() -> dict[str, str]:
    """Python 3.10, where this machine has one: on the path, or among pyenv's."""
    found = shutil.which("python3.10")
    if found is None:
        return {}
    versions = [""]
    if shutil.which("pyenv"):
        listed = subprocess.run(["pyenv", "versions", "--bare"], capture_output=True, text=True)
        versions += [v for v in listed.stdout.split() if v.startswith("3.10.")]
    for version in versions:
        environment = {**os.environ, "PYENV_VERSION": version} if version else dict(os.environ)
        asked = [found, "-c", "import sys; print(sys.executable)"]
        answer = subprocess.run(asked, capture_output=True, text=True, env=environment)
        if answer.returncode == 0:
            return {"3.10": answer.stdout.strip()}
    return {}


PYTHONS = {"this": sys.executable, **other_pythons()}


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(capsys)


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The kit, as somebody without this program has it."""
    from gpucost_tui.pricing.kit import write_kit

    folder = tmp_path_factory.mktemp("kit")
    write_kit(folder / "kit.zip")
    with zipfile.ZipFile(folder / "kit.zip") as archive:
        archive.extractall(folder)
    return folder / "gpucost-kit"


def calculate(
    folder: Path, *words: str, python: str = sys.executable
) -> subprocess.CompletedProcess[str]:
    # -I -S: nothing but the standard library can be imported.
    return subprocess.run(
        [python, "-I", "-S", str(folder / "calcul_forfaits.py"), *words],
        capture_output=True,
        text=True,
        encoding="utf-8",
        env={"PYTHONIOENCODING": "utf-8"},
    )


@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize("case", PRICES, ids=lambda c: "-".join(map(str, c["args"].values())))
def test_golden_prices(case: dict[str, Any], python: str, unpacked: Path) -> None:
    args = case["args"]
    words = ["--gpu", args["gpu"], "--days", str(args["days"]), "--lots", str(args["lots"])]
    if args.get("accepted_results") is not None:
        words += ["--accepted-results", str(args["accepted_results"])]
    said = calculate(unpacked, *words, python=PYTHONS[python])
    if "error" in case:
        assert (said.returncode, said.stdout) == (case["exit"], "")
        assert said.stderr.count("\n") == 1
        told = {
            "the catalogue has no price for it: the reason in the cell is shown": (
                "not stated by the source"
            ),
            "unknown GPU; rtx-4090 is suggested, not taken": "Did you mean rtx-4090?",
        }
        assert told.get(case["error"], case["error"]) in said.stderr
        return
    assert (said.returncode, said.stderr) == (0, "")
    assert f"flat {case['committed_usd']} USD for {case['gpus']} GPU" in said.stdout
    assert "catalogue of 2026-09-24" in said.stdout
    if case["cost_per_accepted_usd"]:
        assert f"cost per accepted corpus: {case['cost_per_accepted_usd']} USD" in said.stdout
    else:
        assert case["note"] in said.stdout
    assert ("as stated by you" in said.stdout) == (args["accepted_results"] is not None)


@pytest.mark.parametrize("number", ["1e3", "NaN", "５", "٧", "+5", " 5", "", "1000001", "9" * 5000])
def test_calculator_numbers(number: str, unpacked: Path) -> None:
    words = ["--gpu", "b200", "--days", "7", "--accepted-results", number]
    said = calculate(unpacked, *words)
    assert (said.returncode, said.stdout) == (2, "")
    assert "accepted results is a whole number from 0 to 1,000,000" in said.stderr
    assert "Traceback" not in said.stderr


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"", "line 1"),
        (PACK_HEADER.encode(), "no row"),
        (PACK_HEADER.replace(",", ";").encode(), "with commas"),
        (b"\xff\xfe\x00", "UTF-8"),
        ((PACK_HEADER[:-1] + ",gpu\na,b200,1,7,1,2026-10-01,,b200\n").encode(), "line 1"),
        ((PACK_HEADER + "a,b200,1,7,1e3,2026-10-01,\n").encode(), "line 2"),
        ((PACK_HEADER + "a,b200,1,7,-1,2026-10-01,\n").encode(), "line 2"),
        ((PACK_HEADER + "a,b200,1,7,,2026-10-01,\n").encode(), "missing_reason"),
        ((PACK_HEADER + "a,b200,1,7,1,,\n").encode(), "catalogue_date"),
        ((PACK_HEADER + "a,b200,x,7,1,2026-10-01,\n").encode(), "gpus_per_lot"),
        ((PACK_HEADER + "a,b200\n").encode(), "cells"),
        ((PACK_HEADER + "a,b200,1,7,1,2026-10-01,,more\n").encode(), "cells"),
        ((PACK_HEADER + '"a').encode(), "no CSV"),
        (None, "can't be read"),
    ],
)
def test_calculator_with_a_bad_price_list(data: bytes | None, told: str, tmp_path: Path) -> None:
    shutil.copy(KIT / "calcul_forfaits.py", tmp_path)
    if data is not None:
        (tmp_path / "tarifs-forfaits.csv").write_bytes(data)
    said = calculate(tmp_path, "--gpu", "b200", "--days", "7")
    assert (said.returncode, said.stdout) == (2, "")
    assert told in said.stderr
    assert said.stderr.count("\n") == 1


def test_calculator_reads_marks_and_line_endings(tmp_path: Path) -> None:
    shutil.copy(KIT / "calcul_forfaits.py", tmp_path)
    text = (PACK_HEADER + "a,b200,2,7,10.125,2026-10-01,\n").replace("\n", "\r\n")
    (tmp_path / "tarifs-forfaits.csv").write_bytes(b"\xef\xbb\xbf" + text.encode())
    said = calculate(tmp_path, "--gpu", "b200", "--days", "7", "--lots", "1")
    assert "flat 10.13 USD for 2 GPUs" in said.stdout


@pytest.mark.parametrize("python", PYTHONS)
def test_calculator_without_a_reader(python: str, unpacked: Path) -> None:
    words = [PYTHONS[python], "-I", "-S", str(unpacked / "calcul_forfaits.py")]
    words += ["--gpu", "b200", "--days", "7"]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None and process.stderr is not None
    process.stdout.close()
    with process.stderr:
        assert process.stderr.read() == b""
    assert process.wait() == 0


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no full device here")
def test_calculator_on_a_full_disk(unpacked: Path) -> None:
    words = [sys.executable, str(unpacked / "calcul_forfaits.py"), "--gpu", "b200", "--days", "7"]
    with Path("/dev/full").open("wb") as full:
        said = subprocess.run(words, stdout=full, stderr=subprocess.PIPE, text=True)
    assert said.returncode == 1
    assert "can't be written" in said.stderr
    assert said.stderr.count("\n") == 1


def test_calculator_in_an_encoding_without_the_letters(tmp_path: Path) -> None:
    shutil.copy(KIT / "calcul_forfaits.py", tmp_path)
    text = PACK_HEADER + "模型,b200,2,7,10.125,2026-10-01,\n"
    (tmp_path / "tarifs-forfaits.csv").write_text(text, encoding="utf-8")
    said = subprocess.run(
        [sys.executable, str(tmp_path / "calcul_forfaits.py"), "--gpu", "b200", "--days", "7"],
        capture_output=True,
        env={"PYTHONIOENCODING": "ascii"},
    )
    assert (said.returncode, said.stderr) == (0, b"")
    assert b"flat 10.13 USD" in said.stdout


def test_calculator_is_for_python_3_10_and_imports_the_standard_library_alone() -> None:
    source = (KIT / "calcul_forfaits.py").read_text(encoding="utf-8")
    tree = ast.parse(source, feature_version=(3, 10))
    imported = {
        name.split(".")[0]
        for node in ast.walk(tree)
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    }
    assert imported <= sys.stdlib_module_names
    assert "gpucost_tui" not in imported


def test_the_zip_is_the_same_every_time(tmp_path: Path, command: Command) -> None:
    one, two = tmp_path / "one.zip", tmp_path / "two.zip"
    for target in (one, two, one):
        assert command("kit", target).status == 0
    assert one.read_bytes() == two.read_bytes()
    with zipfile.ZipFile(one) as archive:
        assert archive.testzip() is None
        names = archive.namelist()
    for name in (
        "README.md",
        "INSTRUCTIONS.md",
        "QUALITY_PROTOCOL.md",
        "raw_results_template.csv",
        "calcul_forfaits.py",
        "tarifs-forfaits.csv",
        "LICENSE.md",
    ):
        assert f"gpucost-kit/{name}" in names
    assert all(name.startswith("gpucost-kit/") and ".." not in name for name in names)


def test_a_kit_replaces_nothing_unasked(tmp_path: Path, command: Command) -> None:
    target = tmp_path / "kit.zip"
    target.write_bytes(b"something of mine")
    assert "--force" in command.refused("kit", target)
    assert target.read_bytes() == b"something of mine"
    assert command("kit", target, "--force").status == 0
    command.refused("kit", tmp_path / "kit.tar")
    (tmp_path / "folder.zip").mkdir()
    command.refused("kit", tmp_path / "folder.zip")
    command.refused("kit", tmp_path / "none" / "kit.zip", status=3)
    command.refused("kit", "a\x00b.zip", status=3)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["folder.zip", "kit.zip"]


def test_the_kits_prices_are_the_programs() -> None:
    shipped = resources.file("data", "pack-prices.csv")
    assert (KIT / "tarifs-forfaits.csv").read_bytes() == shipped.read_bytes()


def test_the_empty_raw_table_has_every_column_once() -> None:
    text = resources.file("data", "raw_results_template.csv").read_text(encoding="utf-8")
    assert text.count("\n") == 1
    columns = text.strip().split(",")
    assert len(columns) == len(set(columns)) == 71
    assert (columns[0], columns[-2:]) == ("attempt", ["missing", "notes"])
    from gpucost_tui.campaign.schema import SCHEMA

    assert columns == list(SCHEMA)
