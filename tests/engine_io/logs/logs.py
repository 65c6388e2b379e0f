"""Start-up logs in the formats that engines print, written for these tests. The figures are published ones."""

VLLM_V0 = """\
INFO 01-22 10:01:02 api_server.py:712] vLLM API server version 0.6.6.post1
INFO 01-22 10:01:02 api_server.py:713] args: Namespace(host='0.0.0.0', port=8000, api_key='sk-left-out', \
max_num_seqs=256, gpu_memory_utilization=0.9, block_size=16, num_scheduler_steps=1)
INFO 01-22 10:01:09 llm_engine.py:234] Initializing an LLM engine (v0.6.6.post1) with config: \
model='meta-llama/Meta-Llama-3-8B', speculative_config=None, tokenizer='meta-llama/Meta-Llama-3-8B', \
dtype=torch.bfloat16, max_seq_len=8192, download_dir=None, tensor_parallel_size=1, pipeline_parallel_size=1, \
quantization=None, enforce_eager=False, kv_cache_dtype=auto, use_v2_block_manager=True, enable_prefix_caching=False, \
chunked_prefill_enabled=False
INFO 01-22 10:01:30 model_runner.py:1099] Loading model weights took 14.9595 GB
INFO 01-22 10:01:33 worker.py:241] Memory profiling takes 2.31 seconds
INFO 01-22 10:01:33 worker.py:241] the current vLLM instance can use total_gpu_memory (39.50GiB) x \
gpu_memory_utilization (0.90) = 35.55GiB
INFO 01-22 10:01:33 worker.py:241] model weights take 14.96GiB; non_torch_memory takes 0.10GiB; PyTorch activation \
peak memory takes 9.37GiB; the rest of the memory reserved for KV Cache is 11.12GiB.
INFO 01-22 10:01:33 gpu_executor.py:76] # GPU blocks: 5691, # CPU blocks: 2048
INFO 01-22 10:01:33 gpu_executor.py:80] Maximum concurrency for 8192 tokens per request: 11.12x
INFO 01-22 10:01:59 model_runner.py:1535] Graph capturing finished in 23 secs, took 0.36 GiB
"""

VLLM_V0_SHORT = """\
INFO 09-24 08:00:00 llm_engine.py:223] Initializing an LLM engine (v0.6.1.post2) with config: \
model='Qwen/Qwen2.5-0.5B', dtype=torch.float16, max_seq_len=4096, tensor_parallel_size=1, quantization=None, \
kv_cache_dtype=fp8
INFO 09-24 08:00:09 worker.py:232] Memory profiling results: total_gpu_memory=79.11GiB initial_memory_usage=1.52GiB \
peak_torch_memory=2.50GiB memory_usage_post_profile=1.61GiB non_torch_memory=0.62GiB kv_cache_size=68.08GiB \
gpu_memory_utilization=0.90
INFO 09-24 08:00:09 model_runner.py:1025] Loading model weights took 0.9271 GB
INFO 09-24 08:00:09 gpu_executor.py:122] # GPU blocks: 371,802, # CPU blocks: 21845
"""

VLLM_V0_NEGATIVE = """\
INFO 02-26 15:00:00 llm_engine.py:234] Initializing a V0 LLM engine (v0.7.3) with config: \
model='Qwen/Qwen2.5-7B-Instruct-AWQ', dtype=torch.float16, max_seq_len=4096, tensor_parallel_size=1, \
quantization=awq_marlin, enforce_eager=False, kv_cache_dtype=auto
INFO 02-26 15:00:20 model_runner.py:1115] Loading model weights took 5.2032 GB
INFO 02-26 15:00:22 worker.py:267] the current vLLM instance can use total_gpu_memory (8.00GiB) x \
gpu_memory_utilization (0.70) = 5.60GiB
INFO 02-26 15:00:22 worker.py:267] model weights take 5.20GiB; non_torch_memory takes 0.03GiB; PyTorch activation \
peak memory takes 1.42GiB; the rest of the memory reserved for KV Cache is -1.05GiB.
INFO 02-26 15:00:22 executor_base.py:111] # cuda blocks: 0, # CPU blocks: 4681
INFO 02-26 15:00:22 executor_base.py:116] Maximum concurrency for 4096 tokens per request: 0.00x
"""

