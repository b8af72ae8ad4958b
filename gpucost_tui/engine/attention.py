"""Which kernel scaled dot-product attention takes: torch chooses by input, so it is watched.

During a warm-up every call's choice is asked of torch with that call's own arguments; inside the
measured pass nothing is watched.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

#: torch.nn.attention.SDPBackend by value
_KERNELS = {0: "math", 1: "flash", 2: "efficient", 3: "cudnn", 4: "overrideable"}
FORCED = {
    "sdpa-math": "math",
    "sdpa-flash": "flash",
    "sdpa-efficient": "efficient",
    "sdpa-cudnn": "cudnn",
}


def implementation(attention: str) -> str:
    """Return transformers' name of an attention setting."""
    return "sdpa" if attention in FORCED else attention


def allow(torch: Any, attention: str) -> None:
    """Allow the kernels that a setting names: one of them, or (``sdpa``) all."""
    only = FORCED.get(attention)
    cuda = torch.backends.cuda
    cuda.enable_math_sdp(only in (None, "math"))
    cuda.enable_flash_sdp(only in (None, "flash"))
    cuda.enable_mem_efficient_sdp(only in (None, "efficient"))
    cuda.enable_cudnn_sdp(only in (None, "cudnn"))


class KernelWatch:
    """Collects the kernels of the calls made inside :meth:`watching`."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self.kernels: set[str] = set()

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        functional = self._torch.nn.functional
        real = functional.scaled_dot_product_attention

        def watched(query: Any, key: Any, value: Any, *rest: Any, **options: Any) -> Any:
            self._note(query, key, value, *rest, **options)
            return real(query, key, value, *rest, **options)

        functional.scaled_dot_product_attention = watched
        try:
            yield
        finally:
            functional.scaled_dot_product_attention = real

    def _note(
        self,
        query: Any,
        key: Any,
        value: Any,
        attn_mask: Any = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        scale: float | None = None,
        enable_gqa: bool = False,
    ) -> None:
        try:
            choice = self._torch._fused_sdp_choice(
                query,
                key,
                value,
                attn_mask,
                dropout_p,
                is_causal,
                scale=scale,
                enable_gqa=enable_gqa,
            )
        except (AttributeError, TypeError, RuntimeError):
            return  # a torch that does not tell, or no kernel: the call itself says that one
        self.kernels.add(_KERNELS.get(int(choice), f"number {int(choice)}"))

    def named(self, requested: str) -> str:
        """Return the attention in effect: ``sdpa (flash)``, ``sdpa (efficient, flash)``."""
        if not self.kernels or implementation(requested) != "sdpa":
            return implementation(requested)
        return f"sdpa ({', '.join(sorted(self.kernels))})"
