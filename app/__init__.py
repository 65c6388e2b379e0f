"""Tokenroof: does a language model fit on an accelerator, how fast can it be, and what is in the way?"""
