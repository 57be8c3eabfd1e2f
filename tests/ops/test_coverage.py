"""Every function that ops.h declares is called by a test of this folder, and so is every one of
tensor.h that makes a tensor from nothing. (The X-macro lists are walked entry by entry.)"""

import re
import sys
from pathlib import Path

from binding import BINARY, OPS, REDUCE, TENSOR, UNARY

listed = {name for name, _ in [*UNARY, *BINARY, *REDUCE]}
made = {name for name, (_, parameters) in TENSOR.items()
        if parameters[:1] == ["tn_context *context"] and not name.startswith(("dim_", "wrap_"))}
made -= {"realize", "custom"}

text = "".join(p.read_text() for p in Path(__file__).parent.glob("*.py"))
called = set(re.findall(r"\btn\.(\w+)\(", text)) | set(re.findall(r"self\.(\w+)\(", text))
called |= {name for name in re.findall(r'[("](\w+)"', text) if name in OPS}
called |= {"from_host"} if "lib.tn_from_host(" in text else set()

expected = (set(OPS) - listed) | made
missing = sorted(expected - called)
print(f"{len(OPS)} operations and {len(made)} functions that make tensors; "
      f"{len(missing)} not tested: {' '.join(missing)}")
tables_walked = all(f"in enumerate({name})" in text for name in ("UNARY", "BINARY", "REDUCE"))
sys.exit(bool(missing) or not tables_walked or len(OPS) < 120)
