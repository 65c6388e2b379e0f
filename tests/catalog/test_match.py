import pytest

from app.catalog.match import Candidate, match_accelerator

MIB = 1024**2

# Marketed decimal GB where no driver figure is known, else what the driver reports; both must do.
CATALOG = [
    Candidate(key, name, vendor, memory_bytes)
    for key, name, vendor, memory_bytes in [
        ("v100-pcie-16gb", "V100 PCIe 16GB", "NVIDIA", 16_160 * MIB),
        ("v100-sxm2-16gb", "V100 SXM2 16GB", "NVIDIA", 16_160 * MIB),
        ("v100-sxm2-32gb", "V100 SXM2 32GB", "NVIDIA", 32_510 * MIB),
        ("t4", "T4", "NVIDIA", 15_360 * MIB),
        ("a10", "A10", "NVIDIA", 23_028 * MIB),
        ("a10g", "A10G (AWS)", "NVIDIA", 23_028 * MIB),
        ("a16", "A16 (per GPU; 4 GPUs per board)", "NVIDIA", 16e9),
        ("a30", "A30", "NVIDIA", 24_576 * MIB),
        ("a100-pcie-40gb", "A100 PCIe 40GB", "NVIDIA", 40_960 * MIB),
        ("a100-sxm-40gb", "A100 SXM4 40GB", "NVIDIA", 40_960 * MIB),
        ("a100-pcie-80gb", "A100 PCIe 80GB", "NVIDIA", 81_920 * MIB),
        ("a100-sxm-80gb", "A100 SXM4 80GB", "NVIDIA", 81_920 * MIB),
        ("a800-sxm-80gb", "A800 SXM4 80GB", "NVIDIA", 81_920 * MIB),
        ("l4", "L4", "NVIDIA", 23_034 * MIB),
        ("l40", "L40", "NVIDIA", 46_068 * MIB),
        ("l40s", "L40S", "NVIDIA", 46_068 * MIB),
        ("rtx-6000-ada", "RTX 6000 Ada", "NVIDIA", 49_140 * MIB),
        ("rtx-4060ti-16gb", "GeForce RTX 4060 Ti 16GB", "NVIDIA", 16_380 * MIB),
        ("rtx-4080", "GeForce RTX 4080", "NVIDIA", 16_376 * MIB),
        ("rtx-4080-super", "GeForce RTX 4080 SUPER", "NVIDIA", 16_376 * MIB),
        ("rtx-4090", "GeForce RTX 4090", "NVIDIA", 24_564 * MIB),
        ("rtx-3060-12gb", "GeForce RTX 3060 12GB", "NVIDIA", 12_288 * MIB),
        ("rtx-a6000", "RTX A6000", "NVIDIA", 49_140 * MIB),
        ("h100-pcie-80gb", "H100 PCIe 80GB", "NVIDIA", 81_559 * MIB),
        ("h100-sxm-80gb", "H100 SXM5 80GB", "NVIDIA", 81_559 * MIB),
        ("h100-nvl-94gb", "H100 NVL 94GB (per GPU)", "NVIDIA", 95_830 * MIB),
        ("h20-96gb", "H20 96GB", "NVIDIA", 97_871 * MIB),
        ("h20-141gb", "H20 141GB (HBM3e)", "NVIDIA", 141e9),
        ("h200-sxm", "H200 SXM 141GB", "NVIDIA", 143_771 * MIB),
        ("h200-nvl", "H200 NVL 141GB", "NVIDIA", 143_771 * MIB),
        ("gh200-96gb", "GH200 96GB (GPU side)", "NVIDIA", 97_871 * MIB),
        ("gh200-144gb", "GH200 144GB (GPU side)", "NVIDIA", 145_920 * MIB),
        ("b100-sxm", "B100 SXM (HGX)", "NVIDIA", 192e9),
        ("b200-sxm", "B200 SXM (HGX/DGX)", "NVIDIA", 180e9),
        ("b300-sxm", "B300 SXM (HGX/DGX)", "NVIDIA", 275_040 * MIB),
        ("gb200", "GB200 NVL72 (per GPU)", "NVIDIA", 189_471 * MIB),
        ("gb300", "GB300 NVL72 (per GPU)", "NVIDIA", 284_208 * MIB),
        ("gb300-ws", "GB300 DGX Station GPU", "NVIDIA", 252e9),
        ("rtx-5090", "GeForce RTX 5090", "NVIDIA", 32_607 * MIB),
        ("rtx-pro-6000-ws", "RTX PRO 6000 Blackwell Workstation", "NVIDIA", 97_887 * MIB),
        ("rtx-pro-6000-server", "RTX PRO 6000 Blackwell Server", "NVIDIA", 97_887 * MIB),
        ("rtx-pro-6000-maxq", "RTX PRO 6000 Blackwell Max-Q", "NVIDIA", 97_887 * MIB),
        ("dgx-spark-gb10", "DGX Spark (GB10)", "NVIDIA", 128e9),
        ("jetson-agx-orin-64gb", "Jetson AGX Orin 64GB (GPU only)", "NVIDIA", 64e9),
        ("jetson-agx-thor", "Jetson AGX Thor (T5000)", "NVIDIA", 128e9),
        ("mi300x", "Instinct MI300X", "AMD", 196_592 * MIB),
        ("mi300a", "Instinct MI300A (APU)", "AMD", 128e9),
        ("rx-7900-xtx", "Radeon RX 7900 XTX", "AMD", 24_560 * MIB),
    ]
]


