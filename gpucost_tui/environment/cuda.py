"""Is the NVIDIA driver new enough for the CUDA that torch was built with?

The figures are NVIDIA's, from the CUDA Toolkit Release Notes, tables "CUDA Toolkit and Minimum
Required Driver Version for CUDA Minor Version Compatibility" (branches) and "CUDA Toolkit and
Corresponding Driver Versions", Linux. A driver between the two runs the build by minor version
compatibility; what has to be compiled when it is used (PTX, torch.compile) may fail there. From
13.4 on no driver comes with the toolkit.
"""

from __future__ import annotations

import re
from typing import Any

SOURCE = "NVIDIA CUDA Toolkit 13.3 Release Notes, driver version tables (Linux)"
DATE = "2026-06"

#: CUDA major -> oldest driver that runs any of its minor versions: of the branches that the notes
#: name (450, 525, 580) the first that came with a toolkit
_MAJOR = {"11": "450.80.02", "12": "525.60.13", "13": "580.65.06"}
#: CUDA major.minor -> driver that its first release came with
_MINOR = {
    "11.8": "520.61.05",
    "12.0": "525.60.13",
    "12.1": "530.30.02",
    "12.2": "535.54.03",
    "12.3": "545.23.06",
    "12.4": "550.54.14",
    "12.5": "555.42.02",
    "12.6": "560.28.03",
    "12.8": "570.26",
    "12.9": "575.51.03",
    "13.0": "580.65.06",
    "13.1": "590.44.01",
    "13.2": "595.45.04",
    "13.3": "610.43.02",
}


def compare(torch_cuda: str | None, driver: str | None) -> dict[str, Any]:
    """Hold torch's CUDA against the driver that was found.

    Returns:
        ``verdict`` (``new enough``, ``minor version compatibility``, ``too old``, or None),
        ``required_driver`` (below it nothing runs), ``full_driver``, ``found_driver``,
        ``sentence``, ``source`` and ``table_date``.
    """
    result: dict[str, Any] = {
        "torch_cuda": torch_cuda,
        "found_driver": driver,
        "required_driver": None,
        "full_driver": None,
        "verdict": None,
        "source": SOURCE,
        "table_date": DATE,
    }
    if torch_cuda is None:
        return {**result, "sentence": "torch is not built with CUDA"}
    required = _MAJOR.get(torch_cuda.split(".")[0])
    full = _MINOR.get(".".join(torch_cuda.split(".")[:2]))
    result |= {"required_driver": required, "full_driver": full}
    if driver is None:
        return {**result, "sentence": "no NVIDIA driver was found"}
    if required is None:
        return {**result, "sentence": f"CUDA {torch_cuda} is not in the table of {DATE}"}
    if _number(driver) < _number(required):
        sentence = f"driver {driver} is too old: CUDA {torch_cuda} requires {required} or newer"
        return {**result, "verdict": "too old", "sentence": sentence}
    if full is None:
        sentence = f"driver {driver} runs CUDA {torch_cuda.split('.')[0]} ({required} or newer)"
        return {**result, "verdict": "new enough", "sentence": sentence}
    if _number(driver) < _number(full):
        sentence = (
            f"driver {driver} runs CUDA {torch_cuda} by minor version compatibility; "
            f"{full} is the one it came with"
        )
        return {**result, "verdict": "minor version compatibility", "sentence": sentence}
    sentence = f"driver {driver} is new enough for CUDA {torch_cuda}"
    return {**result, "verdict": "new enough", "sentence": sentence}


def _number(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version))
