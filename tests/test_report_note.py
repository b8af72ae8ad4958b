"""The decision note: complete for whoever pays, the same from one journal, steered by nobody."""

from __future__ import annotations

import json
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import dossier_support as support
import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from gpucost_tui.analysis.stack import WHOLE
from gpucost_tui.campaign.acts import RealRental
from gpucost_tui.campaign.committing import Pack, commit, real_rental, spend
from gpucost_tui.campaign.excluding import exclude, withdraw
from gpucost_tui.campaign.fold import fold
from gpucost_tui.campaign.folder import Campaign
from gpucost_tui.campaign.journal import Journal
from gpucost_tui.campaign.seal import seal
from gpucost_tui.dossier.verify import verify
from gpucost_tui.environment.host import host_id
from gpucost_tui.errors import Refused
from gpucost_tui.files import canonical_json, sha256_bytes
from gpucost_tui.pricing import catalogue
from gpucost_tui.report.blocks import Bullets, Code, Document, Heading, Paragraph, Strong, Table
from gpucost_tui.report.html import page
from gpucost_tui.report.markdown import markdown
from gpucost_tui.report.note import write_report

#: Text that steers Markdown, HTML, tables, terminals and readers.
HOSTILE = (
    "<script>alert(1)</script> <img src=x onerror=alert(1)> [here](javascript:alert(1)) "
    "![x](http://evil.example/p.png) **bold** `code` | cell | <!-- --> &amp; &lt; ~~x~~ $x$ "
    "http://evil.example www.evil.example me@evil.example </td></table></main></style> \"' "
    "\x1b[31mred\x1b]0;t\x07 \x9b2J \u202egnp.exe\u202c \u2066x\u2069 # no heading"
)
_FORBIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_PARSER = MarkdownIt("commonmark").enable(["table", "strikethrough"])


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished campaign whose every free text is hostile."""
    line = _FORBIDDEN.sub("", HOSTILE)[:200]
    folder = tmp_path_factory.mktemp("hostile") / "camp"
    campaign = support.finished(
        folder,
        script={
            **support.SCRIPT,
            "attempts": {"2": {"fail": {"kind": "raise", "after": 8, "text": HOSTILE}}},
        },
        decision__question=HOSTILE + "\n# A heading\n- an item\n1. one\n=====",
        corpus__right_of_use=HOSTILE,
        name=line,
        deliverables=[{"name": "corpus", "description": HOSTILE}],
        series=[
            {
                "name": _FORBIDDEN.sub("", line),
                "factor": "batch_size",
                "variants": list(support.VARIANTS),
            }
        ],
        exclusion_causes=[{"name": "noise", "description": HOSTILE}],
    )
    rental = RealRental(None, None, None, line)
    commit(campaign, Pack("rtx-4090", 7, 1), catalogue.load(), rental)
    names = [f"{variant} on 1 lot of rtx-4090" for variant in support.VARIANTS]
    for name in _configurations(campaign):
        spend(campaign, name, "1.00", HOSTILE, _configurations(campaign))
    assert names
    _exclude_all(campaign)
    write_report([folder])
    return folder


def _configurations(campaign: Campaign) -> list[str]:
    from gpucost_tui.analysis.configurations import configurations
    from gpucost_tui.analysis.together import read_together

    return [one.name for one in configurations(read_together([campaign.folder]))]


def _exclude_all(campaign: Campaign) -> None:
    """Leave out one attempt for an interval in which it alone ran."""
    from datetime import datetime, timedelta

    row = next(a.row for a in _state(campaign).attempts.values() if a.number == 3)
    begun = datetime.fromisoformat(row["started_at"])
    ended = datetime.fromisoformat(row["ended_at"])
    exclude(campaign, [3], "noise", begun, ended - timedelta(microseconds=1))


def _state(campaign: Campaign) -> Any:
    from gpucost_tui.campaign.fold import fold

    return fold(campaign.events())


# -- hostile text ------------------------------------------------------------------------------


def test_hostile_text_steers_no_markdown(hostile: Path) -> None:
    text = (hostile / "report/decision.md").read_text("utf-8")
    assert not _FORBIDDEN.search(text.replace("\n", ""))
    kinds = set()
    for token in _PARSER.parse(text):
        kinds |= {token.type, *(child.type for child in token.children or ())}
    assert not kinds & {
        "html_inline",
        "html_block",
        "link_open",
        "image",
        "s_open",
        "em_open",
        "fence",
        "code_block",
        "ordered_list_open",
        "hr",
    }
    headings = re.findall(r"(?m)^#+ .*$", text)
    assert not any("no heading" in h and not h.startswith("# Decision note") for h in headings)
    codes = [
        child.content
        for token in _PARSER.parse(text)
        for child in token.children or ()
        if child.type == "code_inline"
    ]
    assert all(re.fullmatch(r"[0-9a-f]{64}|gpucost verify DIR.*", code) for code in codes)


def test_hostile_text_is_readable_in_the_rendered_markdown(hostile: Path) -> None:
    shown = _plain(_PARSER.render((hostile / "report/decision.md").read_text("utf-8")))
    for part in ("<script>alert(1)</script>", "[here](javascript:alert(1))", "| cell |", "&amp;"):
        assert part in shown
    assert r"\x1b[31mred" in shown
    assert r"\u202egnp.exe" in shown


class _Page(HTMLParser):
    """Collects what a page is made of."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: set[str] = set()
        self.attributes: list[tuple[str, str, str | None]] = []
        self.text: list[str] = []
        self.open: list[str] = []
        self.wrong: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes += [(tag, name, value) for name, value in attrs]
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes += [(tag, name, value) for name, value in attrs]

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.wrong.append(tag)

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def _read(html: str) -> _Page:
    found = _Page()
    found.feed(html)
    found.close()
    return found


