"""Tokens, user names and home folders reach neither journal, host record, table nor log."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
import runner_parts as parts

from gpucost_tui.campaign.folder import Campaign
from gpucost_tui.campaign.private import Private

USER = "planted-user"
TOKEN = "hf_PlantedTokenPlantedToken0123"
KEY = "planted:secret/value"


def test_nothing_private_is_left_in_a_campaign(tmp_path: Path) -> None:
    home = tmp_path / "home" / USER
    made = parts.campaign(tmp_path / "c", measurement__rounds=1)
    shutil.copytree(made.folder, home / "c")
    made = Campaign(home / "c")
    (home / ".cache/huggingface").mkdir(parents=True)
    (home / ".cache/huggingface/token").write_text("stored-in-a-file-0123456789\n")
    said = (
        f"can't read {home}/secrets.txt of {USER} with {TOKEN} or {KEY} or "
        f"stored-in-a-file-0123456789 at https://{USER}:pw@host/x and /home/another-user/y "
        f"in {made.folder}/corpus/corpus.jsonl: \ud800"
    )
    fail = {"fail": {"kind": "raise", "after": 4, "text": said}}
    environment = {
        "HOME": str(home),
        "USER": USER,
        "LOGNAME": USER,
        "HF_TOKEN": TOKEN,
        "AWS_SECRET_ACCESS_KEY": KEY,
        "CUDA_VISIBLE_DEVICES": TOKEN,
    }
    before = dict(os.environ)
    os.environ.pop("HF_HOME", None)
    try:
        script = {"attempts": {"1": fail, "2": {"fail": {"kind": "segfault", "after": 4}}}}
        done = parts.gpucost("run", made.folder, "--detach", script=script, **environment)
        assert done.returncode == 0, done.stderr
        parts.until(lambda: parts.nobody_left(made))
    finally:
        os.environ.clear()
        os.environ.update(before)
    parts.sound(made, [1, 2, 3])
    row = parts.rows(made)[0]
    assert row["failure"] == "error"
    error = parts.state(made).attempts[1].error or ""
    assert "~/secrets.txt" in error
    assert "<campaign>/corpus/corpus.jsonl" in error
    assert (made.folder / "logs/child.log").stat().st_size > 0, "the crash left its words"
    looked = 0
    for file in made.folder.rglob("*"):
        if file.is_dir() or file.name in ("sources.json", "protocol.toml"):
            continue  # where the model lies on this machine; no part of a dossier
        content = file.read_bytes()
        for secret in (TOKEN, KEY, "another-user", "stored-in-a-file", "pw@", USER):
            assert secret.encode() not in content, f"{secret} in {file.name}"
        looked += 1
    assert looked > 12


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
    }
    assert Private(Path("/home/ann/run/c"), environ).hide(text) == shown


def test_a_home_that_is_the_root_hides_no_path() -> None:
    private = Private(Path("/c"), {"HOME": "/", "USER": ""})
    assert private.hide("/usr/lib/python3/x.py: line 3") == "/usr/lib/python3/x.py: line 3"
