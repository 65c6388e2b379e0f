"""The names under which published configurations give one and the same size; the first is the usual one."""

HIDDEN = ("hidden_size", "n_embd", "n_embed", "d_model", "dim", "model_dim", "emb_size")
LAYERS = ("num_hidden_layers", "num_layers", "n_layer", "n_layers")
HEADS = ("num_attention_heads", "n_head", "n_heads", "num_heads", "num_q_heads")
KV_HEADS = ("num_key_value_heads", "n_kv_heads", "num_kv_heads", "n_head_kv", "multi_query_group_num")
HEAD_DIM = ("head_dim", "attention_head_dim", "kv_channels", "d_head")
WIDTH = ("intermediate_size", "n_inner", "ffn_dim", "ffn_hidden_size", "hidden_dim")
VOCABULARY = ("vocab_size", "padded_vocab_size")
CONTEXT = (
    "max_position_embeddings",
    "max_position_embedding",
    "n_positions",
    "max_seq_len",
    "seq_length",
    "model_max_length",
    "max_sequence_length",
    "max_seq_length",
)
WINDOW = ("sliding_window", "sliding_window_size", "window_size")
EXPERTS = ("n_routed_experts", "num_experts", "num_local_experts", "moe_num_experts")
PER_TOKEN = (
    "num_experts_per_tok",
    "num_experts_per_token",
    "moe_topk",
    "moe_top_k",
    "moe_k",
    "top_k_experts",
    "experts_per_token",
)
EXPERT_WIDTH = ("moe_intermediate_size", "expert_ffn_hidden_size", "expert_intermediate_size")
SHARED_EXPERTS = ("n_shared_experts", "num_shared_experts", "num_shared_expert", "moe_num_shared_experts")
MTP_LAYERS = ("num_nextn_predict_layers", "mtp_num_hidden_layers")
DTYPE = ("torch_dtype", "dtype")
