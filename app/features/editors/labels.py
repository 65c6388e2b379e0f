"""What the editor calls each field and kind: the words of the field, with the unit where there is one."""

from collections.abc import Mapping
from types import MappingProxyType

KINDS: Mapping[str, str] = MappingProxyType(
    {
        "grouped": "Attention: MHA, GQA or MQA",
        "latent": "Latent attention (MLA)",
        "sparse_latent": "Sparse latent attention",
        "block_sparse": "Block-sparse attention",
        "compressed": "Compressed attention",
        "gated_delta_net": "Gated delta-net",
        "kimi_delta": "Kimi delta attention",
        "lightning": "Lightning attention",
        "mamba": "Mamba",
        "mamba2": "Mamba-2",
        "parallel_mamba2": "Attention beside Mamba-2",
        "rg_lru": "RG-LRU",
        "rwkv6": "RWKV-6",
        "rwkv7": "RWKV-7",
        "short_convolution": "Short convolution",
        "dense": "Feed-forward block",
        "experts": "Experts",
        "channel_mix": "Channel mixing",
    }
)


LABELS: Mapping[str, str] = MappingProxyType(
    {
        "attention": "Attention",
        "bias": "Biases",
        "block": "Positions of a block",
        "chunk": "Chunk, tokens",
        "compression": "Positions of a row",
        "conv_width": "Convolution width",
        "correction_bias": "Correction bias",
        "count": "Layers",
        "decay_rank": "Rank of the decay",
        "dim": "Width",
        "dt_rank": "Rank of the step",
        "duplicate_params": "Copied parameters",
        "full_rank_gate": "Full-rank gate",
        "gated": "Gated",
        "gate_rank": "Rank of the gate",
        "gated_norm": "Norm after the state",
        "gathered": "Read a token, elements",
        "groups": "Groups",
        "hash_table": "Hash table, rows",
        "head_bias": "Bias of the head",
        "head_dim": "Head width",
        "heads": "Heads",
        "hidden_size": "Hidden size",
        "identity_experts": "Identity experts",
        "index_dim": "Index width",
        "index_heads": "Index heads",
        "indexer": "Indexer",
        "inner": "Inner width",
        "inner_norms": "Inner norms",
        "intermediate_size": "Width",
        "joint_params": "Joining parameters",
        "key_dim": "Key width",
        "key_heads": "Key heads",
        "kv_projection": "Keys and values projected",
        "kv_rank": "Rank of keys and values",
        "latent": "Latent attention",
        "latent_norm": "Norm before the experts",
        "latent_size": "Latent width",
        "learned_positions": "Learned positions, rows",
        "low_rank": "Rank of the decay",
        "mamba": "Mamba-2",
        "max_position": "Context, tokens",
        "mix_rank": "Rank of a mixture",
        "n_experts": "Experts",
        "n_heads": "Heads",
        "n_kv_heads": "KV heads",
        "name": "Name",
        "nope_dim": "Width without position",
        "norm_bias": "Norms have a bias",
        "norms": "Norms a layer",
        "o_groups": "Output groups",
        "o_rank": "Output rank",
        "output_bias": "Output bias",
        "output_gate": "Output gate",
        "overlap": "Strides a row looks back",
        "params": "Matrix parameters",
        "per_token": "Experts a token",
        "q_rank": "Rank of queries",
        "qk_norm": "Query and key norm",
        "qkv_bias": "Query, key, value bias",
        "query_rank": "Rank of queries",
        "rate_rank": "Rank of the learning rate",
        "receptance": "Gated by receptance",
        "rope_dim": "Rotary width",
        "router_bias": "Router bias",
        "router_scales": "Router scales",
        "shared_gate": "Gate of the shared",
        "shared_size": "Shared width, all",
        "shares_cache": "Reads an earlier cache",
        "shifted": "Row of the token shift",
        "sinks": "Sinks",
        "state_dtype": "Type of the state",
        "state_size": "State size",
        "tied_embeddings": "Head tied to embedding",
        "top": "Positions kept",
        "top_blocks": "Blocks kept",
        "unquantized": "Left unquantized",
        "v_dim": "Value width",
        "v_head_dim": "Value width, if other",
        "value_dim": "Value width",
        "value_heads": "Value heads",
        "value_rank": "Rank of the values taken over",
        "vectors": "Vector elements",
        "vision_params": "Vision tower, parameters",
        "vocab_size": "Vocabulary",
        "weighs_heads": "Weighs its heads",
        "window": "Window, tokens",
    }
)


EMPTY: Mapping[str, str] = MappingProxyType(
    {
        "chunk": "none",
        "latent_size": "hidden size",
        "q_rank": "one matrix",
        "query_rank": "one matrix",
        "v_head_dim": "as keys",
        "value_rank": "first layer",
        "window": "all",
    }
)
"""What an empty optional field means, where it is not "none"."""


GROUPS: Mapping[str, str] = MappingProxyType(
    {
        "attention": "attention",
        "feed_forward": "feed-forward",
        "shared_experts": "shared experts",
        "routed_experts": "routed experts",
        "router": "router",
        "side_paths": "side paths",
    }
)


def label_of(name: str) -> str:
    """The words for a field; every one has some, and the tests see to it."""
    return LABELS[name]
