"""Two ways to record a forward pass and run it again: CUDA graphs on a GPU, operators on a CPU."""