VLLM_V1 = """\
INFO 09-23 18:11:20 [api_server.py:1896] vLLM API server version 0.10.2
(APIServer pid=11) INFO 09-23 18:11:20 [utils.py:328] non-default args: {'model': '/data/Qwen3-Next-80B-A3B-Instruct', \
'tensor_parallel_size': 2, 'max_num_seqs': 512, 'enable_expert_parallel': True}
(APIServer pid=11) INFO 09-23 18:11:21 [__init__.py:1750] Using max model len 262144
(APIServer pid=11) INFO 09-23 18:11:21 [scheduler.py:222] Chunked prefill is enabled with max_num_batched_tokens=8192.
(APIServer pid=11) INFO 09-23 18:11:22 [config.py:376] Setting attention block size to 544 tokens to ensure that \
attention page size is >= mamba page size.
(EngineCore_DP0 pid=21) INFO 09-23 18:11:30 [core.py:76] Initializing a V1 LLM engine (v0.10.2) with config: \
model='/data/Qwen3-Next-80B-A3B-Instruct', speculative_config=SpeculativeConfig(method='qwen3_next_mtp', \
model='/data/Qwen3-Next-80B-A3B-Instruct', num_spec_tokens=2), dtype=torch.bfloat16, max_seq_len=262144, \
tensor_parallel_size=2, pipeline_parallel_size=1, data_parallel_size=1, quantization=None, enforce_eager=False, \
kv_cache_dtype=auto, device_config=cuda, enable_prefix_caching=True, chunked_prefill_enabled=True
(Worker_TP0_EP0 pid=31) WARNING 09-23 18:12:00 [fused_moe.py:700] Using default MoE config. Performance might be \
sub-optimal! Config file not found at ['/opt/E=256,N=512,device_name=NVIDIA_H200.json']
(Worker_TP0_EP0 pid=31) INFO 09-23 18:12:20 [gpu_model_runner.py:2392] Model loading took 74.2812 GiB and 12.1 seconds
(Worker_TP1_EP1 pid=32) INFO 09-23 18:12:20 [gpu_model_runner.py:2392] Model loading took 74.2812 GiB and 12.2 seconds
(Worker_TP0_EP0 pid=31) INFO 09-23 18:12:40 [gpu_worker.py:298] Available KV cache memory: 44.61 GiB
(Worker_TP1_EP1 pid=32) INFO 09-23 18:12:40 [gpu_worker.py:298] Available KV cache memory: 44.59 GiB
(EngineCore_DP0 pid=21) INFO 09-23 18:12:40 [kv_cache_utils.py:864] GPU KV cache size: 974,000 tokens
(EngineCore_DP0 pid=21) INFO 09-23 18:12:40 [kv_cache_utils.py:868] Maximum concurrency for 262,144 tokens per \
request: 14.78x
(EngineCore_DP0 pid=21) INFO 09-23 18:12:40 [kv_cache_utils.py:864] GPU KV cache size: 973,760 tokens
(EngineCore_DP0 pid=21) INFO 09-23 18:12:40 [kv_cache_utils.py:868] Maximum concurrency for 262,144 tokens per \
request: 14.77x
Capturing CUDA graphs (mixed prefill-decode, PIECEWISE): 100%|#####| 67/67 [00:02<00:00]\
(Worker_TP1_EP1 pid=32) INFO 09-23 18:13:00 [gpu_model_runner.py:3118] Graph capturing finished in 25 secs, took \
2.37 GiB
(Worker_TP1_EP1 pid=32) INFO 09-23 18:13:00 [gpu_worker.py:391] Free memory on device (139.21/139.81 GiB) on startup. \
Desired GPU memory utilization is (0.9, 125.83 GiB). Actual usage is 74.28 GiB for weight, 5.58 GiB for peak \
activation, 1.38 GiB for non-torch memory, and 2.37 GiB for CUDAGraph memory. Replace gpu_memory_utilization config \
with `--kv-cache-memory=46000000000` to fit into requested memory. Current kv cache memory in use is 47878721024 bytes.
(APIServer pid=11) INFO 09-23 18:13:01 [loggers.py:142] Engine 000: vllm cache_config_info with initialization after \
num_gpu_blocks is: 1790
"""

