"""One function a figure: an Evaluation in, a figure out. No drawing library is imported."""
