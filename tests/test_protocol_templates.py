"""Every template can be sealed with real inputs, and its schedule is the golden one."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pytest
from campaign_parts import RIGHT, blocking, minilm, rows, template, write_jsonl

from gpucost_tui.campaign.create import Inputs, create
from gpucost_tui.campaign.seal import seal
from gpucost_tui.campaign.slots import schedule
from gpucost_tui.campaign.survey import survey
from gpucost_tui.protocol.load import Source, parse, template_names
from gpucost_tui.protocol.model import Protocol
from gpucost_tui.protocol.rules import problems

_MODEL = {"classification-batch": "demo", "classification-precision": "demo"}


def model_for(name: str) -> str:
    return _MODEL.get(name) or str(minilm())


@pytest.mark.parametrize("name", template_names())
def test_a_template_lacks_the_right_of_use_and_the_model_alone(name: str) -> None:
    source = Source(template(name), f"{name}.toml")
    protocol = parse(source)
    places = [problem.where.partition(", [")[2] for problem in problems(protocol, source)]
    assert places == ["corpus] right_of_use", "model] source"]
    assert protocol.name == name


@pytest.mark.parametrize("name", template_names())
def test_a_template_is_sealed_with_real_inputs(tmp_path: Path, name: str) -> None:
    source = write_jsonl(tmp_path / "c.jsonl", rows())
    given = Inputs(name, [str(source)], model_for(name), settings=[RIGHT])
    campaign = create(tmp_path / "c", given)
    assert blocking(campaign) == []
    found = survey(campaign)
    noted = ["stratum "] if name.startswith("classification") else []  # 14 texts, not 1000
    assert [p.what.split("'")[0] for p in found.problems] == noted
    manifest, _ = seal(campaign)
    assert manifest.protocol.measurement.rounds == 5


@pytest.mark.parametrize("name", template_names())
def test_a_template_explains_itself_briefly(name: str) -> None:
    text = template(name)
    comments = re.findall(r"(?m)(?:^|\s)# (.*)$", text)
    assert len(comments) >= 15 and text.startswith("# ")
    assert all(
        len(line) <= 110 or line.startswith(("question", "desc")) for line in text.split("\n")
    )
    # settings in comments are settings: they can be switched on
    for line in re.findall(r"(?m)^# ([a-z_]+ = .*?)(?:\s+#.*)?$", text):
        parse(Source(text.replace(f"# {line}", line), "x"))


@pytest.mark.parametrize("name", template_names())
def test_every_table_of_a_protocol_stands_in_a_template(name: str) -> None:
    told = set(tomllib.loads(template(name)))
    assert told == set(Protocol.model_fields) - {"parent"}


def test_the_example_of_r12_and_r18() -> None:
    protocol = parse(Source(template(), "x"))
    strata = [(s.name, s.entries) for s in protocol.corpus.strata]
    assert strata == [("short", 600), ("medium", 300), ("long", 100)]
    assert [protocol.settings(v).batch_size for v in protocol.order()] == [1, 4, 8]


def test_the_golden_rotation(golden: Path) -> None:
    right = json.loads((golden / "rotation.json").read_text())
    for name in ("classification-batch", "embedding-batch"):
        protocol = parse(Source(template(name), "x"))
        assert list(protocol.order()) == right["variants"]
        assert protocol.measurement.rounds == right["rounds"]
        slots = schedule(protocol)
        rounds = [
            [slot.variant for slot in slots if slot.round == number]
            for number in range(1, right["rounds"] + 1)
        ]
        assert rounds == right["order"]
        assert [slot.slot for slot in slots] == list(range(1, len(slots) + 1))
        before = [slot.variant for slot in slots if slot.round == 0]
        assert before == (["batch-1"] if name == "embedding-batch" else [])
