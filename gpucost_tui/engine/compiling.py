"""``torch.compile`` as a variant declares it: its time apart, every compilation counted (R14, R15).

What is counted is torch's own record of compilations (dynamo compiles one graph at a time; a new
shape that no compiled code accepts is one more). A limit on recompilations would fall back to
uncompiled code without a word, so it is lifted.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from gpucost_tui.engine.contract import PassFailed
from gpucost_tui.engine.failures import kind_of
from gpucost_tui.errors import EnvironmentLacks
from gpucost_tui.protocol.execution import Execution
from gpucost_tui.text import count

#: Name of torch's backend; a test takes one that needs no compiler.
BACKEND = "inductor"
#: Compilations of one function before dynamo would give up; every shape of a corpus is below.
_LIMIT = 100_000
#: Settings that compiled code depends on.
_DECIDE = (
    "compile",
    "compile_dynamic",
    "compile_cache",
    "attention",
    "tf32",
    "deterministic",
    "threads",
)
_TIMER = "_compile.compile_inner"
#: What torch says where there is no C++ compiler, no Triton, or a device too old for it.
_NO_COMPILER = ("no working c++ compiler", "working triton installation", "by the triton gpu comp")
#: Modes that record device graphs, on a device that has them.
RECORDING = ("reduce-overhead", "max-autotune")


@dataclass(frozen=True, slots=True)
class Compilations:
    """How many there were in this process, and the seconds they took.

    ``breaks``: places where a graph ended early, so that Python runs uncompiled between two.
    ``unrecorded``: graphs that the mode would have recorded on the device, and that could not be.
    """

    number: int
    seconds: float
    breaks: int = 0
    unrecorded: int = 0

    def since(self, before: Compilations) -> Compilations:
        return Compilations(
            self.number - before.number,
            self.seconds - before.seconds,
            self.breaks - before.breaks,
            self.unrecorded - before.unrecorded,
        )


def compilations() -> Compilations:
    """Return torch's record of this process; nothing, as long as dynamo was never loaded."""
    utils = sys.modules.get("torch._dynamo.utils")
    if utils is None:
        return Compilations(0, 0.0)
    times = utils.compilation_time_metrics.get(_TIMER, [])
    return Compilations(
        len(times),
        float(sum(times)),
        sum(utils.counters.get("graph_break", {}).values()),
        utils.counters.get("inductor", {}).get("cudagraph_skips", 0),
    )


class Compiler:
    """Compiles the model of an engine, and keeps the compiled one as long as its weights."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._key: tuple[Any, ...] | None = None
        self._model: Any = None
        self._scratch = contextlib.ExitStack()
        self._before = Compilations(0, 0.0)

    def model(self, model: Any, execution: Execution) -> Any:
        """Return a callable in the model's place; the model itself where nothing is compiled."""
        if execution.compile == "none":
            self.forget()
            return model
        key = (id(model), *(getattr(execution, name) for name in _DECIDE))
        if key != self._key or execution.compile_cache == "fresh":
            self.forget()
            self._prepare(execution)
            self._before = compilations()
            self._key, self._model = key, self._compiled(model, execution)
        return self._model

    def so_far(self) -> Compilations:
        """Return what was compiled of the present model, by earlier attempts too."""
        return compilations().since(self._before)

    def _prepare(self, execution: Execution) -> None:
        import torch._dynamo.config as config
        import torch._dynamo.utils  # noqa: F401 - what compilations() reads

        names = (
            ("recompile_limit", "cache_size_limit"),
            (
                "accumulated_recompile_limit",
                "accumulated_cache_size_limit",
            ),
        )
        for spellings in names:
            name = next(n for n in spellings if hasattr(config, n))
            setattr(config, name, _LIMIT)
        if execution.compile_cache == "fresh":
            from torch._inductor import utils

            # An empty cache of generated code, Triton's too, until it is left.
            empty: Any = getattr(utils, "fresh_cache", None) or utils.fresh_inductor_cache
            self._scratch.enter_context(empty())

    def _compiled(self, model: Any, execution: Execution) -> Any:
        dynamic = {"auto": None, "yes": True, "no": False}[execution.compile_dynamic]
        return self._torch.compile(model, backend=BACKEND, mode=execution.compile, dynamic=dynamic)

    def begin_batch(self, execution: Execution) -> Callable[[], None] | None:
        """Return what to call before a batch: recorded device graphs reuse their outputs' memory,
        and must know that the last ones are no longer needed."""
        if execution.compile not in RECORDING:
            return None
        mark: Callable[[], None] = self._torch.compiler.cudagraph_mark_step_begin
        return mark

    def forget(self) -> None:
        """Drop compiled code, and the cache on the disk that was only for it."""
        if self._key is not None:
            self._torch.compiler.reset()
        self._key = self._model = None
        self._scratch.close()


