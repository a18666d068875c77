"""The paper's experiments and further ones, which ``tuckergp reproduce`` runs; the library does not need them.

An `Experiment` has cells, named pieces of work whose figures are kept in a JSON file, and blocks, which show them: the
same definitions make the report and the tables of the documentation. All experiments are listed in `experiments`.
"""
