"""Priors of one mode's factors psi = Phi B + E: statistics of the data in, mean or draw out.

Here are the weights B, their precisions tau and Lambda; E is in `tuckergp.residuals`.
"""
