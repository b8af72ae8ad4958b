"""What a check finds in corpora, tuning data, answers and model before the seal."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from campaign_parts import blocking, edited, made, only, rows, write_jsonl
from test_seal_manifest import MODEL

from gpucost_tui.campaign.check import check
from gpucost_tui.campaign.create import Inputs, create
from gpucost_tui.campaign.describe import facts
from gpucost_tui.campaign.folder import Campaign
from gpucost_tui.campaign.seal import seal
from gpucost_tui.campaign.survey import survey
from gpucost_tui.campaign.unchanged import ensure_unchanged
from gpucost_tui.errors import Refused
from gpucost_tui.protocol.problem import Problem
from gpucost_tui.tasks import embedding


def notes(campaign: Campaign) -> list[Problem]:
    return [problem for problem in survey(campaign).problems if not problem.blocking]


def test_nothing_blocks_a_sound_campaign(tmp_path: Path) -> None:
    campaign = made(tmp_path / "c")
    assert blocking(campaign) == []
    found = check(campaign)
    assert found.blocking == [] and found.model_name == "demo"
    assert found.corpora["corpus"].entries == len(rows())


# -- R6: tuning data ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"id": rows()[2]["id"], "text": "another text"}, f"1 id (such as '{rows()[2]['id']}')"),
        ({"id": "t-1", "text": rows()[2]["text"]}, f"1 text (such as '{rows()[2]['id']}' = 't-1')"),
        ({"text": rows()[2]["text"]}, "line 2')"),
        ({"id": rows()[2]["id"], "text": rows()[2]["text"]}, "1 id (such"),
    ],
)
def test_r6_tuning_data_that_overlaps(tmp_path: Path, row: dict[str, Any], said: str) -> None:
    tuning = write_jsonl(tmp_path / "t.jsonl", [{"id": "free", "text": "of its own"}, row])
    campaign = made(tmp_path / "c", tuning=[str(tuning)])
    problem = only(blocking(campaign))
    assert said in problem.what and "(R6)" in problem.what
    assert problem.where == "corpus 'corpus'"
    with pytest.raises(Refused, match="R6"):
        seal(campaign)


def test_r6_what_is_declared_is_what_is_there(tmp_path: Path) -> None:
    tuning = write_jsonl(tmp_path / "t.jsonl", [{"text": "of its own"}])
    campaign = made(tmp_path / "c", tuning=[str(tuning)])
    assert survey(campaign).tuning is not None
    assert (
        "and the campaign has some"
        in only(blocking(edited(campaign, 'declared = "files"', 'declared = "none"'))).what
    )
    edited(campaign, 'declared = "none"', 'declared = "files"')
    campaign.tuning_file.write_text("{}\n")
    assert "there is no text" in only(blocking(campaign)).what
    campaign.tuning_file.unlink()
    problem = only(blocking(campaign))
    assert "was not given (R6)" in problem.what and "[tuning] declared" in problem.where
    bare = made(tmp_path / "d")
    problem = only(blocking(edited(bare, "statement = ", "# statement = ")))
    assert "needs a statement" in problem.what and problem.where.endswith("[tuning]")


# -- corpora -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "there are no entries"),
        ('{"id":"a","text":"x","label":"praise"}\n' * 2, "(R7)"),
        ('{"id":"a","text":"x"}\n{"text":"y"}\n', "there is no id"),
        ('{"id":"a"', "not valid JSON"),
    ],
)
def test_r7_a_corpus_that_was_edited(tmp_path: Path, text: str, said: str) -> None:
    campaign = made(tmp_path / "c")
    campaign.corpus_file("corpus").write_text(text)
    problem = blocking(campaign)[0]
    assert said in problem.what + problem.fix and problem.where.startswith("corpus 'corpus'")
    campaign.corpus_file("corpus").unlink()
    assert "no such file" in blocking(campaign)[0].what


def test_r12_strata_and_classes_are_noted(tmp_path: Path) -> None:
    source = {"praise": 0.9, "refund": 0.1}
    campaign = made(tmp_path / "c", settings=[("corpus.source_distribution", source)])
    found = notes(campaign)
    strata = only([p for p in found if p.what.startswith("stratum ")])
    assert strata.what.count("are declared") == 3 and "(R12)" in strata.what
    assert "`entries` in [[corpus.strata]]" in strata.fix
    classes = [p.what for p in found if p.what.startswith("class ")]
    assert any("'refund' is in the source (10.0%) and not in the corpus" in w for w in classes)
    assert any("of stratum 'short'" in w or "stratum 'short'" in w for w in classes)
    assert all("declared limit of 5.0% (R12)" in what for what in classes)
    shown = "\n".join(facts(survey(campaign)))
    assert "90.0% of the source" in shown and "of short" in shown and "to" in shown
    assert blocking(campaign) == []


def test_columns_that_are_not_there(tmp_path: Path) -> None:
    bare = [{"id": row["id"], "text": row["text"]} for row in rows()]
    first, second = blocking(made(tmp_path / "c", bare))
    assert "no column 'label'" in first.what and first.where.startswith("corpus 'corpus'")
    assert "no column 'label'" in second.what and second.where.startswith("reference 'corpus'")
    other = [{"id": r["id"], "text": r["text"], "category": r["label"]} for r in rows()]
    first, _ = blocking(made(tmp_path / "e", other))
    assert "columns here: id, text, category" in first.what and "label_column" in first.fix
    groups = [("quality.subgroups.0.column", "language")]
    assert "no column 'language'" in only(blocking(made(tmp_path / "d", settings=groups))).what


# -- R27: answers ------------------------------------------------------------------------------


def _answers(tmp_path: Path, items: list[dict[str, Any]], **inputs: Any) -> Campaign:
    path = write_jsonl(tmp_path / "a.jsonl", items)
    return made(tmp_path / "c", reference=[str(path)], **inputs)


def test_r27_missing_and_extra_answers(tmp_path: Path) -> None:
    given = [{"id": r["id"], "answer": r["label"]} for r in rows()]
    first = given[0]["id"]
    problem = only(blocking(_answers(tmp_path, [*given[1:], {"id": "x", "answer": "praise"}])))
    assert f"1 id missing ({first}); 1 id not in the corpus (x)" in problem.what
    assert problem.where == "reference 'corpus', corpus.jsonl" and "(R27)" in problem.fix


def test_r27_an_entry_without_an_answer(tmp_path: Path) -> None:
    items = [{**row, "label": "" if i == 3 else row["label"]} for i, row in enumerate(rows())]
    found = blocking(made(tmp_path / "c", items))
    assert any("missing or empty" in p.what and "line 4" in p.where for p in found)


def test_r27_no_answers_at_all(tmp_path: Path) -> None:
    campaign = edited(made(tmp_path / "c"), 'column = "label"\n#', "#")
    problem = only(blocking(campaign))
    assert "no answers to hold predictions against (R27)" in problem.what


def test_answers_that_the_model_has_no_label_for(tmp_path: Path) -> None:
    items = [{**row, "label": f"x-{row['label']}"} for row in rows()]
    campaign = made(tmp_path / "c", items)
    problem = only(blocking(campaign))
    assert "no label for (14 entries)" in problem.what and "its labels: billing" in problem.what
    mapped = {item["label"]: item["label"][2:] for item in items}
    campaign = made(tmp_path / "d", items, settings=[("reference.label_map", mapped)])
    assert blocking(campaign) == []
    some = dict(list(mapped.items())[:-1])
    campaign = made(tmp_path / "e", items, settings=[("reference.label_map", some)])
    assert blocking(campaign) == []
    assert any("no label for" in p.what for p in notes(campaign))


def test_answers_of_the_wrong_kind(tmp_path: Path) -> None:
    vectors = [{"id": row["id"], "answer": [1.0, 0.5]} for row in rows()]
    problem = only(blocking(_answers(tmp_path, vectors)))
    assert problem.what == "the answers are vectors, and text-classification predicts labels"


# -- task, quality, model ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "after", "where", "what", "fix"),
    [
        ('name = "text-classification"', 'name = "translation"', "[task] name", "no task", "Known"),
        ('name = "text-classification"', "", "[task]", "the task has no name", "text-embedding"),
        ('name = "text-classification"', 'name = "text-classification"\npool = 1',
         "[task] pool", "has no option 'pool'", "scores"),
        ('name = "text-classification"', 'name = "text-classification"\nscores = "max"',
         "[task] scores", "impossible value 'max'", "scores"),
        ('metric = "accuracy"', 'metric = "f1"', "[quality] metric", "is no metric", "macro_f1"),
        ("threshold = 0.85", "threshold = 85", "[quality] threshold", "end at 1", "possible"),
        ("threshold = 0.70", "threshold = 70", "[quality.subgroups.0] threshold", "end at 1", ""),
        ("max_length = 128", "max_length = 100_000", "[execution] max_length",
         "max_length 100,000 is more than the model's", "Write at most"),
        ("max_length = 128", "max_length = 2", "[execution] max_length",
         "leaves no token", "Write at least 3"),
        ('source = "demo"', 'source = "./no-such"', "[model] source", "no such folder", ""),
        ('source = "demo"', 'source = "no/such@main"', "[model] source", "cache", ""),
    ],
)  # fmt: skip
def test_task_quality_and_model(
    tmp_path: Path, before: str, after: str, where: str, what: str, fix: str
) -> None:
    problem = only(blocking(edited(made(tmp_path / "c"), before, after)))
    assert what in problem.what and fix in problem.fix
    assert problem.where.startswith("protocol.toml, line ") and where in problem.where


def test_a_variant_longer_than_the_model(tmp_path: Path) -> None:
    campaign = made(
        tmp_path / "c",
        settings=[
            ("series.0.factor", "max_length"),
            ("series.0.variants", ["batch-1", "batch-4"]),
            ("variants", {"batch-1": {}, "batch-4": {"max_length": 4096}}),
        ],
    )
    problem = only(blocking(campaign))
    assert "max_length 4,096" in problem.what and "[variants.batch-4]" in problem.where
    assert survey(campaign).corpora["corpus"].truncated.keys() == {128, 4096}


def test_a_model_named_after_new_is_the_one_that_counts(tmp_path: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(MODEL, other)
    config = json.loads((other / "config.json").read_text())
    config["id2label"]["0"] = "renamed"
    (other / "config.json").write_text(json.dumps(config))
    campaign = edited(made(tmp_path / "c"), 'source = "demo"', f'source = "{other}"')
    found = survey(campaign)
    assert found.model is not None and found.model.folder == other
    assert any("renamed" in problem.what for problem in found.problems)
    seal(campaign)
    assert campaign.sources()["model"]["folder"] == str(other)
    assert campaign.manifest.json["protocol"]["model"]["source"] == ""


def test_a_model_that_is_damaged(tmp_path: Path) -> None:
    model = tmp_path / "m"
    shutil.copytree(MODEL, model)
    campaign = made(tmp_path / "c", model=str(model))
    weights = model / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-10])
    problem = only(blocking(campaign))
    assert "[model] source" in problem.where and "model.safetensors" in problem.where
    shutil.rmtree(model)
    assert "no such folder" in only(blocking(campaign)).what


COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture
def cached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The cache of a hub that is out of reach, with one model under one commit."""
    repository = tmp_path / "hub" / "models--acme--tiny"
    shutil.copytree(MODEL, repository / "snapshots" / COMMIT)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(COMMIT)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    return repository


