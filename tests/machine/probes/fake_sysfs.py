"""A made-up tree of the kernel's files for AMD cards, in the form that the kernel's documentation gives them."""

from collections.abc import Mapping
from pathlib import Path

MIB, GIB = 2**20, 2**30

MEMINFO = "MemTotal:       134217728 kB\nMemFree:         1000000 kB\nMemAvailable:   104857600 kB\n"

RX_7900_XTX: dict[str, str | bytes] = {
    "device": "0x744c\n",
    "revision": "0xc8\n",
    "unique_id": "canary0123456789\n",
    "mem_info_vram_total": f"{24_560 * MIB}\n",
    "mem_info_vram_used": f"{6 * GIB}\n",
    "mem_info_gtt_total": f"{64 * GIB}\n",
    "mem_info_gtt_used": f"{32 * MIB}\n",
    "gpu_busy_percent": "83\n",
    "mem_busy_percent": "37\n",
    "gpu_metrics": bytes([120, 0, 1, 3]) + b"\xff" * 116,
    "pp_dpm_sclk": "0: 500Mhz\n1: 2304Mhz *\n2: 2526Mhz\n",
    "pp_dpm_mclk": "0: 96Mhz\n1: 456Mhz\n2: 772Mhz\n3: 1249Mhz *\n",
    "current_link_speed": "16.0 GT/s PCIe\n",
    "current_link_width": "16\n",
    "hwmon/hwmon3/name": "amdgpu\n",
    "hwmon/hwmon3/power1_average": "301000000\n",
    "hwmon/hwmon3/power1_cap": "327000000\n",
    "hwmon/hwmon3/temp1_input": "55000\n",
    "hwmon/hwmon3/temp1_label": "edge\n",
    "hwmon/hwmon3/temp2_input": "71000\n",
    "hwmon/hwmon3/temp2_label": "junction\n",
    "hwmon/hwmon3/temp3_input": "68000\n",
    "hwmon/hwmon3/temp3_label": "mem\n",
}

STRIX_HALO: dict[str, str | bytes] = {
    "device": "0x1586\n",
    "revision": "0xc1\n",
    "mem_info_vram_total": f"{GIB // 2}\n",
    "mem_info_vram_used": f"{GIB // 4}\n",
    "mem_info_gtt_total": f"{120 * GIB}\n",
    "mem_info_gtt_used": f"{60 * GIB}\n",
    "gpu_busy_percent": "77\n",
    "gpu_metrics": bytes([8, 1, 3, 0]) + b"\xff" * 260,
    "pp_dpm_sclk": "0: 600Mhz\n1: 1100Mhz\n2: 2900Mhz *\n",
    "pp_dpm_mclk": "0: 400Mhz\n1: 800Mhz\n2: 1000Mhz *\n",
    "current_link_speed": "16.0 GT/s PCIe\n",
    "current_link_width": "16\n",
    "hwmon/hwmon5/power1_input": "85012000\n",
    "hwmon/hwmon5/temp1_input": "64000\n",
    "hwmon/hwmon5/temp1_label": "edge\n",
}


def add_card(
    root: Path,
    files: Mapping[str, str | bytes],
    *,
    number: int = 0,
    pci_address: str = "0000:03:00.0",
    vendor: str = "0x1002\n",
) -> Path:
    """The directory of a new card's files, linked from `root`/class/drm as the kernel links it."""
    device = root / "devices" / pci_address
    for name, content in {"vendor": vendor, **files}.items():
        path = device / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    card = drm(root) / f"card{number}"
    card.mkdir(parents=True)
    (card / "device").symlink_to(device)
    return device


def drm(root: Path) -> Path:
    """Where the kernel lists graphics cards."""
    return root / "class" / "drm"
