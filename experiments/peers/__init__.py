"""FABOLAS and the tools that people use, on the same problems, by the same simulated clock."""
