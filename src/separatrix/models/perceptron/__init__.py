"""The perceptron and its variants."""