VLLM_CHARGED = """\
(EngineCore pid=9) INFO 07-30 07:10:00 [core.py:114] Initializing a V1 LLM engine (v0.26.1rc1.dev229+g124154a88) with \
config: model='nvidia/GLM-5.2-NVFP4', speculative_config=None, dtype=torch.bfloat16, max_seq_len=131072, \
tensor_parallel_size=4, pipeline_parallel_size=1, data_parallel_size=1, decode_context_parallel_size=2, \
quantization=modelopt_fp4, quantization_config=None, enforce_eager=False, kv_cache_dtype=fp8_e4m3, \
enable_prefix_caching=False
(Worker_TP2 pid=4) INFO 07-30 07:10:40 [gpu_model_runner.py:6737] Estimated CUDA graph memory: 4.99 GiB total
(Worker_TP2 pid=4) INFO 07-30 07:10:41 [gpu_worker.py:560] Available KV cache memory: 50.62 GiB
(Worker_TP2 pid=4) INFO 07-30 07:10:41 [gpu_worker.py:575] CUDA graph memory profiling is enabled (default since \
v0.21.0). The current --gpu-memory-utilization=0.9200 is equivalent to --gpu-memory-utilization=0.8929 without.
(EngineCore pid=9) INFO 07-30 07:10:41 [kv_cache_utils.py:2464] GPU KV cache size: 1,139,456 tokens, Maximum \
concurrency for 131,072 tokens per request: 8.69x
(Worker_TP2 pid=4) INFO 07-30 07:10:50 [gpu_worker.py:793] CUDA graph pool memory: 4.13 GiB (actual), 4.99 GiB \
(estimated), difference: 0.86 GiB (20.9%).
(Worker_TP2 pid=4) INFO 07-30 07:10:50 [gpu_worker.py:857] Free memory on device (181.84/184.31 GiB) on startup. \
Desired GPU memory utilization is (0.92, 169.56 GiB). Actual usage is 106.69 GiB for weight, 6.31 GiB for peak \
activation, 0.95 GiB for non-torch memory, and 4.13 GiB for CUDAGraph memory. Current kv cache memory in use is \
50.62 GiB.
"""

VLLM_CONSUMED = """\
(EngineCore pid=326) INFO 10-06 17:00:00 [core.py:114] Initializing a V1 LLM engine (v0.29.0) with config: \
model='meta-llama/Llama-3.1-8B-Instruct', speculative_config=None, dtype=torch.bfloat16, max_seq_len=131072, \
tensor_parallel_size=1, quantization=None, kv_cache_dtype=auto
(EngineCore pid=326) INFO 10-06 17:00:11 [model_runner.py:407] Model loading took 15.0 GiB memory and 5.420225 seconds
(EngineCore pid=326) INFO 10-06 17:00:33 [gpu_worker.py:692] Available KV cache memory: 56.21 GiB
(EngineCore pid=326) INFO 10-06 17:00:33 [kv_cache_utils.py:2464] GPU KV cache size: 460,496 tokens, Maximum \
concurrency for 131,072 tokens per request: 3.51x
(EngineCore pid=326) INFO 10-06 17:00:41 [gpu_worker.py:955] Free memory on device (78.84/79.25 GiB) on startup. \
Desired GPU memory utilization is (0.92, 72.91 GiB). Actual usage is 15.26 GiB for consumed memory (weights + \
non-torch), 1.44 GiB for peak activation, and 0.23 GiB for CUDAGraph memory.
"""

