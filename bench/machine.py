"""The machine that is measured on."""
import os
import platform
import re
from pathlib import Path

FEATURES = ("sse4_2", "avx", "avx2", "fma", "avx512f", "avx512bw", "avx512_vnni", "avx512_bf16",
            "amx_tile")


def cpu_facts():
    """Returns the processor's name, and those of the features above that it has."""
    text = Path("/proc/cpuinfo").read_text()

    def first(field):
        found = re.search(rf"^{field}\s*:\s*(.*)$", text, re.M)
        return found[1] if found else None

    flags = set((first("flags") or "").split())
    return first("model name") or platform.machine(), [f for f in FEATURES if f in flags]


def has_wide_vectors():
    return "avx512f" in cpu_facts()[1]


def physical_cores():
    """Returns one processor of each core that this process may use."""
    cores = {}
    for cpu in sorted(os.sched_getaffinity(0)):
        path = Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list")
        cores.setdefault(path.read_text() if path.exists() else cpu, cpu)
    return list(cores.values())


def caches():
    """Returns {"L2": bytes, …} of the first processor."""
    found = {}
    for index in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*"):
        if (index / "type").read_text().strip() != "Instruction":
            size = (index / "size").read_text().strip()
            found["L" + (index / "level").read_text().strip()] = int(size.rstrip("K")) * 1024
    return dict(sorted(found.items()))


def facts():
    processor, features = cpu_facts()
    pages, size = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
    return {"processor": processor, "features": features, "cores": os.cpu_count(),
            "caches": caches(), "memory_bytes": pages * size,
            "system": f"{platform.system()} {platform.release()}"}
