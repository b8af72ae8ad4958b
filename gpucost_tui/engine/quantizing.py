"""Quantizes a loaded model as a variant declares, and asks what took effect (R27)."""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import inspect
import logging
import warnings
from typing import Any, NoReturn

from gpucost_tui.engine.contract import PassFailed
from gpucost_tui.errors import EnvironmentLacks
from gpucost_tui.protocol.execution import Execution

_BITSANDBYTES = {"bnb-int8": {"load_in_8bit": True}, "bnb-nf4": {"load_in_4bit": True}}
_WHERE = "execution.quantization"


def loading_options(execution: Execution, device: str, torch: Any) -> dict[str, Any]:
    """Return what ``from_pretrained`` needs where weights are quantized while they are loaded.

    Raises:
        EnvironmentLacks: The scheme can't be had on this device, or its package is missing.
    """
    scheme = execution.quantization
    if scheme == "none":
        return {}
    if device == "cpu":
        if scheme != "int8-dynamic":
            _lacks(f"'{scheme}' needs a GPU, and the device is a CPU", "Take int8-dynamic, or none")
        if execution.dtype != "float32":
            what = f"int8-dynamic on a CPU begins from float32, and dtype is {execution.dtype}"
            _lacks(what, "Take dtype float32")
        return {}
    if not by_bitsandbytes(execution):
        _need("torchao", scheme)
        return {}
    _need("bitsandbytes", scheme)
    _need("accelerate", scheme)
    import transformers

    # Its int8 layers would write a line a layer and batch into the measured pass: notes() says it.
    logging.getLogger("bitsandbytes").setLevel(logging.ERROR)
    config: Any = transformers.BitsAndBytesConfig
    options = dict(_BITSANDBYTES[scheme])
    if scheme == "bnb-nf4":
        options |= {"bnb_4bit_quant_type": "nf4"}  # type: ignore[dict-item]
        options |= {"bnb_4bit_compute_dtype": getattr(torch, execution.dtype)}
    return {"quantization_config": config(**options), "device_map": {"": device}}


def _need(package: str, scheme: str) -> None:
    if importlib.util.find_spec(package) is None:
        fix = "Install gpucost-tui with the extra 'quantization', or take another scheme"
        _lacks(f"'{scheme}' needs the Python package {package}, which is not installed", fix)


def _lacks(what: str, fix: str) -> NoReturn:
    raise EnvironmentLacks(f"quantization {what}", where=_WHERE, fix=fix)


def quantize(model: Any, execution: Execution, device: str) -> tuple[Any, str]:
    """Quantize the linear layers of a model; return it and the scheme in effect.

    Raises:
        PassFailed: ``fallback``: no layer was quantized.
        EnvironmentLacks: The package that is installed can't do it on this device.
    """
    scheme = execution.quantization
    if scheme == "none":
        return model, "none"
    linear = _linear(model)  # bitsandbytes' layers, made while loading, are linear ones too
    if device == "cpu":
        model, done, how = _dynamic_on_cpu(model)
    elif by_bitsandbytes(execution):
        done, how = _count(model, "bitsandbytes"), named("bitsandbytes")
    else:
        done, how = _by_torchao(model, scheme), named("torchao")
    if not done:
        raise PassFailed("fallback", f"quantization '{scheme}' was requested and changed no layer.")
    return model, f"{scheme} ({how}, {done} of {linear} linear layers)"


def by_bitsandbytes(execution: Execution) -> bool:
    """Tell whether the layers are quantized, and brought to the device, while they are loaded."""
    return execution.quantization in _BITSANDBYTES


def notes(execution: Execution) -> list[str]:
    """Return what a scheme computes otherwise than the declared dtype says."""
    if execution.quantization == "bnb-int8" and execution.dtype != "float16":
        return [f"bnb-int8 rounds the {execution.dtype} inputs of its layers to float16"]
    return []


def _linear(model: Any) -> int:
    import torch

    return sum(isinstance(part, torch.nn.Linear) for part in model.modules())


def named(package: str) -> str:
    """Return a package's name with the version that is installed."""
    try:
        return f"{package} {importlib.metadata.version(package)}"
    except importlib.metadata.PackageNotFoundError:
        return package


def _dynamic_on_cpu(model: Any) -> tuple[Any, int, str]:
    import torch

    engines = torch.backends.quantized.supported_engines
    # torch announces that it will give this up for torchao.
    dynamic: Any = getattr(torch.ao.quantization, "quantize_dynamic", None)
    if dynamic is None or not [name for name in engines if name != "none"]:
        raise EnvironmentLacks(
            "this torch has no engine for quantized layers on a CPU",
            where=_WHERE,
            fix="Take another build of torch, or quantization none",
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about the place where it will live in later releases
        model = dynamic(model, {torch.nn.Linear}, dtype=torch.qint8, inplace=True)
    engine = str(torch.backends.quantized.engine)
    return model, _count(model, "torch.ao.nn.quantized.dynamic"), f"torch, {engine}"


def _count(model: Any, package: str) -> int:
    return sum(type(part).__module__.startswith(package) for part in model.modules())


def _by_torchao(model: Any, scheme: str) -> int:
    quantization = importlib.import_module("torchao.quantization")
    name = {
        "int8-dynamic": "Int8DynamicActivationInt8WeightConfig",
        "int8": "Int8WeightOnlyConfig",
        "int4": "Int4WeightOnlyConfig",
    }[scheme]
    config = getattr(quantization, name, None)
    if config is None:
        _lacks(f"'{scheme}' is unknown to the installed torchao", "Install a newer torchao")
    try:
        quantization.quantize_(model, config(**_options(config, scheme)))
    except (ImportError, ValueError, AssertionError) as error:
        what = f"'{scheme}' can't be had here ({type(error).__name__}: {error})"
        _lacks(what, "Take another scheme, or the torchao that fits this torch and device")
    return sum(
        type(getattr(part, "weight", None)).__module__.startswith("torchao")
        for part in model.modules()
    )


def _options(config: Any, scheme: str) -> dict[str, Any]:
    """Return the options of a torchao configuration, as far as the installed release knows them."""
    import torch

    # Left alone it would change the compiler's settings of the whole process (earlier releases: the
    # precision of float32 products too), and so every later variant in this process.
    wanted: dict[str, Any] = {"set_inductor_config": False}
    if scheme == "int4":
        # torch's own int4 kernels; the default, 'plain', needs another package since 0.14.
        wanted |= {"int4_packing_format": "tile_packed_to_4d"}
        if getattr(torch.version, "hip", None):
            wanted |= {"int4_tile_packed_ntile": 16}
    known = inspect.signature(config).parameters
    return {name: value for name, value in wanted.items() if name in known}