def _plain(html: str) -> str:
    return "".join(_read(html).text)


def test_hostile_text_steers_no_page(hostile: Path) -> None:
    html = (hostile / "report/report.html").read_text("utf-8")
    assert not _FORBIDDEN.search(html.replace("\n", ""))
    found = _read(html)
    assert not found.tags & {"script", "img", "a", "iframe", "link", "object", "base", "form"}
    for tag, name, value in found.attributes:
        assert not name.startswith("on"), (tag, name)
        assert name not in ("src", "href", "srcset", "action", "xlink:href"), (tag, name)
        assert "url(" not in (value or ""), (tag, value)
    assert "@import" not in html
    shown = _plain(html)
    assert "<script>alert(1)</script>" in shown
    assert r"\u202egnp.exe" in shown


def test_the_page_is_well_formed(hostile: Path) -> None:
    found = _read((hostile / "report/report.html").read_text("utf-8"))
    assert found.wrong == []
    assert found.open == []


def test_a_hostile_campaign_verifies(hostile: Path) -> None:
    answer = verify([hostile])
    assert answer.ok, answer.findings.differences
    assert answer.findings.checked["notes"] == 2


@pytest.mark.skipif(shutil.which("chromium") is None, reason="no Chromium on this machine")
def test_a_real_browser_shows_the_page(hostile: Path, tmp_path: Path) -> None:
    import subprocess

    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"]
    flags += ["--disable-background-networking", "--disable-component-update", "--disable-sync"]
    address = (hostile / "report/report.html").as_uri()
    done = subprocess.run(
        ["chromium", *flags, f"--user-data-dir={tmp_path}", "--dump-dom", address],
        capture_output=True,
        timeout=120,
        check=True,
    )
    found = _read(done.stdout.decode())
    assert "svg" in found.tags
    assert not found.tags & {"script", "img", "a"}
    assert "<script>alert(1)</script>" in "".join(found.text)


_TEXT = st.text(st.characters(codec="utf-8"), min_size=1, max_size=40)
_PIECE = st.one_of(_TEXT, _TEXT.map(Strong), _TEXT.map(Code))


@example("0", [Strong("\t0")], ["0", "0"])
@settings(max_examples=150, deadline=None)
@given(_TEXT, st.lists(_PIECE, min_size=1, max_size=3), st.lists(_TEXT, min_size=2, max_size=2))
def test_no_text_leaves_its_place(title: str, pieces: list[Any], cells: list[str]) -> None:
    document = Document(title)
    document.add(
        Heading(1, f"T{title}"),
        Paragraph(pieces),
        Bullets([pieces]),
        Table(["a", "b"], [cells]),
        Paragraph("The end."),
    )
    html = _PARSER.render(markdown(document))
    tags = re.findall(r"<(/?[a-z0-9]+)", html)
    allowed = {"h1", "p", "ul", "li", "table", "thead", "tbody", "tr", "th", "td", "strong", "code"}
    assert {tag.lstrip("/") for tag in tags} <= allowed
    assert tags.count("tr") == 2
    assert tags.count("td") == 2
    assert tags.count("h1") == 1
    assert tags.count("ul") == 1
    own = _read(page(document))
    assert own.wrong == []
    assert own.tags <= allowed | {"html", "head", "body", "main", "title", "style", "meta", "div"}


