"""The app: six places over one campaign. It shows what the core says and asks the core to act.

The contract that the places share:

**Start.** :func:`gpucost_tui.tui.app.run_app` opens the app. Home paints before polars and pydantic
load: no module here imports polars, pydantic, or anything of ``campaign``, ``corpus``, ``protocol``
at its top level. Types come under ``TYPE_CHECKING``; the imports stand in the functions that
:meth:`Worker.work` runs in a thread.

**Places.** :data:`gpucost_tui.tui.places.PLACES` names them; each is a subclass of
:class:`gpucost_tui.tui.screen.PlaceScreen` in a module of its own with a ``.tcss`` of its own
(``CSS_PATH``), and every selector in it begins with the screen's class name. A place

* sets ``PLACE`` (its name in :data:`PLACES`), ``HELP`` (plain text for ``?``) and ``BINDINGS`` with
  ``description`` and ``tooltip`` each: the palette and the help list them by themselves. At most
  four have ``show=True``: the footer must fit 80 columns;
* yields its widgets in ``content()``; top bar and footer come from the base;
* shows the campaign in ``show(snapshot)``, called in the event loop when the snapshot changed and
  the place is in front, and once when it comes to the front. Hidden places are never called. It
  must not read files: slow things go through :meth:`Worker.work`;
* names its actions ``action_…`` and tells in ``check_action`` which are possible now.

**Campaign.** ``self.app.snapshot`` is the latest immutable
:class:`gpucost_tui.tui.context.Snapshot`: ``folder``, ``status`` (the keys of
``campaign.status.status``), ``progress`` (the progress file's keys, only while a runner lives),
``state`` (the folded journal; read only), ``protocol`` (sealed, else the draft), ``sealed``,
``problem`` (why it can't be read), ``versions`` (of protocol, manifest and journal: they change
with the file). A thread looks once a second and posts
:class:`~gpucost_tui.tui.messages.StateChanged`, which coalesces. After you changed something,
``self.app.context.nudge()`` looks at once. ``self.app.open_campaign(folder, place=…)`` opens
another. Nothing a place does may end a run: runs belong to a detached runner.

**Work.** ``self.work(name, function, done=…, failed=…, progress=…)`` runs ``function(work)`` in a
daemon thread; every outcome comes back as a message, and the callbacks run in the event loop. A
second work of one name supersedes the first, whose outcome is dropped. ``work.report(text, done,
total)`` shows progress and raises :class:`~gpucost_tui.tui.work.Cancelled` once
:meth:`Worker.cancel` was called; ``work.watch()`` is the same for the core's long loops, which tell
it each stage and the entries or bytes done. Errors of :mod:`gpucost_tui.errors` reach ``failed`` as
their sentence, cleaned. A thread never touches a widget. ``writes=True`` marks work that changes
files: the app asks before it is left behind.

**Text from outside** passes :mod:`gpucost_tui.tui.safe` once: ``plain`` for widgets, ``filled`` for
a template with values, ``cell`` for tables (a ``DataTable`` is handed nothing else), ``fit`` to cut
to a number of cells. ``Static`` and the like get Content, or ``markup=False``. Never an f-string
with markup. ``self.app.say(sentence, severity=…)`` is the only way to notify.

**Dialogs** are in :mod:`gpucost_tui.tui.dialogs`: ``ConfirmDialog`` asks; the place awaits with
``self.app.push_screen(dialog, callback)``.

**Looks.** State is a glyph and a word (:data:`gpucost_tui.tui.safe.GLYPHS`), colour only beside
them. Classes on every screen tell the width: ``-narrow`` (below 80), ``-normal``, ``-wide`` (110
and more); and the height: ``-short`` (below 20), ``-tall``.

**Tests** take their fixtures from ``tests/tui_support.py``.
"""