VLLM_REFUSED = """\
INFO 08-04 03:00:00 [core.py:71] Initializing a V1 LLM engine (v0.10.1.dev101+g12345) with config: \
model='Qwen/Qwen3-Coder-480B-A35B-Instruct-FP8', dtype=torch.bfloat16, max_seq_len=262144, tensor_parallel_size=1, \
data_parallel_size=8, quantization=fp8, kv_cache_dtype=auto
ValueError: To serve at least one request with the models's max seq len (262144), (62.00 GiB KV cache is needed, which \
is larger than the available KV cache memory (48.66 GiB). Based on the available memory, the estimated maximum model \
length is 205728. Try increasing `gpu_memory_utilization`.
"""

SGLANG = """\
[2025-09-11 10:24:00] server_args=ServerArgs(model_path='Qwen/Qwen3-235B-A22B-FP8', tokenizer_path='x', \
host='10.1.2.3', dtype='auto', quantization=None, kv_cache_dtype='auto', context_length=None, \
mem_fraction_static=0.93, max_running_requests=None, chunked_prefill_size=8192, page_size=1, tp_size=4, pp_size=1, \
dp_size=1, ep_size=4, api_key='sk-left-out', disable_radix_cache=False, disable_cuda_graph=False, \
speculative_algorithm=None, speculative_num_steps=None)
[2025-09-11 10:24:23 TP0] Init torch distributed ends. mem usage=1.25 GB
[2025-09-11 10:24:24 TP0] Load weight begin. avail mem=77.43 GB
[2025-09-11 10:24:24 TP1] Load weight begin. avail mem=77.40 GB
[2025-09-11 10:25:33 TP0] Load weight end. type=Qwen3MoeForCausalLM, dtype=torch.bfloat16, avail mem=22.33 GB, mem \
usage=55.10 GB.
[2025-09-11 10:25:34 TP1] Load weight end. type=Qwen3MoeForCausalLM, dtype=torch.bfloat16, avail mem=22.30 GB, mem \
usage=55.10 GB.
[2025-09-11 10:25:43 TP1] KV Cache is allocated. #tokens: 367404, K size: 8.23 GB, V size: 8.23 GB
[2025-09-11 10:25:43 TP0] KV Cache is allocated. #tokens: 367404, K size: 8.23 GB, V size: 8.23 GB
[2025-09-11 10:25:43 TP0] Memory pool end. avail mem=5.22 GB
[2025-09-11 10:26:00 TP0] Capture cuda graph end. Time elapsed: 17.13 s. mem usage=0.93 GB. avail mem=4.26 GB.
[2025-09-11 10:26:01 TP0] max_total_num_tokens=367404, chunked_prefill_size=8192, max_prefill_tokens=16384, \
max_running_requests=2048, context_len=40960, available_gpu_mem=4.26 GB
[2025-09-11 10:26:01] The server is fired up and ready to roll!
"""

SGLANG_OLD = """\
[gpu_id=0] Load weight begin. avail mem=23.34 GB
[gpu_id=0] Load weight end. type=LlamaForCausalLM, dtype=torch.bfloat16, avail mem=8.30 GB
[gpu_id=0] Memory pool end. avail mem=2.44 GB
[gpu_id=0] max_total_num_tokens=56524, max_prefill_tokens=16384, max_running_requests=2049, context_len=8192
"""

