"""Networks of real size with seeded weights, by their libraries' own definitions, and their export
to ONNX. `catalogue` lists those of the benchmark, `families` those of families.txt. Building one
needs PyTorch and the library that defines it; listing them needs neither."""
