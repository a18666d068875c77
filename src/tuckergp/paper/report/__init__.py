"""The paper's tables and figures, ours beside them, as one page: what is run, what is shown, how it is written."""
