"""Every family that is read, by its id and by the model types of its configurations; and what is refused by name."""

from collections.abc import Mapping
from types import MappingProxyType

from app.catalog.importing import (
    classic_families,
    compressed,
    dense_families,
    expert_families,
    gemma_paths,
    hybrid_families,
    latent_families,
    more_hybrids,
    nemotron_h,
    nemotron_nas,
    own_families,
    rwkv,
)
from app.catalog.importing.family import Family
from app.catalog.importing.words import words

TABLES = (
    dense_families,
    classic_families,
    expert_families,
    own_families,
    latent_families,
    hybrid_families,
    more_hybrids,
    rwkv,
    compressed,
    nemotron_h,
    nemotron_nas,
    gemma_paths,
)
FAMILIES: Mapping[str, Family] = MappingProxyType(
    {family.id: family for table in TABLES for family in table.FAMILIES},
)
BY_MODEL_TYPE: Mapping[str, Family] = MappingProxyType(
    {model_type: family for family in FAMILIES.values() for model_type in family.model_types}
)

NO_DECODER = words("no_decoder")
"""Encoders, encoder-decoders and models of other media: refused by name, without a suggestion."""

NOT_COMPUTED: Mapping[str, str] = MappingProxyType(
    {
        "mllama_text_model": "cross-attention to the picture in some layers",
        "phi3small": "block-sparse attention with a pattern for each head",
        "zamba": "one attention block that several layers share",
        "zamba2": "attention blocks that several layers share",
        "rwkv": "time mixing instead of attention",
        "rwkv5": "time mixing instead of attention",
        "xlstm": "an extended LSTM",
        "mamba2": "Mamba 2 without attention",
        "olmo": "norms without weights",
        "persimmon": "norms of queries and keys with a bias",
        "bitnet": "ternary weights",
        "yuan": "a localised filter before attention",
        "molmo": "keys of its own",
        "PanguEmbedded": "biases that no public class is at hand for",
    }
)
"""Decoders that are known, with the part for which there is no calculation."""
