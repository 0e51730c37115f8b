"""Models that leave Python: safe files, SQL, ONNX, JSON."""
