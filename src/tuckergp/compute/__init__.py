"""Compiled kernels: arrays in, arrays out. Nothing here knows of tables, kernels or priors.

The factors psi_d of all modes are passed as one flat array, so that one compiled signature serves any number of
modes and any ranks: row m of mode d starts at ``start[d] + m * ranks[d]``. Each kernel has a NumPy twin in the tests.
"""
