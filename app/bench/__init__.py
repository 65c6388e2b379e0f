"""Results of benchmark tools: read, laid over the prediction, and fitted to."""
