"""Tokens, user names and home folders reach neither journal, host record, table nor log."""

from __future__ import annotations

import json
import shutil
import zipfile
from pathlib import Path

import pytest
import runner_parts as parts

import gpucost_tui
from gpucost_tui.campaign.folder import Campaign
from gpucost_tui.campaign.private import Private

USER = "planted-user"
TOKEN = "hf_PlantedTokenPlantedToken0123"
KEY = "planted:secret/value"


PLANTED = (TOKEN, KEY, USER, "another-user", "stored-in-a-file", "pw@", "line-of-a-key")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home folder with a user's name, a stored token, a model and a corpus."""
    home = tmp_path / "home" / USER
    (home / ".cache/huggingface").mkdir(parents=True)
    (home / ".cache/huggingface/token").write_text("stored-in-a-file-0123456789\n")
    shutil.copytree(Path(gpucost_tui.__file__).parent / "demo/model", home / "models/mine")
    parts.write_corpus(home / "corpus.jsonl", parts.corpus_rows())
    return home


@pytest.fixture
def planted(home: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    monkeypatch.delenv("HF_HOME", raising=False)
    return {
        "HOME": str(home),
        "USER": USER,
        "LOGNAME": USER,
        "HF_TOKEN": TOKEN,
        "AWS_SECRET_ACCESS_KEY": KEY,
        "SSH_PRIVATE_KEY": "-----\nfirst-line-of-a-key\n-----\n",
        "CUDA_VISIBLE_DEVICES": TOKEN,
    }


def made_at(home: Path, environment: dict[str, str]) -> Campaign:
    """Make and seal a campaign in a home, of a model and a corpus in it."""
    settings = {**parts.SETTINGS, "measurement.rounds": 1, "decision.budget_usd": "500.00"}
    given = [f"{name}={json.dumps(value)}" for name, value in settings.items()]
    options = [word for one in given for word in ("--set", one)]
    words = ["--protocol", "classification-batch", "--corpus", str(home / "corpus.jsonl")]
    model = ["--model", str(home / "models/mine")]
    done = parts.gpucost("new", home / "c", *words, *model, *options, **environment)
    assert done.returncode == 0, done.stderr
    done = parts.gpucost("seal", home / "c", **environment)
    assert done.returncode == 0, done.stderr
    return Campaign(home / "c")


def looked_through(place: Path) -> int:
    """Assert that nothing planted is in any file; return how many there are."""
    looked = 0
    for file in place.rglob("*"):
        if file.is_dir() or file.name in ("sources.json", "protocol.toml"):
            continue  # where the model lies on this machine; no part of a dossier
        content = file.read_bytes()
        for secret in PLANTED:
            assert secret.encode() not in content, f"{secret} in {file.name}"
        looked += 1
    return looked


def test_nothing_private_is_left_in_a_campaign(
    tmp_path: Path, home: Path, planted: dict[str, str]
) -> None:
    made = made_at(home, planted)
    said = (
        f"can't read {home}/secrets.txt of {USER} with {TOKEN} or {KEY} or "
        f"stored-in-a-file-0123456789 at https://{USER}:pw@host/x and /home/another-user/y "
        f"in {made.folder}/corpus/corpus.jsonl: first-line-of-a-key \ud800"
    )
    fail = {"fail": {"kind": "raise", "after": 4, "text": said}}
    script = {
        "devices": [{"name": "NVIDIA GeForce RTX 4090", "capacity_bytes": 24 << 30}],
        "attempts": {"1": fail, "2": {"fail": {"kind": "segfault", "after": 4}}},
    }
    done = parts.gpucost("run", made.folder, "--detach", script=script, **planted)
    assert done.returncode == 0, done.stderr
    parts.until(lambda: parts.nobody_left(made))
    parts.sound(made, [1, 2, 3])
    row = parts.rows(made)[0]
    assert row["failure"] == "error"
    error = parts.state(made).attempts[1].error or ""
    assert "~/secrets.txt" in error
    assert "<campaign>/corpus/corpus.jsonl" in error
    assert (made.folder / "logs/child.log").stat().st_size > 0, "the crash left its words"
    for words in (
        ("commit", made.folder, "--gpu", "rtx-4090", "--days", "7", "--lots", "1"),
        ("report", made.folder),
        ("export", made.folder, tmp_path / "out.zip"),
    ):
        done = parts.gpucost(*words, **planted)
        assert done.returncode == 0, done.stderr
    assert looked_through(made.folder) > 14
    assert (made.folder / "report/report.html").exists()
    with zipfile.ZipFile(tmp_path / "out.zip") as opened:
        opened.extractall(tmp_path / "out")
    assert looked_through(tmp_path / "out") > 14
    assert not list((tmp_path / "out").rglob("sources.json"))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("/home/ann/x", "~/x"),
        ("'/home/ann': no", "'~': no"),
        ("/home/annabel/x", "/home/(user)/x"),
        ("/Users/bob/x", "/Users/(user)/x"),
        ("/data/ann/models/x", "/data/(user)/models/x"),
        ("an annual plan of ann", "an annual plan of ann"),
        ("the file of someone-else1: ok", "the file of (user): ok"),
        ("not someone-else12 here", "not someone-else12 here"),
        ("/home/ann/run/c/attempts/1", "<campaign>/attempts/1"),
        ("/home/ann/run/c2/x", "~/run/c2/x"),
        ("token s3cr3t-value!", "token (secret)!"),
        ("hf_abcdefghijklmnopqrst", "(secret)"),
        ("Authorization: Bearer abc.def-ghi", "Authorization: Bearer (secret)"),
        ("https://me:pw@host/x", "https://(secret)@host/x"),
        ("pass 3 of 15", "pass 3 of 15"),
        ("/etc/token", "/etc/token"),
        ("key /Qx7+AbCdEfGhIj/w== refused", "key (secret) refused"),
        ("the pass of my-registry-pass", "the pass of (secret)"),
        ("BEGIN KEY\nfirst-line-of-it\nelse", "BEGIN KEY\n(secret)\nelse"),
        ("the monkey business", "the monkey business"),
    ],
)
def test_what_is_hidden(text: str, shown: str) -> None:
    environ = {
        "HOME": "/home/ann",
        "USER": "ann",
        "LOGNAME": "someone-else1",
        "API_TOKEN": "s3cr3t-value",
        "OTHER_TOKEN": "15",
        "TOKEN_FILE": "/etc/token",
        "AWS_SECRET_ACCESS_KEY": "/Qx7+AbCdEfGhIj/w==",
        "REGISTRY_PASS": "my-registry-pass",
        "SSH_PRIVATE_KEY": "-----\n  first-line-of-it\n-----\n",
        "MONKEY": "monkey",
        "OLDPWD": "/etc/token",
    }
    assert Private(Path("/home/ann/run/c"), environ).hide(text) == shown


def test_a_home_that_is_the_root_hides_no_path() -> None:
    private = Private(Path("/c"), {"HOME": "/", "USER": ""})
    assert private.hide("/usr/lib/python3/x.py: line 3") == "/usr/lib/python3/x.py: line 3"
