"""The paper's experiments, one module each, runnable with ``python -m``.

Each writes one small JSON file that holds everything its tables are made from. Nothing here is needed to use the
library.
"""
