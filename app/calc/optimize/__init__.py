"""Optimizations as what-ifs: the same scenario without and with each of them."""
