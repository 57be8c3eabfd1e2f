"""Networks of real size, by their libraries' own definitions, with seeded weights: what the benchmark
exports to ONNX. Needs PyTorch, torchvision, timm and transformers."""