def found(name: str, memory_mib: float | None) -> str | None:
    match = match_accelerator(name, None if memory_mib is None else memory_mib * MIB, CATALOG)
    return match.id if match is not None else None


@pytest.mark.parametrize(
    ("name", "memory_mib", "expected"),
    [
        ("NVIDIA H100 80GB HBM3", 81_559, "h100-sxm-80gb"),
        ("NVIDIA H100 80GB HBM3", None, "h100-sxm-80gb"),
        ("NVIDIA H100 PCIe", 81_559, "h100-pcie-80gb"),
        ("NVIDIA H100 NVL", 95_830, "h100-nvl-94gb"),
        ("NVIDIA A100-SXM4-80GB", 81_920, "a100-sxm-80gb"),
        ("A100-SXM-80GB", 81_251, "a100-sxm-80gb"),
        ("NVIDIA A100-SXM4-40GB", 40_536, "a100-sxm-40gb"),
        ("NVIDIA A100 80GB PCIe", 81_920, "a100-pcie-80gb"),
        ("NVIDIA A100-PCIE-40GB", 40_960, "a100-pcie-40gb"),
        ("NVIDIA A800-SXM4-80GB", 81_920, "a800-sxm-80gb"),
        ("NVIDIA GeForce RTX 4090", 24_564, "rtx-4090"),
        ("NVIDIA GeForce RTX 4090", None, "rtx-4090"),
        ("NVIDIA GeForce RTX 4080", 16_376, "rtx-4080"),
        ("NVIDIA GeForce RTX 4080 SUPER", 16_376, "rtx-4080-super"),
        ("NVIDIA GeForce RTX 4060 Ti", 16_380, "rtx-4060ti-16gb"),
        ("NVIDIA GeForce RTX 3060", 12_288, "rtx-3060-12gb"),
        ("NVIDIA GeForce RTX 5090", 32_607, "rtx-5090"),
        ("NVIDIA RTX 6000 Ada Generation", 49_140, "rtx-6000-ada"),
        ("NVIDIA RTX 6000 Ada Generation", 46_068, "rtx-6000-ada"),
        ("NVIDIA RTX A6000", 49_140, "rtx-a6000"),
        ("NVIDIA L40S", 46_068, "l40s"),
        ("NVIDIA L40", 46_068, "l40"),
        ("NVIDIA L4", 23_034, "l4"),
        ("NVIDIA A10", 23_028, "a10"),
        ("NVIDIA A10G", 23_028, "a10g"),
        ("NVIDIA A16", 15_356, "a16"),
        ("NVIDIA A30", 24_576, "a30"),
        ("NVIDIA H200", 143_771, "h200-sxm"),
        ("NVIDIA H200 NVL", 143_771, "h200-nvl"),
        ("NVIDIA B200", 183_359, "b200-sxm"),
        ("NVIDIA B300 SXM6 AC", 275_040, "b300-sxm"),
        ("NVIDIA GB200", 189_471, "gb200"),
        ("NVIDIA GB300", 284_208, "gb300"),
        ("NVIDIA GB10", 122_502, "dgx-spark-gb10"),
        ("Tesla T4", 15_360, "t4"),
        ("Tesla T4", 15_109, "t4"),
        ("Tesla V100-SXM2-32GB", 32_510, "v100-sxm2-32gb"),
        ("Tesla V100-SXM2-16GB", 16_160, "v100-sxm2-16gb"),
        ("Tesla V100-PCIE-16GB", 16_160, "v100-pcie-16gb"),
        ("NVIDIA GH200 480GB", 97_871, "gh200-96gb"),
        ("NVIDIA GH200 144G HBM3e", 145_920, "gh200-144gb"),
        ("NVIDIA H20", 97_871, "h20-96gb"),
        ("NVIDIA H20-3e", 143_771, "h20-141gb"),
        ("NVIDIA RTX PRO 6000 Blackwell Workstation Edition", 97_887, "rtx-pro-6000-ws"),
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", 97_887, "rtx-pro-6000-server"),
        ("NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition", 97_887, "rtx-pro-6000-maxq"),
        ("Orin", 62_841, "jetson-agx-orin-64gb"),
        ("Orin (nvgpu)", 62_841, "jetson-agx-orin-64gb"),
        ("NVIDIA Thor", 125_772, "jetson-agx-thor"),
        ("AMD Instinct MI300X OAM", 196_592, "mi300x"),
        ("AMD Radeon RX 7900 XTX", 24_560, "rx-7900-xtx"),
    ],
)
def test_the_names_of_drivers_find_their_accelerator(name: str, memory_mib: float | None, expected: str) -> None:
    assert found(name, memory_mib) == expected


