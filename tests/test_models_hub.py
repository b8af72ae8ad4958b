"""The hub and its cache: the real client against a small server that speaks the hub's language."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import numpy as np
import pytest
from safetensors.numpy import save

COMMIT = "0123456789abcdef0123456789abcdef01234567"
OLD = "89abcdef0123456789abcdef0123456789abcdef"
NAME = "acme/tiny-model"


def model_files() -> dict[str, bytes]:
    config = {"architectures": ["BertForSequenceClassification"], "id2label": {"0": "a", "1": "b"}}
    return {
        "config.json": json.dumps(config).encode(),
        "tokenizer.json": b'{"model": {"type": "WordLevel", "vocab": {}}}',
        "model.safetensors": save({"w": np.zeros((4, 2), dtype=np.float32)}),
        "1_Pooling/config.json": b'{"pooling_mode_cls_token": true}',
        "pytorch_model.bin": b"\x80never downloaded",
        "README.md": b"never downloaded",
        "onnx/model.onnx": b"never downloaded",
        "evil[1].py": b"never downloaded",
    }


@dataclass
class FakeHub:
    """What the server answers, and what it was asked."""

    files: dict[str, bytes] = field(default_factory=model_files)
    gated: int | None = None  # status of a download of a gated model
    status: int | None = None  # every answer
    message: str = ""
    asked: list[str] = field(default_factory=list)
    url: str = ""


def handler(hub: FakeHub) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: Any) -> None:
            """Be quiet."""

        def do_HEAD(self) -> None:
            self._answer(body=False)

        def do_GET(self) -> None:
            self._answer(body=True)

        def _answer(self, *, body: bool) -> None:
            path = unquote(urlsplit(self.path).path)
            hub.asked.append(f"{self.command} {path}")
            status, headers, data = route(hub, path)
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            if body:
                self.wfile.write(data)

    return Handler


def route(hub: FakeHub, path: str) -> tuple[int, dict[str, str], bytes]:
    if hub.status is not None:
        return hub.status, {"X-Error-Message": hub.message} if hub.message else {}, b"{}"
    found = re.fullmatch(rf"/api/models/{NAME}(?:/revision/(.+)|/(tree)/(.+))?", path)
    if found and found[2]:
        tree = [
            {"type": "file", "path": name, "size": len(data), "oid": hashlib.sha1(data).hexdigest()}
            for name, data in hub.files.items()
        ]
        return 200, {"Content-Type": "application/json"}, json.dumps(tree).encode()
    if found:
        commit = {None: COMMIT, "main": COMMIT, COMMIT: COMMIT, "v1": OLD, OLD: OLD}.get(found[1])
        if commit is None:
            return 404, {"X-Error-Code": "RevisionNotFound"}, b"{}"
        siblings = [{"rfilename": name} for name in hub.files]
        return 200, {}, json.dumps({"id": NAME, "sha": commit, "siblings": siblings}).encode()
    found = re.fullmatch(rf"/{NAME}/resolve/([0-9a-f]{{40}})/(.+)", path)
    if not found:
        return 404, {"X-Error-Code": "RepoNotFound"}, b"{}"
    if hub.gated and found[2] != "README.md":
        return hub.gated, {"X-Error-Code": "GatedRepo"}, b"{}"
    data = hub.files.get(found[2])
    if data is None:
        return 404, {"X-Error-Code": "EntryNotFound"}, b"{}"
    tag = hashlib.sha256(data).hexdigest()
    return 200, {"X-Repo-Commit": found[1], "ETag": f'"{tag}"'}, data


@pytest.fixture
def hub() -> Iterator[FakeHub]:
    state = FakeHub()
    with ThreadingHTTPServer(("127.0.0.1", 0), handler(state)) as server:
        state.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield state
        server.shutdown()
        thread.join()


CLIENT = """
import dataclasses, json, sys
from gpucost_tui.errors import GpucostError
from gpucost_tui.models.source import resolve
try:
    found = resolve(sys.argv[1], **json.loads(sys.argv[2]))
    print(json.dumps(dataclasses.asdict(found), default=str))
except GpucostError as error:
    print(json.dumps({"error": str(error), "kind": type(error).__name__}))
