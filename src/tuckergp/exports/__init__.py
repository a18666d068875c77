"""Models for other people's serving: vectors in Parquet files, indexes of Faiss and hnswlib, an ONNX graph."""

from tuckergp.exports.export import EXPORTS, export

__all__ = ["EXPORTS", "export"]
