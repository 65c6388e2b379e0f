"""Families of chips whose kernels are alike: what the calibration of expected times groups accelerators by."""

# The first that the architecture's name begins with. GeForce parts of Ampere and Ada are rated for products that are
# added up in fp32, which their other parts do at the full rate: they stand apart.
_FAMILIES = (
    ("Hopper", "hopper"),
    ("Blackwell Ultra", "blackwell-ultra"),
    ("Blackwell GB100", "blackwell"),
    ("Blackwell GB20B", "blackwell-soc"),
    ("Blackwell GB10B", "blackwell-soc"),
    ("Blackwell GB2", "blackwell-gddr"),
    ("Ampere GA100", "ampere"),
    ("Ampere", "ampere-gddr"),
    ("Ada", "ada"),
    ("CDNA2", "cdna2"),
    ("CDNA", "cdna3"),
    ("RDNA3.5", "rdna-soc"),
    ("RDNA", "rdna"),
    ("Apple", "apple"),
    ("Xe2", "xe2"),
    ("Xe-HPC", "xe-hpc"),
)
_SPLIT_BY_MARKET = ("ampere-gddr", "ada")


def family_of(architecture: str, *, is_consumer: bool) -> str:
    """The family of an architecture; the architecture itself, in small letters, where it stands alone."""
    for start, family in _FAMILIES:
        if architecture.startswith(start):
            return f"{family}-consumer" if is_consumer and family in _SPLIT_BY_MARKET else family
    return architecture.lower()


def memory_kind_of(memory_type: str) -> str:
    """`unified` for the machine's own memory, else `gddr`, `hbm`, or `sram` for memory on the chip."""
    if "unified" in memory_type and "HBM" not in memory_type:
        return "unified"
    if "GDDR" in memory_type:
        return "gddr"
    return "hbm" if "HBM" in memory_type else "sram"