SGLANG_DRAFT = """\
[2026-08-28 21:19:23] server_args=ServerArgs(model_path='deepseek-ai/DeepSeek-V3', kv_cache_dtype='fp8_e4m3', \
mem_fraction_static=0.85, tp_size=8, dp_size=8, enable_dp_attention=True, ep_size=8, pp_size=1, page_size=64, \
disable_radix_cache=True, speculative_algorithm='NEXTN', speculative_num_draft_tokens=4)
[2026-08-28 21:19:30 DP0 TP0 EP0] Load weight begin. avail mem=139.00 GB
[2026-08-28 21:32:38 DP0 TP0 EP0] Load weight end. elapsed=787.55 s, type=DeepseekV3ForCausalLM, quant=fp8, avail \
mem=58.01 GB, mem usage=80.99 GB.
[2026-08-28 21:32:39 DP0 TP0 EP0] KV Cache is allocated. dtype: torch.float8_e4m3fn, #tokens: 1024000, KV size: 33.51 GB
[2026-08-28 21:32:50 DP0 TP0 EP0] Capture target decode CUDA graph end. elapsed=25.74 s, mem usage=2.66 GB, avail \
mem=24.45 GB
[2026-08-28 21:33:00 DP0 TP0 EP0] Load weight begin. avail mem=20.81 GB
[2026-08-28 21:34:13 DP0 TP0 EP0] Load weight end. elapsed=94.49 s, type=DeepseekV3ForCausalLMNextN, quant=fp8, avail \
mem=18.51 GB, mem usage=2.30 GB.
[2026-08-28 21:34:14 DP0 TP0 EP0] KV Cache is allocated. dtype: torch.float8_e4m3fn, #tokens: 1024000, KV size: 0.55 GB
[2026-08-28 21:34:20 DP0 TP0 EP0] max_total_num_tokens=1024000, chunked_prefill_size=4096, max_prefill_tokens=16384, \
max_running_requests=256, context_len=163840, available_gpu_mem=14.10 GB
"""

SGLANG_HYBRID = """\
[2026-02-01 00:05:02 TP0] Load weight begin. avail mem=15.24 GB
[2026-02-01 00:05:03 TP0] Load weight end. elapsed=1.25 s, type=GraniteMoeHybridForCausalLM, dtype=torch.bfloat16, \
avail mem=9.26 GB, mem usage=5.98 GB.
[2026-02-01 00:05:03 TP0] Using KV cache dtype: torch.bfloat16
[2026-02-01 00:05:03 TP0] Mamba Cache is allocated. max_mamba_cache_size: 38, conv_state size: 0.03GB, ssm_state \
size: 2.74GB
[2026-02-01 00:05:03 TP0] KV Cache is allocated. #tokens: 399740, K size: 1.52 GB, V size: 1.52 GB
max_total_num_tokens=399740
"""

TENSORRT_CPP = """\
[TensorRT-LLM] TensorRT-LLM version: 0.17.0.post1
[TensorRT-LLM][INFO] Engine version 0.17.0.post1 found in the config file, assuming engine(s) built by new builder API.
[TensorRT-LLM][INFO] TRTGptModel maxNumSequences: 64
[TensorRT-LLM][INFO] TRTGptModel maxBatchSize: 64
[TensorRT-LLM][INFO] TRTGptModel maxSequenceLen: 2048
[TensorRT-LLM][INFO] TRTGptModel maxDraftLen: 0
[TensorRT-LLM][INFO] TRTGptModel maxNumTokens: 8192
[TensorRT-LLM][INFO] Loaded engine size: 6695 MiB
[TensorRT-LLM][INFO] [MemUsageChange] Allocated 1134.01 MiB for execution context memory.
[TensorRT-LLM][INFO] [MemUsageChange] Allocated 43.29 MB GPU memory for runtime buffers.
[TensorRT-LLM][INFO] [MemUsageChange] Allocated 180.30 MB GPU memory for decoder.
[TensorRT-LLM][INFO] Memory usage when calculating max tokens in paged kv cache: total: 79.10 GiB, available: 70.48 GiB
[TensorRT-LLM][INFO] Number of blocks in KV cache primary pool: 4060
[TensorRT-LLM][INFO] Number of blocks in KV cache secondary pool: 0, onboard blocks to primary memory before reuse: true
[TensorRT-LLM][INFO] KV cache block reuse is enabled
[TensorRT-LLM][INFO] Number of tokens per block: 64.
[TensorRT-LLM][INFO] [MemUsageChange] Allocated 63.44 GiB for max tokens in paged KV cache (259840).
"""