# -- what a note says --------------------------------------------------------------------------


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    causes = [{"name": "noise", "description": "Another process used the device."}]
    campaign = support.finished(tmp_path_factory.mktemp("sound") / "camp", exclusion_causes=causes)
    return campaign.folder


@pytest.fixture
def folder(sound: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(sound, tmp_path / "camp"))


def told(folder: Path, *others: Path) -> str:
    """Write the note and return it as one line of plain text."""
    note = write_report([folder, *others]).note.read_text("utf-8")
    return " ".join(_plain(_PARSER.render(note)).split())


def test_an_undecided_note_says_why_and_what_stays_open(folder: Path) -> None:
    text = told(folder)
    assert "Question: Which batch size processes the whole corpus" in text
    assert "Answer: undecided: no configuration is admissible." in text
    assert "no commitment is recorded" in text
    assert "the window is not known (export)" in text
    assert "batch-1 and batch-8: which of the two is faster is not settled." in text
    assert "This is a synthetic demonstration" in text
    assert "Quality: synthetic demonstration." in text
    for limit in ("Interactive serving", "Training", "Other data", "no MLPerf run"):
        assert limit in text


def test_a_note_has_both_hashes(folder: Path) -> None:
    text = told(folder)
    document = verify([folder]).to_json()
    assert f"Manifest {document['manifest']}" in text
    assert f"Journal head {document['head']}" in text
    assert f"gpucost verify DIR --head {document['head']}" in text


def test_quality_with_its_interval_and_flips_stand_in_the_note(tmp_path: Path) -> None:
    script = {"attempts": {"1": {"accuracy": 1.0}, "2": {"accuracy": 0.6}}}
    campaign = support.finished(tmp_path / "camp", script=script)
    text = told(campaign.folder)
    first, second, *_ = (one.row for one in fold(campaign.events()).attempts.values())
    frames = (pl.read_parquet(campaign.folder / r["predictions_path"]) for r in (first, second))
    one, other = (dict(frame.select("id", "prediction").rows()) for frame in frames)
    flipped = [name for name in one if one[name] != other[name]]
    said = f"{first['variant']} and {second['variant']}, deliverable corpus"
    assert f"{said}" in text and f": {len(flipped)} of {len(one)} entries." in text
    assert f"Their ids: {flipped[0]}" in text
    assert f"{second['quality']:.4f}" in text and "(95 %, wilson)" in text
    assert "by the seal, it decides nothing" in text
    write_report([campaign.folder])
    assert verify([campaign.folder]).to_json()["differences"] == []


def test_failures_and_exclusions_are_all_named(folder: Path) -> None:
    campaign = Campaign(folder)
    text = told(folder)
    assert "2 batch-4 1 failed, out-of-memory 8 of 24 scripted out-of-memory" in text
    assert "No attempt was excluded." in text
    _exclude_all(campaign)
    text = told(folder)
    assert "Attempt 3 is excluded for noise, from" in text
    assert "The sealed cause: Another process used the device." in text
    withdraw(campaign, [3])
    text = told(folder)
    assert "Attempt 3: an exclusion for noise was withdrawn again." in text


def test_a_decided_note_names_setting_pack_and_load(tmp_path: Path) -> None:
    campaign = support.finished(
        tmp_path / "camp",
        script={**support.SCRIPT, "attempts": {"2": {"ids": "missing"}, "3": {"ids": "missing"}}},
    )
    commit(campaign, Pack("rtx-4090", 7, 1), catalogue.load())
    Journal(campaign.folder).append("exported", {"seconds": 3.0})
    text = told(campaign.folder)
    assert "Answer: batch-1 on 1 lot of rtx-4090, for 110.00 USD committed (110.00 USD per" in text
    assert "Settings: batch_size 1, max_length 128, dtype float32" in text
    assert "Rented as: 1 lot of rtx-4090 for 7 days from iteragpu, 110.00 USD a lot" in text
    assert "(measured); the deadline is 168 h" in text
    assert "corpus 24 0 long, 16 medium, 8 short" in text
    assert "completed, rejected for identifiers" in text


