"""Models in files: JSON, safetensors and Parquet in one ZIP, without pickle."""
