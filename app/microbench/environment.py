"""What of its own environment the server hands to the process that measures: what a card needs, and no secret."""

import re
from collections.abc import Mapping

_NAMES = frozenset(
    {
        *("PATH", "HOME", "USER", "LOGNAME", "LANG", "LANGUAGE", "TMPDIR", "TEMP", "TMP", "SYSTEMROOT"),
        *("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "CONDA_PREFIX"),
        *("GPU_DEVICE_ORDINAL", "XDG_CACHE_HOME"),
    }
)
_PREFIXES = ("LC_", "CUDA_", "NVIDIA_", "HIP_", "HSA_", "ROCM_", "ROCR_", "CUPY_", "TORCH_", "PYTORCH_", "CUBLAS")
_SECRET = re.compile(r"TOKEN|SECRET|PASSW|CREDENTIAL|AUTH|KEY")

FEW_THREADS = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
"""The card computes: threads of the processor's own libraries would only take memory for their stacks."""


def worker_environment(own: Mapping[str, str], card_uuid: str | None) -> dict[str, str]:
    """The variables for the worker: those of `own` that loaders, CUDA and ROCm read, none that may hold a secret.

    With `card_uuid`, the driver's key of an NVIDIA card, the worker sees that card alone, as number 0. Without it cards
    keep the order of the PCI bus, which is that of the driver.
    """
    kept = {
        name: value
        for name, value in own.items()
        if (name in _NAMES or name.startswith(_PREFIXES)) and not _SECRET.search(name)
    }
    pinned = {} if card_uuid is None else {"CUDA_VISIBLE_DEVICES": card_uuid}
    return kept | FEW_THREADS | {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"} | pinned