def test_the_real_rental_stands_beside_the_plan(folder: Path) -> None:
    from datetime import UTC, datetime
    from decimal import Decimal

    since, until = datetime(2026, 9, 28, 9, tzinfo=UTC), datetime(2026, 10, 5, 9, tzinfo=UTC)
    rental = real_rental(since, until, Decimal("112.50"), "INV-7")
    commit(Campaign(folder), Pack("rtx-4090", 7, 1), catalogue.load(), rental)
    text = told(folder)
    row = "1 lot of rtx-4090 for 7 days iteragpu 1 110.00 2026-09-28T09:00:00Z 2026-10-05T09:00:00Z"
    assert f"{row} 112.50 INV-7" in text
    assert "112.50 USD were paid, 110.00 USD are committed" in text


def another_host(folder: Path, torch: str) -> None:
    """Let a campaign have run on a host with another torch."""
    (path,) = (folder / "hosts").glob("*.json")
    record = json.loads(path.read_bytes())
    record["software"]["torch"] = torch
    name = host_id(record)
    assert name != path.stem
    (folder / "hosts" / f"{name}.json").write_text(json.dumps(record))
    path.unlink()
    told = json.loads(json.dumps(support.lines(folder)).replace(path.stem, name))
    sha256 = sha256_bytes(canonical_json(record))
    support.event(told, "host_seen")["data"]["record_sha256"] = sha256
    support.rewrite(folder, told)


def test_differing_stacks_are_named(tmp_path: Path) -> None:
    one = support.draft(tmp_path / "one")
    seal(one)
    other = Campaign(Path(shutil.copytree(one.folder, tmp_path / "other")))
    support.filled(one)
    support.filled(other)
    another_host(other.folder, "2.99.0")
    text = told(one.folder, other.folder)
    assert WHOLE in text
    assert "software.torch" in text
    assert "2.99.0" in text
    assert str(tmp_path) not in write_report([one.folder, other.folder]).note.read_text()
    # The joint note lies in the first campaign; alone it can't be recomputed.
    assert verify([one.folder, other.folder]).ok
    alone = verify([one.folder])
    assert any("covers 2 campaign folders" in said for said in alone.findings.not_checkable)


def test_the_same_journal_gives_the_same_note_anywhere(folder: Path, tmp_path: Path) -> None:
    first = write_report([folder])
    moved = Path(shutil.copytree(folder, tmp_path / "elsewhere" / "another name"))
    second = write_report([moved])
    assert first.note.read_bytes() == second.note.read_bytes()
    assert first.page.read_bytes() == second.page.read_bytes()


def test_an_unsealed_campaign_has_no_note(tmp_path: Path) -> None:
    campaign = support.draft(tmp_path / "camp")
    with pytest.raises(Refused):
        write_report([campaign.folder])
    assert not (campaign.folder / "report").exists()


def test_a_sealed_campaign_without_a_run_has_one(tmp_path: Path) -> None:
    campaign = support.draft(tmp_path / "camp")
    seal(campaign)
    text = told(campaign.folder)
    assert "6 slots still open: the campaign is not finished." in text
    assert "No machine is recorded yet." in text
    assert verify([campaign.folder]).ok


def test_a_note_of_an_earlier_moment_is_stale_only_where_it_would_change(folder: Path) -> None:
    write_report([folder])
    Journal(folder).append("run_started", {"detached": False})
    Journal(folder).append("run_ended", {"why": "every slot is done"})
    from gpucost_tui.campaign.excluding import rebuild

    rebuild(Campaign(folder))
    assert verify([folder]).ok  # nothing that the note says has changed


@pytest.mark.parametrize("name", ["decision.md", "report.html"])
def test_of_a_note_of_another_version_the_answer_is_compared(folder: Path, name: str) -> None:
    write_report([folder])
    path = folder / "report" / name
    support.replace(path, "written by gpucost-tui ", "written by gpucost-tui 9.")
    support.replace(path, "What remains uncertain", "What is uncertain")
    answer = verify([folder])
    assert answer.ok
    assert any("only the answer was compared" in said for said in answer.findings.not_checkable)
    support.replace(path, "undecided", "decided")
    (one,) = verify([folder]).findings.differences
    assert one.where == f"report/{name}, answer"
    assert one.expected == "undecided, None USD"