def test_a_model_of_a_hub_is_sealed_at_a_commit(tmp_path: Path, cached: Path) -> None:
    campaign = made(tmp_path / "c", model="acme/tiny")
    pinned = f"acme/tiny@{COMMIT}"
    assert campaign.draft()[1].model.source == pinned
    for loose in ("acme/tiny", "acme/tiny@main"):
        edited(campaign, f'source = "{pinned}"', f'source = "{loose}"')
        problem = only(blocking(campaign))
        assert "revision is not fixed" in problem.what and pinned in problem.fix
        edited(campaign, f'source = "{loose}"', f'source = "{pinned}"')
    manifest, _ = seal(campaign)
    model = manifest.json["model"]
    assert (model["name"], model["revision"]) == ("acme/tiny", COMMIT)
    assert manifest.json["protocol"]["model"]["source"] == pinned
    campaign.sources_file.unlink()  # on another machine, with a cache of its own
    ensure_unchanged(Campaign.open(campaign.folder))
    assert campaign.sources()["model"]["folder"] == str(cached / "snapshots" / COMMIT)
    child = create(tmp_path / "child", Inputs(None, parent=campaign.folder))
    assert child.draft()[1].model.source == pinned
    edited(campaign, f'source = "{pinned}"', f'source = "acme/tiny@{"0" * 40}"')
    assert "the protocol is not what was sealed" in only(check(campaign).blocking).what
    shutil.rmtree(cached)
    campaign.sources_file.unlink()
    assert any("cache" in p.what for p in check(campaign).blocking)


