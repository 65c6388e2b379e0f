"""The engine of an answer in words: whose rules divide the memory is said wherever its name stands."""

from app.answer import Answer
from app.calc.engines.ideal import IdealPolicy


def engine_words(answered: Answer) -> str:
    """The engine with its release; and the other one, if it is treated as that, or runs it."""
    named, rules, version = answered.engine, answered.rules, answered.scenario.engine.version
    release = f" {version}" if version else ""
    if named.treated_as is not None:
        return f"{named.name}{release}, treated as {rules.name}, from which it grew"
    if named is not rules:
        return f"{named.name} with {rules.name}{release} underneath"
    return f"{named.name}{release}"


def settings_words(answered: Answer) -> str:
    """What the engine works with now, chosen or its own default, in a line."""
    deployment = answered.evaluation.deployment
    engine = deployment.engine
    parts = [f"share {engine.memory_utilization:g}"]
    if not isinstance(engine.policy, IdealPolicy):
        sized = engine.max_num_seqs or engine.profiled_seqs
        parts += [
            f"{engine.step_tokens:,} tokens a step",
            f"buffers for {sized:,} sequences",
            f"blocks of {engine.block_tokens:,}" if engine.block_tokens > 1 else "no blocks",
            f"prefix caching {'on' if engine.prefix_caching else 'off'}",
        ]
    parts.append(f"sequences of up to {deployment.max_model_len:,} tokens")
    return f"Now: {', '.join(parts)}."
