"""The formulas of optimizations that change what a deployment holds, or how long it takes."""
