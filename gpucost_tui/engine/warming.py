"""The warm-up of a pass by the protocol's rule, and what can be learnt only while it runs."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpucost_tui.engine import compiling
from gpucost_tui.engine.attention import FORCED, KernelWatch, implementation
from gpucost_tui.engine.batching import Batching
from gpucost_tui.engine.compiling import Compilations, Compiler
from gpucost_tui.engine.contract import Job, PassFailed, Reporter, Warmed
from gpucost_tui.engine.passes import Setup, to_device
from gpucost_tui.engine.reading import selected
from gpucost_tui.engine.warmup import Plan, plan
from gpucost_tui.errors import EnvironmentLacks
from gpucost_tui.protocol.model import Warmup

_NO_KERNEL = ("no available kernel", "no viable backend")


@dataclass(slots=True)
class Warming:
    """One warm-up.

    Args:
        setup: Loaded and ready; ``setup.model`` may be a compiled one.
        plain: The same model as it was loaded: what is watched is watched on it.
        compiler: Knows what was compiled of it so far.
    """

    setup: Setup
    plain: Any
    job: Job
    compiler: Compiler

    def run(self, lengths: np.ndarray, report: Reporter, stop: threading.Event) -> Warmed:
        """Warm up; leave early when ``stop`` is set.

        Raises:
            PassFailed: ``fallback``: another kernel than the one asked for, nothing compiled.
            EnvironmentLacks: The kernel or the compiler that is asked for is not here.
        """
        rule = Warmup.model_validate(self.job.warmup)
        execution = self.setup.execution
        begun = time.perf_counter()
        chosen = plan(
            lengths,
            batching=Batching.of(execution),
            grouping=execution.grouping,
            inputs=rule.inputs,
        )
        texts = self._texts(chosen)
        watch = KernelWatch(self.setup.torch)
        made = self._compile(texts, watch, report, stop)
        for number in range(rule.passes):
            if number or execution.compile != "none":
                self._pass(texts, self.setup.model, stop)
            else:
                with watch.watching():
                    self._pass(texts, self.setup.model, stop)
        self.setup.accelerator.synchronize()
        warmed = Warmed(
            warmup_s=time.perf_counter() - begun - made.seconds,
            notes=[chosen.describe(rule.inputs, rule.passes)],
        )
        self._attention(watch, warmed, seen=not stop.is_set() and bool(texts))
        self._compiled(made, warmed, stopped=stop.is_set())
        return warmed

    def _texts(self, chosen: Plan) -> list[list[str]]:
        batches = self.setup.task.warm_up_inputs(chosen.batches)
        texts = selected(self.job.corpus, (int(p) for batch in batches for p in batch))
        return [[texts[int(p)] for p in batch] for batch in batches]

    def _compile(
        self, texts: list[list[str]], watch: KernelWatch, report: Reporter, stop: threading.Event
    ) -> Compilations:
        if self.setup.execution.compile == "none" or not texts:
            return Compilations(0, 0.0)
        # Watching inside compiled code would change it: the plain model is asked, on the ends.
        with watch.watching():
            self._pass([texts[0], max(texts, key=lambda b: max(map(len, b))), texts[-1]],
                       self.plain, stop)  # fmt: skip
        before = compiling.compilations()
        with compiling.explained():
            self._pass(texts, self.setup.model, stop)
        self.setup.accelerator.synchronize()
        report.phase("warm-up")
        return compiling.compilations().since(before)

    def _pass(self, texts: list[list[str]], model: Any, stop: threading.Event) -> None:
        for batch in texts:
            if stop.is_set():
                return
            self._predict(batch, model)

    def _predict(self, texts: list[str], model: Any) -> None:
        setup = self.setup
        try:
            with setup.torch.inference_mode():
                batch = setup.task.encode(setup.encoder, setup.encoder.tokens(texts))
                inputs = to_device(setup, batch)
                if setup.begin_batch is not None:
                    setup.begin_batch()
                setup.task.materialize(setup.task.predict(model, inputs))
        except RuntimeError as error:
            if not any(mark in str(error).lower() for mark in _NO_KERNEL):
                raise
            raise EnvironmentLacks(
                f"attention '{setup.execution.attention}' has no kernel for this model, dtype and "
                "device",
                where="execution.attention",
                fix="Take 'sdpa', which lets torch choose, or another kernel",
            ) from None

    def _attention(self, watch: KernelWatch, warmed: Warmed, *, seen: bool) -> None:
        asked = self.setup.execution.attention
        warmed.attention_effective = watch.named(asked)
        wanted = FORCED.get(asked)
        if wanted is not None and seen and watch.kernels != {wanted}:
            found = ", ".join(sorted(watch.kernels)) or "no kernel that could be seen"
            raise PassFailed("fallback", f"attention '{asked}' was requested: {found} took effect.")
        if implementation(asked) != "sdpa" or not seen:
            return
        if not watch.kernels:
            warmed.notes.append("the kernel of sdpa could not be seen")
        elif self.setup.execution.compile != "none":
            warmed.notes.append(
                "the kernel of sdpa is the one that the model takes before it is compiled"
            )

    def _compiled(self, made: Compilations, warmed: Warmed, *, stopped: bool) -> None:
        execution = self.setup.execution
        if execution.compile == "none":
            warmed.missing["compile_s"] = "not compiled"
            return
        so_far = self.compiler.so_far()
        if not stopped:
            compiling.check(execution, so_far, self.setup.accelerator.device)
        warmed.notes += compiling.describe(execution, made, so_far)
        warmed.compiled = True
        if made.number:
            warmed.compile_s = made.seconds
        else:
            warmed.missing["compile_s"] = "already compiled"
