"""How a checkpoint's weights are stored: the dialects of quantization settings read as one weight plan."""