TENSORRT_PYTORCH = """\
[TensorRT-LLM] TensorRT LLM version: 1.1.0rc3
[12/20/2025-04:20:04] [TRT-LLM] [I] Using LLM with PyTorch backend
TensorRT-LLM engine args: {'model': 'openai/gpt-oss-120b', 'tensor_parallel_size': 1, 'pipeline_parallel_size': 1}
[12/20/2025-04:20:21] [TRT-LLM] [I] Use 63.32 GB for model weights.
[TensorRT-LLM][INFO] Max KV cache blocks per sequence: 2710 [window size=86720], tokens per block=32, primary \
blocks=257, secondary blocks=0, max sequence length=8224
[TensorRT-LLM][INFO] [MemUsageChange] Allocated 0.56 GiB for max tokens in paged KV cache (8224).
[12/20/2025-04:21:50] [TRT-LLM] [I] Memory used after loading model weights (inside torch) in memory usage profiling: \
63.52 GiB
[12/20/2025-04:21:51] [TRT-LLM] [I] Memory dynamically allocated during inference (inside torch) in memory usage \
profiling: 0.85 GiB
[12/20/2025-04:21:51] [TRT-LLM] [I] Memory used outside torch (e.g., NCCL and CUDA graphs) in memory usage profiling: \
49.28 GiB
[12/20/2025-04:21:51] [TRT-LLM] [I] Peak memory during memory usage profiling (torch + non-torch): 113.65 GiB, \
available KV cache memory when calculating max tokens: 5.95 GiB, fraction is set 0.8999999761581421, kv size is 73728. \
device total memory 119.70 GiB, , tmp kv_mem 0.56 GiB
[TensorRT-LLM][INFO] Max KV cache blocks per sequence: 2710 [window size=86720], tokens per block=32, primary \
blocks=2710, secondary blocks=0, max sequence length=86720
[TensorRT-LLM][INFO] [MemUsageChange] Allocated 5.95 GiB for max tokens in paged KV cache (86720).
[12/20/2025-04:21:52] [TRT-LLM] [I] max_seq_len=86720, max_num_requests=64, max_num_tokens=8192, max_batch_size=64
"""

LLAMA_CPP = """\
ggml_cuda_init: found 2 CUDA devices:
  Device 0: NVIDIA GeForce RTX 3090, compute capability 8.6, VMM: yes
  Device 1: NVIDIA GeForce RTX 3090, compute capability 8.6, VMM: yes
build: 6182 (1a2b3c4d) with cc (GCC) 13.2.0 for x86_64-linux-gnu
main: loading model
srv    load_model: loading model '/models/Qwen3-30B-A3B-Q4_K_M.gguf'
llama_model_load_from_file_impl: using device CUDA0 (NVIDIA GeForce RTX 3090) - 23887 MiB free
llama_model_loader: loaded meta data with 35 key-value pairs and 579 tensors from /models/Qwen3-30B-A3B-Q4_K_M.gguf \
(version GGUF V3 (latest))
llama_model_loader: - kv   2:                               general.name str              = Qwen3-30B-A3B
print_info: file type   = Q4_K - Medium
print_info: file size   = 17.28 GiB (4.86 BPW)
load_tensors: offloaded 49/49 layers to GPU
load_tensors:        CUDA0 model buffer size =  8867.11 MiB
load_tensors:        CUDA1 model buffer size =  8656.20 MiB
load_tensors:   CPU_Mapped model buffer size =   166.92 MiB
llama_context: n_seq_max     = 4
llama_context: n_ctx         = 32768
llama_context: n_ctx_per_seq = 8192
llama_context: n_batch       = 2048
llama_context: n_ubatch      = 512
llama_context:  CUDA_Host  output buffer size =     2.32 MiB
llama_kv_cache_unified:      CUDA0 KV buffer size =  1600.00 MiB
llama_kv_cache_unified:      CUDA1 KV buffer size =  1472.00 MiB
llama_kv_cache_unified: size = 3072.00 MiB (  8192 cells,  48 layers,  4/4 seqs), K (f16): 1536.00 MiB, \
V (f16): 1536.00 MiB
llama_context:      CUDA0 compute buffer size =   300.75 MiB
llama_context:      CUDA1 compute buffer size =   388.76 MiB
llama_context:  CUDA_Host compute buffer size =   168.02 MiB
srv          init: initializing slots, n_slots = 4
main: server is listening on http://127.0.0.1:8080 - starting the main loop
"""