@contextlib.contextmanager
def explained() -> Iterator[None]:
    """Turn the compiler's refusals into a sentence.

    Raises:
        EnvironmentLacks: The C++ or Triton compiler that torch.compile needs is not here.
        PassFailed: ``error``: the model can't be compiled.
    """
    try:
        yield
    except Exception as error:
        ours = type(error).__module__.startswith(("torch._dynamo", "torch._inductor"))
        if not ours or kind_of(error) == "out-of-memory":
            raise
        first = next((line for line in str(error).splitlines() if line.strip()), "no reason")
        kind, lower = type(error).__name__, str(error).lower()
        if any(mark in lower for mark in _NO_COMPILER):
            raise EnvironmentLacks(
                f"torch.compile has no compiler here ({first.strip()})",
                where="execution.compile",
                fix="Install a C++ compiler (and Triton for a GPU), or take compile 'none'",
            ) from None
        raise PassFailed("error", f"torch.compile failed ({kind}: {first.strip()}).") from None


def check(execution: Execution, so_far: Compilations, device: str) -> None:
    """Make sure that the mode took effect, by all that was compiled of the model so far.

    Raises:
        PassFailed: ``fallback``: nothing was compiled, or device graphs were left out.
    """
    mode = execution.compile
    why = None
    if not so_far.number:
        why = "nothing was compiled"
    elif mode == "reduce-overhead" and device == "cpu":
        why = "a CPU has no device graphs, which are what this mode adds"
    elif mode in RECORDING and device != "cpu" and so_far.unrecorded:
        left_out = count(so_far.unrecorded, "device graph")
        why = f"{left_out} could not be recorded (the child's log says why)"
    if why is not None:
        raise PassFailed(
            "fallback", f"torch.compile ({mode}) was requested and did not take effect: {why}."
        )


def describe(execution: Execution, made: Compilations, so_far: Compilations) -> list[str]:
    """Return the note on a compiled variant."""
    cache = "kept between attempts" if execution.compile_cache == "keep" else "fresh"
    said = f"{count(made.number, 'compilation')} before the pass"
    if not made.number:
        said = "compiled by an earlier attempt"
    whole = "no graph break"
    if so_far.breaks:
        whole = f"{count(so_far.breaks, 'graph break')}: between the parts Python runs uncompiled"
    return [
        f"torch.compile: mode {execution.compile}, dynamic {execution.compile_dynamic}, "
        f"cache {cache}; {said}; {whole}"
    ]


def inside_pass(made: Compilations, *, refuse: bool) -> str | None:
    """Return the note on compilations that fell into a measured pass; None without.

    Raises:
        PassFailed: ``error``: there were some, and the sealed warm-up rule refuses them (R15).
    """
    if not made.number:
        return None
    said = (
        f"{count(made.number, 'recompilation')} fell into the measured pass "
        f"({made.seconds:.3f} s): the warm-up did not cover every shape"
    )
    if refuse:
        raise PassFailed("error", f"{said}, which the sealed warm-up rule refuses (R15).")
    return said