"""


def ask(home: Path, url: str, source: str = NAME, **options: Any) -> dict[str, Any]:
    """Resolve in a fresh process: huggingface_hub reads its settings when it is imported."""
    environ = {k: v for k, v in os.environ.items() if not k.startswith(("HF_", "TRANSFORMERS_"))}
    environ |= {"HF_HOME": str(home), "HF_ENDPOINT": url, "HF_HUB_DISABLE_TELEMETRY": "1"}
    environ |= {key: options.pop(key) for key in list(options) if key.startswith("HF_")}
    command = [sys.executable, "-c", CLIENT, source, json.dumps(options)]
    done = subprocess.run(command, capture_output=True, text=True, env=environ, timeout=120)
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    if "error" in answer:
        assert "Traceback" not in answer["error"] and "\n" not in answer["error"]
    return answer


def test_a_name_becomes_a_commit_and_only_what_is_needed_comes(
    hub: FakeHub, tmp_path: Path
) -> None:
    found = ask(tmp_path, hub.url)
    assert found["kind"] == "hub" and found["name"] == NAME and found["revision"] == COMMIT
    assert [file["path"] for file in found["files"]] == [
        "1_Pooling/config.json",
        "config.json",
        "model.safetensors",
        "tokenizer.json",
    ]
    weights = next(file for file in found["files"] if file["path"] == "model.safetensors")
    assert weights["sha256"] == hashlib.sha256(hub.files["model.safetensors"]).hexdigest()
    assert found["download_s"] > 0 and found["notes"] == []
    asked = " ".join(hub.asked)
    for name in ("pytorch_model.bin", "README.md", "onnx", "evil"):
        assert f"{COMMIT}/{name}" not in asked
    again = ask(tmp_path, hub.url)
    assert again["download_s"] is None and again["sha256"] == found["sha256"]
    # A tag is another commit; a whole commit is itself.
    assert ask(tmp_path, hub.url, f"{NAME}@v1")["revision"] == OLD
    assert ask(tmp_path, hub.url, f"{NAME}@{COMMIT}")["revision"] == COMMIT


WATCHING = """
import json, sys
from gpucost_tui import watch
from gpucost_tui.models.source import resolve
watch._EVERY_S = 0.0
steps, cancel = [], sys.argv[2] == "cancel"
def tell(step):
    steps.append([step.stage, step.done, step.total, step.unit])
    if cancel and step.stage.startswith("Downloading") and step.done:
        raise watch.Cancelled
try:
    resolve(sys.argv[1], watch=watch.Told(tell))
    print(json.dumps(steps))
except watch.Cancelled:
    print(json.dumps(steps[-1]))
