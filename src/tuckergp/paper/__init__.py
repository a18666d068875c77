"""The paper's experiments, and those beyond it: one object each, one list (`experiments`), one command, one writer.

``tuckergp reproduce`` runs them. An `Experiment` has cells, named pieces of work whose figures are kept in a JSON file,
and blocks, which show them: the same definitions make the report and the tables of the documentation. Nothing here is
needed to use the library.
"""
