"""A model behind HTTP: one app per model file, answers as JSON, fold-ins shared by all workers (extra ``serve``)."""
