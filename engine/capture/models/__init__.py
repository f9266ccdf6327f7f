"""The reference decoder: random weights, the layer pattern of the model it stands for."""
