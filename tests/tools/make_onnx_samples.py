#!/usr/bin/env python3
"""Writes the sample ONNX files of tests/data/onnx and, beside each, a text of its contents.

    make_onnx_samples.py DEST           writes the samples
    make_onnx_samples.py --dump MODEL   prints the text of one model

tests/unit/test_onnx_proto.c prints the same text from what the C reader found. The text is made
here from the objects of the Python package onnx, and element data by NumPy. Needs onnx >= 1.19.
"""

import pathlib
import sys

import numpy
import onnx
from onnx import AttributeProto, TensorProto, TypeProto, helper, numpy_helper

NAMES = {
    1: "f32", 2: "u8", 3: "i8", 4: "u16", 5: "i16", 6: "i32", 7: "i64", 8: "string", 9: "bool",
    10: "f16", 11: "f64", 12: "u32", 13: "u64", 14: "c64", 15: "c128", 16: "bf16",
    17: "f8e4m3fn", 18: "f8e4m3fnuz", 19: "f8e5m2", 20: "f8e5m2fnuz", 21: "u4", 22: "i4",
    23: "f4e2m1", 24: "f8e8m0", 25: "u2", 26: "i2", 27: "f6e2m3", 28: "f6e3m2",
}
BITS = {
    1: 32, 2: 8, 3: 8, 4: 16, 5: 16, 6: 32, 7: 64, 9: 8, 10: 16, 11: 64, 12: 32, 13: 64, 14: 64,
    15: 128, 16: 16, 17: 8, 18: 8, 19: 8, 20: 8, 21: 4, 22: 4, 23: 4, 24: 8, 25: 2, 26: 2, 27: 6,
    28: 6,
}


# --- the text ---


def quote(text):
    data = text.encode("utf-8", "surrogateescape") if isinstance(text, str) else text
    plain = lambda c: 32 <= c < 127 and c not in (34, 92)
    return '"' + "".join(chr(c) if plain(c) else f"\\x{c:02x}" for c in data) + '"'


