"""Figures 4 and 5 of the paper: a convolutional and a residual network tuned live. Needs PyTorch."""
