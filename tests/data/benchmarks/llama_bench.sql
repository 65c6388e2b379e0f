CREATE TABLE IF NOT EXISTS llama_bench (
  build_commit TEXT,
  n_prompt INTEGER,
  avg_ts REAL
);

INSERT INTO llama_bench (build_commit, n_prompt, avg_ts) VALUES ('8cf427ff', '512', '7100.00');