def digest(data):
    if len(data) <= 64:
        return data.hex() or "-"
    h = 0xCBF29CE484222325
    for byte in data:
        h = (h ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return f"fnv:{h:016x}"


def pack(codes, bits):
    """Packs elements smaller than a byte, from the lowest bit up."""
    stream = 0
    for i, code in enumerate(codes):
        stream |= (int(code) & (1 << bits) - 1) << i * bits
    return stream.to_bytes((len(codes) * bits + 7) // 8, "little")


def unpack(data, bits, count):
    """Returns a byte for each element of 4 or 2 bits."""
    return bytes(data[i * bits // 8] >> i * bits % 8 & (1 << bits) - 1 for i in range(count))


def tensor_bytes(t, folder):
    bits = BITS[t.data_type]
    data = packed_bytes(t, folder)
    return unpack(data, bits, int(numpy.prod(list(t.dims), dtype=numpy.int64))) if bits in (2, 4) else data


def packed_bytes(t, folder):
    bits = BITS[t.data_type]
    if t.data_location == TensorProto.EXTERNAL:
        where = {e.key: e.value for e in t.external_data}
        count = int(numpy.prod(list(t.dims), dtype=numpy.int64))
        at, n = int(where.get("offset", 0)), (count * bits + 7) // 8
        return (folder / where["location"]).read_bytes()[at : at + n]
    if t.HasField("raw_data"):
        return t.raw_data
    if bits >= 8:
        return numpy_helper.to_array(t).tobytes()
    if bits == 6:
        return pack(t.int32_data, 6)
    return pack(t.int32_data, 8)


def shape(dims):
    return "[" + ",".join(str(d) for d in dims) + "]"


def dump_tensor(t, out, folder):
    head = f"tensor {quote(t.name)} {NAMES[t.data_type]} {shape(t.dims)}"
    if t.data_type == TensorProto.STRING:
        out.append(head + "".join(" " + quote(s) for s in t.string_data))
        return
    if t.data_location == TensorProto.EXTERNAL:
        where = {e.key: e.value for e in t.external_data}
        head += f" at {quote(where['location'])} {where.get('offset', 0)}"
    data = tensor_bytes(t, folder)
    out.append(f"{head} {len(data)} {digest(data)}")


def dim_text(d):
    kind = d.WhichOneof("value")
    if kind == "dim_param" and d.dim_param:
        return quote(d.dim_param)
    return str(d.dim_value) if kind == "dim_value" and d.dim_value >= 0 else "?"


def type_text(t):
    kind = t.WhichOneof("value")
    if kind == "tensor_type":
        tensor = t.tensor_type
        dims = shape(dim_text(d) for d in tensor.shape.dim) if tensor.HasField("shape") else ""
        return f"tensor({tensor.elem_type}{dims})"
    if kind == "sequence_type":
        return f"sequence({elem_text(t.sequence_type, 'elem_type')})"
    if kind == "optional_type":
        return f"optional({elem_text(t.optional_type, 'elem_type')})"
    if kind == "map_type":
        return f"map({t.map_type.key_type},{elem_text(t.map_type, 'value_type')})"
    return "none"


def elem_text(holder, field):
    return type_text(getattr(holder, field)) if holder.HasField(field) else "none"


def f32_bits(x):
    return numpy.float32(x).tobytes()[::-1].hex()


def dump_attribute(a, out, folder):
    head = f"attribute {quote(a.name)} {quote(a.ref_attr_name)} {a.type}"
    kinds = AttributeProto
    values = {
        kinds.FLOAT: lambda: [f32_bits(a.f)],
        kinds.INT: lambda: [str(a.i)],
        kinds.STRING: lambda: [quote(a.s)],
        kinds.FLOATS: lambda: [f32_bits(x) for x in a.floats],
        kinds.INTS: lambda: [str(x) for x in a.ints],
        kinds.STRINGS: lambda: [quote(x) for x in a.strings],
        kinds.TYPE_PROTO: lambda: [type_text(a.tp)] if a.HasField("tp") else [],
        kinds.TYPE_PROTOS: lambda: [type_text(x) for x in a.type_protos],
    }
    out.append(" ".join([head] + values.get(a.type, list)()))
    tensors = [a.t] if a.type == kinds.TENSOR and a.HasField("t") else []
    for t in tensors + (list(a.tensors) if a.type == kinds.TENSORS else []):
        dump_tensor(t, out, folder)
    graphs = [a.g] if a.type == kinds.GRAPH and a.HasField("g") else []
    for g in graphs + (list(a.graphs) if a.type == kinds.GRAPHS else []):
        dump_graph(g, out, folder)


def names_text(names):
    return "(" + " ".join(quote(n) for n in names) + ")"


def dump_node(n, out, folder):
    head = " ".join(quote(x) for x in (n.name, n.op_type, n.domain, n.overload))
    out.append(f"node {head} {names_text(n.input)} {names_text(n.output)}")
    for a in n.attribute:
        dump_attribute(a, out, folder)


def dump_values(what, values, out):
    for v in values:
        out.append(f"{what} {quote(v.name)} {type_text(v.type)}")


def dump_graph(g, out, folder):
    out.append(f"graph {quote(g.name)}")
    dump_values("input", g.input, out)
    dump_values("output", g.output, out)
    dump_values("value", g.value_info, out)
    for t in g.initializer:
        dump_tensor(t, out, folder)
    for n in g.node:
        dump_node(n, out, folder)
    out.append("end")


def dump_opsets(opsets, out):
    for o in opsets:
        out.append(f"opset {quote(o.domain)} {o.version}")


def dump_function(f, out, folder):
    head = " ".join(quote(x) for x in (f.name, f.domain, f.overload))
    lists = " ".join(names_text(x) for x in (f.input, f.output, f.attribute))
    out.append(f"function {head} {lists}")
    dump_opsets(f.opset_import, out)
    dump_values("value", f.value_info, out)
    for a in f.attribute_proto:
        dump_attribute(a, out, folder)
    for n in f.node:
        dump_node(n, out, folder)
    out.append("end")


def dump(m, folder):
    texts = " ".join(quote(x) for x in (m.producer_name, m.producer_version, m.domain))
    out = [f"model {m.ir_version} {m.model_version} {texts}"]
    dump_opsets(m.opset_import, out)
    for e in m.metadata_props:
        out.append(f"metadata {quote(e.key)} {quote(e.value)}")
    dump_graph(m.graph, out, folder)
    for f in m.functions:
        dump_function(f, out, folder)
    return "\n".join(out) + "\n"


# --- the samples ---


def model(graph, **more):
    m = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    m.MergeFrom(onnx.ModelProto(**more))
    return m


def f32(name, dims=("N", 3)):
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, dims)


def graph(name, nodes=(), **more):
    return helper.make_graph(list(nodes), name, [f32("x")], [f32("y")], **more)


def raw(name, dtype, dims, data):
    return TensorProto(name=name, data_type=dtype, dims=dims, raw_data=data)


def every_attribute():
    scalar = helper.make_tensor("one", TensorProto.FLOAT, [], [1.5])
    tensor_type = helper.make_tensor_type_proto(TensorProto.INT64, [2])
    kind = AttributeProto
    return [
        AttributeProto(name="f", type=kind.FLOAT, f=-0.0),
        AttributeProto(name="nan", type=kind.FLOAT, f=float("nan")),
        AttributeProto(name="i", type=kind.INT, i=-(2**63)),
        AttributeProto(name="s", type=kind.STRING, s=b"a\0b\xff"),
        AttributeProto(name="empty", type=kind.STRING),
        AttributeProto(name="t", type=kind.TENSOR, t=scalar),
        AttributeProto(name="g", type=kind.GRAPH, g=graph("inner")),
        AttributeProto(name="floats", type=kind.FLOATS, floats=[1.0, -2.5, float("inf")]),
        AttributeProto(name="ints", type=kind.INTS, ints=[0, 127, 128, -1, 2**63 - 1]),
        AttributeProto(name="strings", type=kind.STRINGS, strings=[b"", b"x", b"\0\0"]),
        AttributeProto(name="tensors", type=kind.TENSORS, tensors=[scalar, scalar]),
        AttributeProto(name="graphs", type=kind.GRAPHS, graphs=[graph("a"), graph("b")]),
        AttributeProto(name="tp", type=kind.TYPE_PROTO, tp=tensor_type),
        AttributeProto(name="types", type=kind.TYPE_PROTOS, type_protos=[tensor_type, TypeProto()]),
        AttributeProto(name="none", type=kind.INTS),
        AttributeProto(name="default", type=kind.INT, doc_string="skipped"),
    ]


def full():
    nodes = [
        helper.make_node("Add", ["x", "w"], ["a"], name="add", domain="ai.onnx", overload="o"),
        helper.make_node("Clip", ["a", "", "hi"], ["y"], doc_string="skipped"),
        onnx.NodeProto(op_type="Everything", attribute=every_attribute()),
    ]
    nodes[0].metadata_props.add(key="skipped", value="too")
    g = graph("größe", nodes, doc_string="skipped", value_info=[f32("a")])
    g.initializer.append(helper.make_tensor("w", TensorProto.FLOAT, [3], [1, 2, 3]))
    g.quantization_annotation.add(tensor_name="skipped")
    m = model(g, producer_name="maker", producer_version="1.2", domain="org.test", model_version=7)
    m.opset_import.append(helper.make_opsetid("org.test", 2))
    m.metadata_props.add(key="k", value="v")
    m.metadata_props.add(key="empty")
    m.training_info.add().algorithm.name = "skipped"
    m.doc_string = "skipped"
    return m


def types():
    tensor = helper.make_tensor_type_proto
    sequence, optional = helper.make_sequence_type_proto, helper.make_optional_type_proto
    several = [
        tensor(TensorProto.FLOAT, None),
        tensor(TensorProto.FLOAT, []),
        tensor(TensorProto.BFLOAT16, [0, 2**62, "batch", None]),
        sequence(sequence(tensor(TensorProto.STRING, None))),
        optional(sequence(tensor(TensorProto.INT64, ["n"]))),
        helper.make_map_type_proto(TensorProto.INT64, tensor(TensorProto.FLOAT, [1])),
        TypeProto(),
        TypeProto(sequence_type=TypeProto.Sequence()),
        TypeProto(tensor_type=TypeProto.Tensor()),
    ]
    unknown = tensor(TensorProto.FLOAT, [1, "", 5])
    unknown.tensor_type.shape.dim[0].dim_value = -1
    g = graph("types")
    for i, t in enumerate(several + [unknown]):
        g.value_info.append(helper.make_value_info(f"v{i}", t))
    g.value_info.append(onnx.ValueInfoProto(name="bare"))
    g.value_info.append(onnx.ValueInfoProto())
    return model(g)


def typed(dtype, codes):
    """Makes a tensor whose elements are in a typed field; `codes` are the numbers in the field."""
    field = helper.tensor_dtype_to_field(dtype)
    per = {21: 2, 22: 2, 23: 2, 25: 4, 26: 4}.get(dtype, 1)
    count = len(codes) * per
    if dtype in (TensorProto.COMPLEX64, TensorProto.COMPLEX128):
        count //= 2
    t = TensorProto(name=f"typed_{NAMES[dtype]}", data_type=dtype, dims=[count])
    getattr(t, field).extend(codes)
    return t


def dtypes():
    g = graph("dtypes")
    add = g.initializer.append
    for dtype, bits in BITS.items():
        for count in (0, 1, 3, 70):
            n = (count * bits + 7) // 8
            data = bytes((7 * i + dtype) % 256 for i in range(n))
            if dtype == TensorProto.BOOL:
                data = bytes(b & 1 for b in data)
            add(raw(f"raw_{NAMES[dtype]}_{count}", dtype, [count], data))
    for dtype in (1, 11, 14, 15):
        add(typed(dtype, [0.5, -0.0, float("inf"), -1.25]))
    for dtype in (3, 5, 6, 7):
        size = 2 ** (BITS[dtype] - 1)
        add(typed(dtype, [0, 1, -1, size - 1, -size]))
    for dtype in (2, 4, 10, 12, 13, 16, 17, 18, 19, 20, 24):
        add(typed(dtype, [0, 1, 2 ** (BITS[dtype] - 1), 2 ** BITS[dtype] - 2]))
    add(typed(9, [0, 1, 1, 0]))
    for dtype in (21, 22, 23, 25, 26):
        add(typed(dtype, [0, 0x1B, 0xFE, 0x80]))
    for dtype in (27, 28):
        add(typed(dtype, [1, 63, 32, 5, 0, 17, 42]))
    texts = [b"", b"a", b"\0", b"\xc3\xa4"]
    add(TensorProto(name="strings", data_type=8, dims=[2, 2], string_data=texts))
    add(TensorProto(name="no_strings", data_type=8, dims=[0, 5]))
    add(TensorProto(name="no_floats", data_type=1, dims=[3, 0]))
    add(helper.make_tensor("scalar", TensorProto.INT64, [], [-5]))
    add(helper.make_tensor("cube", TensorProto.FLOAT, [2, 3, 4], [float(i) for i in range(24)]))
    m = model(g)
    m.ir_version = 14
    return m


def nested():
    g = graph("innermost")
    for depth in range(12):
        g = graph(f"level {depth}", [helper.make_node("If", ["c"], ["y"], then_branch=g)])
    return model(g)


def functions():
    body = [
        helper.make_node("Constant", [], ["c"]),
        helper.make_node("Mul", ["a", "c"], ["b"]),
    ]
    body[0].attribute.append(
        AttributeProto(name="value", type=AttributeProto.TENSOR, ref_attr_name="factor"))
    f = helper.make_function(
        "org.test", "scale", ["a"], ["b"], body, [helper.make_opsetid("", 21)], ["factor"],
        [helper.make_attribute("alpha", 0.5)], overload="f32", doc_string="skipped",
        value_info=[f32("c")])
    call = helper.make_node("scale", ["x"], ["y"], domain="org.test", overload="f32", factor=1)
    m = model(graph("main", [call]))
    m.functions.extend([f, onnx.FunctionProto(name="empty")])
    return m


def external(folder):
    def outside(name, dims, **where):
        t = TensorProto(name=name, data_type=1, dims=dims, data_location=TensorProto.EXTERNAL)
        for key, value in where.items():
            t.external_data.add(key=key, value=str(value))
        return t

    data = bytes(range(256))
    (folder / "external.bin").write_bytes(data)
    (folder / "deep").mkdir(exist_ok=True)
    (folder / "deep" / "more.bin").write_bytes(data[::-1][:8])
    inner = graph("inner", initializer=[outside("hidden", [2], location="deep/more.bin")])
    node = helper.make_node("If", ["c"], ["y"], then_branch=inner)
    g = graph("external", [node])
    g.initializer.extend([
        outside("all", [8, 8], location="external.bin"),
        outside("part", [3], location="external.bin", offset=100, length=12, checksum="unused"),
        outside("end", [0], location="./external.bin", offset=256, length=0),
    ])
    return model(g)


def main(arguments):
    if len(arguments) == 2 and arguments[0] == "--dump":
        path = pathlib.Path(arguments[1])
        sys.stdout.write(dump(onnx.load(str(path), load_external_data=False), path.parent))
        return 0
    if len(arguments) != 1 or arguments[0].startswith("-"):
        sys.stderr.write(__doc__)
        return 2
    folder = pathlib.Path(arguments[0])
    folder.mkdir(parents=True, exist_ok=True)
    samples = {
        "full": full(), "types": types(), "dtypes": dtypes(), "nested": nested(),
        "functions": functions(), "external": external(folder),
    }
    for name, m in samples.items():
        (folder / f"{name}.onnx").write_bytes(m.SerializeToString(deterministic=True))
        (folder / f"{name}.txt").write_text(dump(m, folder))
    return 0


sys.exit(main(sys.argv[1:]))
