"""What an exception of a pass means (R21), told by its type and text; imports no torch."""

from __future__ import annotations

import errno
import traceback

from gpucost_tui.engine.contract import FailureKind, PassFailed
from gpucost_tui.errors import GpucostError
from gpucost_tui.text import count

#: Texts of an allocator that has nothing left: CUDA, ROCm, their libraries, the host.
_OUT_OF_MEMORY = (
    "cuda out of memory",
    "hip out of memory",
    "cuda error: out of memory",
    "hip error: out of memory",
    "cudaerrormemoryallocation",
    "hiperroroutofmemory",
    "cublas_status_alloc_failed",
    "hipblas_status_alloc_failed",
    "rocblas_status_memory_error",
    "cudnn_status_alloc_failed",
    "miopenstatusallocfailed",
    "defaultcpuallocator: can't allocate memory",
    "defaultcpuallocator: not enough memory",
    "std::bad_alloc",
    "cannot allocate memory",
    "unable to allocate",
)

#: Texts after which the device's context can't be used again, by this process.
_DEVICE = (
    "cuda error:",
    "hip error:",
    "device-side assert",
    "illegal memory access",
    "misaligned address",
    "uncorrectable ecc",
    "unspecified launch failure",
    "cudaerror",
    "hiperror",
)


def kind_of(error: BaseException) -> FailureKind:
    """Return the type of a failure."""
    if isinstance(error, PassFailed):
        return error.kind
    names = {cls.__name__ for cls in type(error).__mro__}
    if isinstance(error, MemoryError) or "OutOfMemoryError" in names:
        return "out-of-memory"
    if isinstance(error, OSError):
        return "out-of-memory" if error.errno == errno.ENOMEM else "error"
    if isinstance(error, GpucostError):
        return "error"
    text = str(error).lower()
    if any(mark in text for mark in _OUT_OF_MEMORY):
        return "out-of-memory"
    if "AcceleratorError" in names or any(mark in text for mark in _DEVICE):
        return "device-error"
    return "error"


def message_of(error: BaseException) -> str:
    """Return an exception's text in one piece, with its type unless it is a sentence of ours."""
    if isinstance(error, GpucostError | PassFailed):
        return str(error)
    text = str(error).strip()
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def trace_of(error: BaseException) -> str:
    """Return the traceback as text, and empty its frames.

    A kept exception keeps the local variables of its frames alive, activations on the device
    among them: only text leaves this function.
    """
    if isinstance(error, PassFailed) and error.trace:
        return error.trace
    text = "".join(traceback.format_exception(error))
    chain: BaseException | None = error
    while chain is not None:
        traceback.clear_frames(chain.__traceback__)
        chain.__traceback__ = None
        chain = chain.__cause__ or chain.__context__
    return text


def failed_batch(entries: int, width: int) -> str:
    """Return the note on the batch that was in work when a pass failed (R21)."""
    return f"the batch that failed: {count(entries, 'entry', 'entries')}, padded length {width}"
