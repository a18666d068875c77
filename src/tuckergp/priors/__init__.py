"""Priors of one mode's factors psi = Phi B + E: statistics of the data in, mean or draw out.

`rows`: E has independent rows (an Identity term). `weights`: no E, the features alone.
"""