LLAMA_CPP_2024 = """\
build: 4067 (54ef9cfc) with cc (GCC) 13.2.0
llm_load_print_meta: model ftype      = Q8_0
llm_load_print_meta: model size       = 7.95 GiB (8.50 BPW)
llm_load_print_meta: general.name     = Meta Llama 3.1 8B Instruct
llm_load_tensors: offloaded 20/33 layers to GPU
llm_load_tensors:      CUDA0 buffer size =  4403,49 MiB
llama_new_context_with_model: n_ctx      = 8192
llama_new_context_with_model: n_batch    = 2048
llama_new_context_with_model: n_ubatch   = 512
llama_kv_cache_init:      CUDA0 KV buffer size =   544.00 MiB
llama_new_context_with_model: KV self size  =  544.00 MiB, K (q8_0):  272.00 MiB, V (q8_0):  272.00 MiB
llama_new_context_with_model:      CUDA0 compute buffer size =   560.00 MiB
"""

LLAMA_CPP_WINDOW = """\
0.00.866.381 I print_info: file type   = BF16
0.13.993.897 I load_tensors:      Vulkan0 model buffer size =  7401.00 MiB
0.16.760.453 I llama_context: n_seq_max     = 1
0.16.760.453 I llama_context: n_ctx         = 32768
0.16.760.453 I llama_context: n_ctx_seq     = 32768
0.16.760.453 I llama_context: n_ubatch      = 512
llama_kv_cache_iswa: creating non-SWA KV cache, size = 32768 cells
llama_kv_cache:    Vulkan0 KV buffer size =   416.00 MiB
llama_kv_cache: size =  416.00 MiB ( 32768 cells,  13 layers,  1/1 seqs), K (f16):  208.00 MiB, V (f16):  208.00 MiB
llama_kv_cache_iswa: creating     SWA KV cache, size =  2560 cells
llama_kv_cache:    Vulkan0 KV buffer size =    97.50 MiB
llama_kv_cache: size =   97.50 MiB (  2560 cells,  39 layers,  1/1 seqs), K (f16):   48.75 MiB, V (f16):   48.75 MiB
llama_memory_recurrent:    Vulkan0 RS buffer size =    50.25 MiB
sched_reserve:    Vulkan0 compute buffer size =   416.16 MiB
"""

IK_LLAMA_CPP = """\
main: build = 3840 (15d33d5a)
llm_load_print_meta: model ftype      = IQ4_XS
llm_load_tensors:  CUDA_Host buffer size = 200000.00 MiB
llm_load_tensors:      CUDA0 buffer size =  9335.00 MiB
llama_init_from_model: n_ctx         = 131072
llama_init_from_model: n_batch       = 4096
llama_init_from_model: n_ubatch      = 4096
llama_init_from_model: mla_attn      = 3
llama_kv_cache_init:      CUDA0 KV buffer size =  4666.50 MiB
llama_init_from_model: KV self size  = 4666.50 MiB, c^KV (q8_0): 4666.50 MiB, kv^T: not used
llama_init_from_model:      CUDA0 compute buffer size =  7376.02 MiB
"""

ALL = {
    "vllm": (VLLM_V0, VLLM_V0_SHORT, VLLM_V0_NEGATIVE, VLLM_V1, VLLM_CHARGED, VLLM_CONSUMED, VLLM_REFUSED),
    "sglang": (SGLANG, SGLANG_OLD, SGLANG_DRAFT, SGLANG_HYBRID),
    "tensorrt-llm": (TENSORRT_CPP, TENSORRT_PYTORCH),
    "llama.cpp": (LLAMA_CPP, LLAMA_CPP_2024, LLAMA_CPP_WINDOW, IK_LLAMA_CPP),
}
EVERY_LOG = tuple((engine, log) for engine, logs in ALL.items() for log in logs)