"""


@pytest.mark.parametrize("how", ["whole", "cancel"])
def test_a_download_is_told_and_ends_where_it_stands(
    hub: FakeHub, tmp_path: Path, how: str
) -> None:
    hub.files["model.safetensors"] = save({"w": np.zeros((1 << 20, 8), dtype=np.float32)})
    environ = {k: v for k, v in os.environ.items() if not k.startswith(("HF_", "TRANSFORMERS_"))}
    environ |= {"HF_HOME": str(tmp_path), "HF_ENDPOINT": hub.url, "HF_HUB_DISABLE_TELEMETRY": "1"}
    command = [sys.executable, "-c", WATCHING, NAME, how]
    done = subprocess.run(command, capture_output=True, text=True, env=environ, timeout=120)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    if how == "cancel":
        assert told[0] == f"Downloading '{NAME}'" and told[3] == "bytes"
        assert 0 < told[1] < 1 << 25  # of 32 MiB
        return
    last = {stage: (count, total) for stage, count, total, _ in told}
    assert next(iter(last)) == f"Asking the hub for '{NAME}'"
    assert last[f"Downloading '{NAME}'"][0] >= 1 << 25
    assert last["Reading the model's files"][0] == last["Reading the model's files"][1]


def test_the_cache_serves_offline_and_without_a_network(hub: FakeHub, tmp_path: Path) -> None:
    found = ask(tmp_path, hub.url)
    hub.asked.clear()
    offline = ask(tmp_path, hub.url, HF_HUB_OFFLINE="1")
    assert offline["sha256"] == found["sha256"] and offline["revision"] == COMMIT
    assert offline["notes"] == ["taken from the cache: downloads are switched off"]
    assert ask(tmp_path, hub.url, f"{NAME}@{COMMIT}", offline=True)["sha256"] == found["sha256"]
    assert hub.asked == []
    with closed_port() as url:
        dark = ask(tmp_path, url)
    assert dark["sha256"] == found["sha256"] and "can't be reached" in dark["notes"][0]
    hub.status = 503
    assert ask(tmp_path, hub.url)["revision"] == COMMIT


def test_offline_and_not_cached(hub: FakeHub, tmp_path: Path) -> None:
    lost = ask(tmp_path, hub.url, HF_HUB_OFFLINE="1")
    assert lost["kind"] == "EnvironmentLacks"
    assert lost["error"].startswith(f"{NAME}: the model is not in the Hugging Face cache")
    assert "HF_HUB_OFFLINE" in lost["error"] and hub.asked == []


def test_no_network(tmp_path: Path) -> None:
    with closed_port() as url:
        lost = ask(tmp_path, url)
    assert lost["kind"] == "EnvironmentLacks" and "can't be reached" in lost["error"]


def test_a_cache_that_cannot_be_written(hub: FakeHub, tmp_path: Path) -> None:
    (tmp_path / "hub").write_text("a file where a folder should be")
    lost = ask(tmp_path, hub.url)
    assert lost["kind"] == "EnvironmentLacks" and "the cache can't be written" in lost["error"]
    below = ask(tmp_path / "hub" / "deeper", hub.url)
    assert below["kind"] == "EnvironmentLacks" and "HF_HOME" in below["error"]


def test_an_incomplete_cache_is_not_a_model(hub: FakeHub, tmp_path: Path) -> None:
    ask(tmp_path, hub.url)
    for path in tmp_path.rglob("snapshots/*/model.safetensors"):
        path.unlink()
    lost = ask(tmp_path, hub.url, HF_HUB_OFFLINE="1")
    assert lost["kind"] == "InputError" and "model.safetensors is missing" in lost["error"]
    assert ask(tmp_path, hub.url)["revision"] == COMMIT  # online it is mended
    for path in tmp_path.rglob("snapshots/*/1_Pooling/config.json"):
        path.unlink()
    lost = ask(tmp_path, hub.url, HF_HUB_OFFLINE="1")
    assert lost["kind"] == "EnvironmentLacks" and "only partly in" in lost["error"]


@pytest.mark.parametrize("status", [401, 403])
def test_a_gated_model(hub: FakeHub, tmp_path: Path, status: int) -> None:
    hub.gated = status
    without = ask(tmp_path, hub.url)
    assert without["kind"] == "EnvironmentLacks"
    assert "gated, and no token is set" in without["error"] and "HF_TOKEN" in without["error"]
    refused = ask(tmp_path, hub.url, HF_TOKEN="hf_secretsecret")
    assert "your token has no access" in refused["error"]
    assert "hf_secret" not in refused["error"]


def test_unknown_names_and_revisions(hub: FakeHub, tmp_path: Path) -> None:
    unknown = ask(tmp_path, hub.url, "acme/nothing")
    assert unknown["kind"] == "InputError" and "no such model" in unknown["error"]
    revision = ask(tmp_path, hub.url, f"{NAME}@v9")
    assert revision["kind"] == "InputError"
    assert revision["error"].startswith(f"{NAME}@v9: the model has no such revision")
    hub.status, hub.message = 401, "Invalid credentials in Authorization header"
    token = ask(tmp_path, hub.url, HF_TOKEN="hf_wrong")
    assert token["kind"] == "EnvironmentLacks" and "token that is set" in token["error"]


def test_a_truncated_download_is_not_taken(hub: FakeHub, tmp_path: Path) -> None:
    hub.files["model.safetensors"] = hub.files["model.safetensors"][:-3]
    broken = ask(tmp_path, hub.url)
    assert broken["kind"] == "InputError" and "truncated or corrupt" in broken["error"]


def test_pickles_only_where_allowed(hub: FakeHub, tmp_path: Path) -> None:
    del hub.files["model.safetensors"]
    refused = ask(tmp_path, hub.url)
    assert refused["kind"] == "InputError" and "safetensors" in refused["error"]
    assert not any("pytorch_model.bin" in line for line in hub.asked)
    taken = ask(tmp_path, hub.url, allow_pickle=True)
    assert "pytorch_model.bin" in [file["path"] for file in taken["files"]]
    assert any("pickle" in note for note in taken["notes"])


def test_a_repository_without_a_model(hub: FakeHub, tmp_path: Path) -> None:
    hub.files = {"README.md": b"x"}
    assert "no file of a model" in ask(tmp_path, hub.url)["error"]


@contextlib.contextmanager
def closed_port() -> Iterator[str]:
    """Hold a port that nobody listens on."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{held.getsockname()[1]}"
