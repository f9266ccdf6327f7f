"""What the GPU's memory decides: chunk size, capture sizes, the static memory fraction."""