def test_a_gpu_that_is_not_here_is_a_note(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class NoDriver:
        def devices(self) -> list[object]:
            return []

        def close(self) -> None:
            pass

    monkeypatch.setattr("gpucost_tui.campaign.check.find_driver", NoDriver)
    campaign = made(tmp_path / "c", settings=[("execution.device", "cuda:1")])
    found = [p for p in check(campaign).problems if "GPU" in p.what]
    assert not only(found).blocking and "[execution] device" in found[0].where
    seal(campaign)
    found = [p for p in check(campaign).problems if "GPU" in p.what]
    assert only(found).where.startswith("the sealed protocol")


def test_a_disk_that_is_too_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpucost_tui.campaign.check.free_bytes", lambda _: (1000, None))
    campaign = made(tmp_path / "c")
    problem = only(check(campaign).blocking)
    assert problem.where == "disk" and "1000 B are free" in problem.what
    with pytest.raises(Refused, match=r"of all open slots, .* need about .* 1000 B are free"):
        seal(campaign)
    assert campaign.sealed_hash() is None
    with monkeypatch.context() as roomy:
        roomy.setattr("gpucost_tui.campaign.check.free_bytes", lambda _: (1 << 40, None))
        seal(campaign)
    assert only(check(campaign).blocking).where == "disk"


# -- metrics with bounds of their own ----------------------------------------------------------


def embedded(folder: Path, **quality: Any) -> Campaign:
    corpus = write_jsonl(folder.with_name("texts.jsonl"), rows())
    settings = [("corpus.right_of_use", "made up here")]
    settings += [(f"quality.{key}", value) for key, value in quality.items()]
    return create(folder, Inputs("embedding-batch", [str(corpus)], model="demo", settings=settings))


def test_recall_is_refused_for_more_entries_than_it_is_computed_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    campaign = embedded(tmp_path / "c", metric="recall_at_k")
    assert blocking(campaign) == []
    monkeypatch.setattr(embedding, "MOST_VECTORS", 5)
    problem = only(blocking(campaign))
    assert "at most 5; 'corpus' has" in problem.what and "metric" in problem.where


def test_a_lower_bound_needs_a_metric_with_an_interval(tmp_path: Path) -> None:
    campaign = embedded(tmp_path / "c", metric="min_cosine", interval="lower-bound")
    problem = only(blocking(campaign))
    assert "no confidence interval is known for min_cosine" in problem.what
    assert "mean_cosine, recall_at_k" in problem.fix and "interval" in problem.where
