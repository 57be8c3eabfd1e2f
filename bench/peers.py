"""The table of peers: who they are, the kinds of work that each runs, and how it is kept to threads
and instruction sets."""
from dataclasses import dataclass, field

ISAS = {"native": "all that the processor has", "v3": "x86-64-v3, AVX2 and FMA"}
ARRAYS = frozenset({"matmul", "conv", "attention", "softmax", "layernorm", "gelu", "add", "copy"})
MOVING = frozenset({"softmax", "layernorm", "gelu", "add", "copy"})
ORDER = frozenset({"cumsum", "sort", "topk", "scatter", "nonzero"})
FILES = frozenset({"network", "model"})


@dataclass(frozen=True)
class Peer:
    name: str
    title: str
    side: str        # module of sides/, and its argument after a colon
    runs: frozenset  # kinds of workloads that it runs
    environment: dict = field(default_factory=dict)  # {threads} and {build} are substituted
    v3: dict | None = None  # variables that limit it to x86-64-v3; None: it cannot be limited
    of_its_own: bool = True  # it computes the workload; False: it moves as many bytes

    def variables(self, threads, isa, build):
        """Returns {name: value, or None to unset the variable}."""
        fill = {"threads": threads, "build": build}
        made = {k: None for peer in PEERS for k in peer.v3 or {}}
        made.update(self.environment)
        if isa == "v3":
            made.update(self.v3 or {})
        return {k: v and v.format(**fill) for k, v in made.items()}


# The first is the reference of the others. Copies are not restricted in instruction sets, as memory
# limits them.
PEERS = (
    Peer("tenon", "Tenon", "tenon", ARRAYS | ORDER | FILES, {"TENON_THREADS": "{threads}"},
         {"TENON_CPU": "x86-64-v3"}),
    Peer("onednn", "oneDNN", "native:onednn", frozenset({"matmul", "conv"}),
         {"OMP_NUM_THREADS": "{threads}"},
         {"DNNL_MAX_CPU_ISA": "AVX2", "ONEDNN_MAX_CPU_ISA": "AVX2"}),
    Peer("openblas", "OpenBLAS", "native:openblas", frozenset({"matmul"}),
         {"OPENBLAS_NUM_THREADS": "{threads}"}, {"OPENBLAS_CORETYPE": "Haswell"}),
    Peer("onnxruntime", "ONNX Runtime", "onnxruntime", ARRAYS | ORDER - {"sort"} | FILES),
    Peer("openvino", "OpenVINO", "openvino", FILES, v3={"ONEDNN_MAX_CPU_ISA": "AVX2"}),
    Peer("pytorch", "PyTorch", "pytorch", ARRAYS | ORDER | {"network"},
         {"OMP_NUM_THREADS": "{threads}"},
         {"ATEN_CPU_CAPABILITY": "avx2", "DNNL_MAX_CPU_ISA": "AVX2", "ONEDNN_MAX_CPU_ISA": "AVX2",
          "MKL_ENABLE_INSTRUCTIONS": "AVX2"}),
    Peer("tinygrad", "tinygrad", "tinygrad", ARRAYS - {"copy"},
         {"DEV": "CPU", "CC": "clang-14", "NUM_CPU_THREADS": "{threads}",
          "CACHEDB": "{build}/bench/tinygrad.db"},
         {"DEV": "CPU:CLANG:x86_64,x86-64-v3"}),
    Peer("memcpy", "memcpy", "native:memcpy", MOVING, v3={}, of_its_own=False),
    Peer("stream", "streaming copy", "native:stream", MOVING, v3={}, of_its_own=False),
)
TENON = PEERS[0]
BY_NAME = {peer.name: peer for peer in PEERS}
COPIES = ("memcpy", "stream")
RIVALS = ("onnxruntime", "openvino")  # the better one is what networks are compared with