@pytest.mark.parametrize(
    ("name", "memory_mib"),
    [
        ("NVIDIA GeForce RTX 4090 Laptop GPU", 16_376),
        ("NVIDIA GeForce RTX 4090 D", 24_564),
        ("NVIDIA GeForce RTX 4060 Ti", 8_188),
        ("NVIDIA GeForce RTX 4060 Ti", None),
        ("NVIDIA GeForce RTX 3060", 8_192),
        ("Quadro RTX 6000", 24_576),
        ("Tesla V100-SXM3-32GB", 32_510),
        ("Tesla V100-PCIE-32GB", 32_510),
        ("Tesla V100S-PCIE-32GB", 32_510),
        ("NVIDIA A100-SXM-64GB", 65_536),
        ("NVIDIA A100-SXM4-80GB", 40_960),
        ("NVIDIA A100-SXM4-40GB MIG 1g.5gb", 4_864),
        ("NVIDIA A100", 81_920),
        ("NVIDIA H100 PCIe", None),
        ("NVIDIA H100 PCIe", 95_830),
        ("NVIDIA H20", None),
        ("NVIDIA GH200 480GB", None),
        ("NVIDIA A40-8Q", 8_192),
        ("GRID T4-16Q", 16_384),
        ("Orin", 30_000),
        ("Orin", None),
        ("NVIDIA Thor", None),
        ("NVIDIA Thor", 62_000),
        ("AMD H100 80GB HBM3", 81_559),
        ("NVIDIA Graphics Device", 81_559),
        ("NVIDIA", 81_559),
        ("", 81_559),
        ("80GB SXM4", 81_920),
        ("\u202e((((\x00", None),
        ("NVIDIA L4" + "0" * 5_000, 46_068),
    ],
)
def test_what_is_unknown_or_ambiguous_is_never_guessed(name: str, memory_mib: float | None) -> None:
    assert found(name, memory_mib) is None


def test_two_candidates_that_cannot_be_told_apart_are_no_match() -> None:
    twins = [Candidate("a", "L40S", "NVIDIA", 48e9), Candidate("b", "L40S (rented)", "NVIDIA", 48e9)]
    assert match_accelerator("NVIDIA L40S", 48e9, twins) is None
    assert match_accelerator("NVIDIA L40S", 48e9, twins[:1]) == twins[0]
    assert match_accelerator("NVIDIA L40S", 48e9, []) is None
    sizes = [Candidate("a", "GB300 NVL72", "NVIDIA", 288e9), Candidate("b", "GB300 DGX Station GPU", "NVIDIA", 252e9)]
    assert match_accelerator("NVIDIA GB300", 270e9, sizes) is None


def test_every_name_of_the_catalog_with_its_vendor_finds_itself_or_nothing() -> None:
    for candidate in CATALOG:
        match = match_accelerator(f"{candidate.vendor} {candidate.name}", candidate.memory_bytes, CATALOG)
        assert match in (candidate, None)
