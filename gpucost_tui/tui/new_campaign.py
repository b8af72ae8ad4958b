"""The form for a campaign: it asks for what a template leaves open, and shows errors in place."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Button, Input, Label, Select, Static

from gpucost_tui.tui.form import Field
from gpucost_tui.tui.safe import filled, plain
from gpucost_tui.tui.work import Work, Worker

#: Field -> words by which an error of the core is known to concern it, the most telling first.
_CONCERNS = {
    "right": ("right_of_use",),
    "deadline": ("deadline_hours",),
    "budget": ("budget_usd",),
    "threshold": ("threshold",),
    "classes": ("label_column",),
    "answers": ("--reference", "[reference]", "reference"),
    "tuning": ("--tuning", "tuning"),
    "model": ("--model", "[model]", "model", "config.json", "tokenizer", "safetensors"),
    "folder": ("exists and is not empty", "can't be written"),
    "corpus": ("--corpus", "corpus", "column", "line "),
}
_MAKING = "making the campaign"


class NewCampaignDialog(Worker, ModalScreen[Path | None]):
    """Dismissed with the folder that was made, or none; ``values`` keeps what was typed.

    Args:
        here: Folder that names in the form start from.
        values: Field -> text, filled again when the form is opened again.
    """

    HELP = (
        "Tab goes from field to field. ctrl+s makes the campaign: its folder appears whole or not "
        "at all. What is wrong is said below the field it concerns. All of it can be edited in "
        "protocol.toml until the seal."
    )
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+s", "make", "Make", tooltip="Make the campaign"),
        Binding("escape", "close", "Cancel", tooltip="Cancel the making, or close the form"),
    ]
    CSS_PATH = "new_campaign.tcss"

    def __init__(self, here: Path, values: dict[str, str]) -> None:
        super().__init__()
        self._here, self._values = here, values
        self._defaults: dict[str, str] = {}

    def compose(self) -> ComposeResult:
        names = template_names()
        chosen = self._values.get("template", names[0])
        with Vertical(classes="dialog"):
            yield Label(filled("[b]Make a campaign[/b]  [$text-muted]ctrl+s makes it[/]"))
            with VerticalScroll(id="fields", can_focus=False):
                with Horizontal(id="template-line"):
                    yield Label("Template")
                    options = [(filled("$x", x=name), name) for name in names]
                    yield Select(
                        options, value=chosen, allow_blank=False, id="template", compact=True
                    )
                yield Static(id="question", classes="muted", markup=False)
                yield from self._fields()
            yield Static(id="said", markup=False)
            with Horizontal(classes="dialog-buttons"):
                yield Button("Cancel", id="no", compact=True)
                yield Button("Make it", id="yes", variant="primary", compact=True)

    def _fields(self) -> Iterator[Field]:
        def field(name: str, label: str, hint: str, *, path: bool = False) -> Field:
            value = self._values.get(name, "")
            return Field(name, label, hint, value, here=self._here if path else None)

        yield field("folder", "Folder", "a name for the new folder, such as my-campaign")
        yield field("corpus", "Corpus", "JSONL, CSV or Parquet (.gz too); a glob works", path=True)
        yield field("id", "Id column", "id")
        yield field("text", "Text column", "text")
        yield field("model", "Model", "a folder, org/name@revision, or demo", path=True)
        yield field("right", "Right of use", "why these texts may be used here; needed to seal")
        yield field("classes", "Class column", "column with each entry's class; may be empty")
        yield field("column", "Answer column", "column of the corpus with the answers")
        yield field("answers", "or answers file", "file with ids and a column answer", path=True)
        yield field("threshold", "Quality at least", "")
        yield field("deadline", "Deadline (hours)", "")
        yield field("budget", "Budget (USD)", "such as 500.00; empty: none")
        yield field("tuning", "Tuning data", "file, if a configuration was tuned", path=True)
        yield field("statement", "or statement", "that nothing was tuned")

    def on_mount(self) -> None:
        self._take_template(str(self.query_one(Select).value))
        self._field("folder").take_focus()

    def on_select_changed(self, event: Select.Changed) -> None:
        self._take_template(str(event.value))

    def _take_template(self, name: str) -> None:
        """Fill what the template has, where nothing else was typed."""
        raw = template(name)
        before, self._defaults = self._defaults, defaults(raw)
        for key, value in self._defaults.items():
            field = self._field(key)
            if field.value in ("", before.get(key, "")):
                field.value = value
        answers = raw["reference"]["kind"] != "variant"
        for key in ("classes", "column", "answers"):
            self._field(key).display = answers
        self.query_one("#question", Static).update(plain(raw["decision"]["question"]))

    def _field(self, name: str) -> Field:
        return self.query_one(f"#field-{name}", Field)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self.focus_next()

    def on_button_pressed(self, event: Button.Pressed) -> None:
        if event.button.id == "yes":
            self.action_make()
        else:
            self.action_close()

    def action_close(self) -> None:
        """Cancel the making, or close the form; what was typed is kept for the next time."""
        if self.cancel(_MAKING):
            self._say("Cancelling …")
            return
        self._keep()
        self.dismiss(None)

    def _keep(self) -> None:
        self._values.update({field.field_name: field.value for field in self.query(Field)})
        self._values["template"] = str(self.query_one(Select).value)

    def action_make(self) -> None:
        """Make the campaign with what the form says."""
        if self.busy(_MAKING):
            return
        for field in self.query(Field):
            field.wrong(None)
        self._keep()
        if not self._values["folder"]:
            self._failed("'' exists and is not empty. Name a new folder.", at="folder")
            return
        values, here = dict(self._values), self._here
        self._say("Making the campaign …")
        self.work(
            _MAKING,
            lambda work: make(work, here, values),
            done=self.dismiss,
            failed=self._failed,
            progress=lambda text, done, total: self._say(text),
            writes=True,
        )

    def _say(self, text: str) -> None:
        self.query_one("#said", Static).update(plain(text))

    def _failed(self, why: str, at: str | None = None) -> None:
        if why == "Cancelled.":
            self._say("Cancelled: nothing was made.")
            return
        name = at or concerned(why, self._values)
        self._say("Nothing was made: see the field above." if name else why)
        if name:
            field = self._field(name)
            field.wrong("Name a new folder." if at else why)
            field.take_focus()


def template_names() -> list[str]:
    """Return the templates that ship with the program (without the protocol's heavy reader)."""
    from gpucost_tui import resources

    return sorted(path.stem for path in resources.folder("protocols").glob("*.toml"))


def template(name: str) -> dict[str, Any]:
    """Return a template's tables."""
    import tomllib

    from gpucost_tui import resources

    return tomllib.loads(resources.file("protocols", f"{name}.toml").read_text(encoding="utf-8"))


def defaults(raw: dict[str, Any]) -> dict[str, str]:
    """Return what a template fills in, by field."""
    return {
        "classes": raw["corpus"].get("label_column", ""),
        "column": raw["reference"].get("column", ""),
        "threshold": str(raw["quality"]["threshold"]),
        "deadline": f"{raw['decision']['deadline_hours']:g}",
        "statement": raw["tuning"].get("statement", ""),
    }


def concerned(sentence: str, values: dict[str, str]) -> str | None:
    """Return the field that an error of the core is about: by the file it names, else by words."""
    for name in ("answers", "tuning", "corpus"):
        file = Path(values.get(name, "")).name
        if file and sentence.startswith(file):
            return name
    for name, words in _CONCERNS.items():
        if any(word in sentence for word in words):
            return name
    return None


def make(work: Work, here: Path, values: dict[str, str]) -> Path:
    """Make the campaign by the command ``gpucost new``, which ends cleanly when it is cancelled.

    Raises:
        CommandFailed: In its words.
        Cancelled: Nothing was made.
    """
    from gpucost_tui.tui.commanded import command

    folder = here / Path(values["folder"]).expanduser()
    with tempfile.TemporaryDirectory(prefix="gpucost-new-") as scratch:
        protocol = Path(scratch) / "protocol.toml"
        protocol.write_text(_protocol(values), encoding="utf-8")
        words = ["new", *arguments(values), f"--protocol={protocol}", "--", str(folder.absolute())]
        command(work, words, cwd=here, words="Making the campaign …")
    return folder


def _protocol(values: dict[str, str]) -> str:
    """Return the template with what the form says; its comments stay."""
    import tomlkit

    from gpucost_tui import resources

    path = resources.file("protocols", f"{values['template']}.toml")
    document: Any = tomlkit.parse(path.read_text(encoding="utf-8"))
    document["name"] = Path(values["folder"]).name
    document["corpus"]["right_of_use"] = values["right"]
    document["quality"]["threshold"] = _number(values["threshold"])
    document["decision"]["deadline_hours"] = _number(values["deadline"])
    if values["budget"]:
        document["decision"]["budget_usd"] = values["budget"]
    if document["reference"]["kind"] != "variant":
        _put(document["corpus"], "label_column", values["classes"])
        _put(document["reference"], "column", "" if values["answers"] else values["column"])
    _put(document["tuning"], "statement", values["statement"])
    return tomlkit.dumps(document)


def _put(table: Any, key: str, value: str) -> None:
    if value:
        table[key] = value
    else:
        table.pop(key, None)


def _number(text: str) -> float | str:
    """Return a number, or the text as it is: the protocol's reader says what is wrong with it."""
    try:
        return float(text)
    except ValueError:
        return text


def arguments(values: dict[str, str]) -> list[str]:
    """Return the options of ``gpucost new`` for what was typed."""
    options = {
        "corpus": values["corpus"],
        "model": values["model"],
        "id-column": values["id"],
        "text-column": values["text"],
        "reference": values["answers"],
        "tuning": values["tuning"],
    }
    return [f"--{name}={value}" for name, value in options.items() if value]
