"""Wraps Tenon's C interface to models in Python (ctypes), for the tests of ONNX files: load, bind,
run."""

import ctypes
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "ops"))
from binding import (DTYPES, HEADERS, MAX_RANK, NUMBER, NUMPY, STATUS, STORAGE, Shape, Tenon,  # noqa
                     Type, as_shape, dtype)

INPUT, OUTPUT = 0, 1


class Port(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("name", ctypes.c_char_p), ("type", Type),
                ("sizes", ctypes.c_char_p * MAX_RANK), ("min", ctypes.c_int64 * MAX_RANK),
                ("max", ctypes.c_int64 * MAX_RANK), ("variable", ctypes.c_int32 * MAX_RANK),
                ("is_deciding", ctypes.c_bool), ("is_string", ctypes.c_bool)]


class ModelSize(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("name", ctypes.c_char_p), ("same", ctypes.c_char_p),
                ("min", ctypes.c_int64), ("max", ctypes.c_int64), ("likely", ctypes.c_int64)]


class InputValue(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("type", Type), ("data", ctypes.c_void_p)]


class InputList(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("count", ctypes.c_int64), ("types", ctypes.POINTER(Type))]


class ModelDesc(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("folder", ctypes.c_char_p), ("copy", ctypes.c_bool),
                ("sizes", ctypes.POINTER(ModelSize)), ("n_sizes", ctypes.c_size_t),
                ("name", ctypes.c_char_p), ("variants", ctypes.c_int), ("tunable", ctypes.c_bool),
                ("about_sizes", ctypes.c_void_p), ("interpreted", ctypes.c_bool),
                ("outputs", ctypes.c_void_p), ("n_outputs", ctypes.c_size_t),
                ("inputs", ctypes.c_void_p), ("n_inputs", ctypes.c_size_t),
                ("problems", ctypes.c_void_p * 2),
                ("values", ctypes.POINTER(InputValue)), ("n_values", ctypes.c_size_t),
                ("lists", ctypes.POINTER(InputList)), ("n_lists", ctypes.c_size_t)]


def is_strings(array):
    return array.dtype.kind in "OUS"


def type_of(array):
    return Type(NUMBER[np.dtype(np.int64) if is_strings(array) else array.dtype], as_shape(array.shape))


def input_list(name, arrays):
    """Makes a tn_input_list of arrays; None: an absent optional value."""
    if arrays is None:
        return InputList(name.encode(), -1, None)
    types = (Type * len(arrays))(*[type_of(x) for x in arrays])
    return InputList(name.encode(), len(arrays), types if arrays else None)


def model_size(name, known):
    """Makes a tn_model_size; `known` is a number, (min, max), (min, max, likely), or the name of an
    equal size."""
    size = ctypes.sizeof(ModelSize)
    if isinstance(known, str):
        return ModelSize(size, name.encode(), known.encode())
    least, most, *likely = known if isinstance(known, tuple) else (known, known)
    return ModelSize(size, name.encode(), None, least, most, *likely)


class Refused(Exception):
    def __init__(self, status, message):
        names = {number: name for name, number in STATUS.items()}
        super().__init__(f"{names[status]}: {message}")
        self.status, self.message = names[status], message


class Library(Tenon):
    """A context that loads models."""

    def __init__(self, folder):
        super().__init__(folder)
        p, size, text = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p
        self.declare("model_load", [p, text, p, p])
        self.declare("model_load_bytes", [p, p, size, p, p])
        self.declare("model_free", [p], None)
        self.declare("model_bind", [p, p])
        self.declare("model_port", [p, ctypes.c_int, size, p])
        self.declare("model_length", [p, text], ctypes.c_int64)
        self.declare("model_exact_sizes", [p], text)
        self.declare("model_open_from_one", [p], ctypes.c_bool)
        self.declare("model_string_number", [p, text, size, p])
        self.declare("model_string", [p, ctypes.c_int64, p], p)
        self.declare("binding_input", [p, text, Shape, ctypes.c_int, p, size])
        self.declare("binding_run", [p])
        self.declare("binding_type", [p, text], Type)
        self.declare("binding_read", [p, text, ctypes.c_int, p, size])
        self.declare("binding_message", [p], text)
        self.declare("binding_variant", [p], ctypes.c_int64)
        self.declare("binding_carry", [p, text, text])
        self.declare("binding_free", [p], None)

    def message(self):
        """Returns the message; damaged files have names that are not UTF-8."""
        return self.lib.tn_message(self.context).decode(errors="replace")

    def declare(self, name, arguments, result=ctypes.c_int):
        function = getattr(self.lib, "tn_" + name)
        function.argtypes, function.restype = arguments, result

    def load(self, source, sizes=(), variants=0, copy=False, values=None, lists=None,
             interpreted=False, outputs=()):
        """Loads a model from a path or from a file's bytes; `sizes` lists pairs (name, known),
        `variants` is one of tn_variants, `values` are {input: array}, and `lists` {input: arrays}.
        `outputs` are names of values instead of the model's outputs."""
        model = ctypes.c_void_p()
        known = (ModelSize * len(sizes))(*[model_size(*s) for s in sizes])
        given = {n: np.ascontiguousarray(x).reshape(np.shape(x)) for n, x in (values or {}).items()}
        fixed = (InputValue * len(given))(*[InputValue(n.encode(), type_of(x), x.ctypes.data)
                                            for n, x in given.items()])
        listed = (InputList * len(lists or {}))(*[input_list(*x) for x in (lists or {}).items()])
        names = (ctypes.c_char_p * len(outputs))(*[n.encode() for n in outputs])
        desc = ModelDesc(ctypes.sizeof(ModelDesc), None, copy, known, len(sizes), None, variants,
                         values=fixed, n_values=len(fixed), lists=listed, n_lists=len(listed),
                         interpreted=interpreted, n_outputs=len(names),
                         outputs=ctypes.cast(names, ctypes.c_void_p) if outputs else None)
        is_told = sizes or variants or copy or given or lists or interpreted or outputs
        desc, model_at = ctypes.byref(desc) if is_told else None, ctypes.byref(model)
        if isinstance(source, bytes):
            s = self.lib.tn_model_load_bytes(self.context, source, len(source), desc, model_at)
        else:
            s = self.lib.tn_model_load(self.context, str(source).encode(), desc, model_at)
        if s:
            assert model.value is None
            raise Refused(s, self.message())
        return Model(self, model)


class Model:
    def __init__(self, library, handle):
        self.library, self.lib, self.handle = library, library.lib, handle

    def ports(self, kind):
        """Returns [(name, NumPy type or None, [sizes as text])]."""
        found, port = [], Port(size=ctypes.sizeof(Port))
        while self.lib.tn_model_port(self.handle, kind, len(found), ctypes.byref(port)) == 0:
            sizes = [port.sizes[i].decode() for i in range(port.type.shape.rank)]
            found.append((port.name.decode(), NUMPY.get(port.type.dtype), sizes))
        return found

    def string_ports(self, kind):
        """Returns the names of the ports whose elements are numbers of strings."""
        found, port, i = set(), Port(size=ctypes.sizeof(Port)), 0
        while self.lib.tn_model_port(self.handle, kind, i, ctypes.byref(port)) == 0:
            found |= {port.name.decode()} if port.is_string else set()
            i += 1
        return found

    def numbers_of(self, array):
        """Returns the numbers of strings."""
        number, made = ctypes.c_int64(), np.zeros(array.shape, np.int64)
        for at, text in np.ndenumerate(array):
            text = text if isinstance(text, bytes) else text.encode()
            s = self.lib.tn_model_string_number(self.handle, text, len(text), ctypes.byref(number))
            assert s == 0, s
            made[at] = number.value
        return made

    def strings_of(self, numbers):
        n, made = ctypes.c_size_t(), np.empty(numbers.shape, object)
        for at, number in np.ndenumerate(numbers):
            text = self.lib.tn_model_string(self.handle, int(number), ctypes.byref(n))
            assert text, f"{number} is no string"
            made[at] = ctypes.string_at(text, n.value).decode()
        return made

    def length(self, output):
        """Returns tn_model_length."""
        return self.lib.tn_model_length(self.handle, output.encode())

    def open_from_one(self):
        """Returns tn_model_open_from_one."""
        return self.lib.tn_model_open_from_one(self.handle)

    def exact_sizes(self):
        """Returns tn_model_exact_sizes as text; None: sizes can be open."""
        reason = self.lib.tn_model_exact_sizes(self.handle)
        return reason and reason.decode()

    def bounds(self):
        """Returns {name: (min, max)} of the sizes of inputs."""
        found, port, i = {}, Port(size=ctypes.sizeof(Port)), 0
        while self.lib.tn_model_port(self.handle, INPUT, i, ctypes.byref(port)) == 0:
            for k in range(port.type.shape.rank):
                found[port.sizes[k].decode()] = port.min[k], port.max[k]
            i += 1
        return found

    def bind(self):
        binding = ctypes.c_void_p()
        s = self.lib.tn_model_bind(self.handle, ctypes.byref(binding))
        if s:
            raise Refused(s, self.library.message())
        return Binding(self, binding)

    def run(self, inputs):
        binding = self.bind()
        try:
            return binding.run(inputs)
        finally:
            binding.free()

    def free(self):
        self.lib.tn_model_free(self.handle)


class Binding:
    def __init__(self, model, handle):
        self.model, self.lib, self.handle = model, model.lib, handle
        self.strings = model.string_ports(OUTPUT)
        self.outputs = [name for name, _, _ in model.ports(OUTPUT)]
        self.held = {}

    def check(self, status):
        if status:
            raise Refused(status, self.lib.tn_binding_message(self.handle).decode())

    def give(self, name, array, bytes_given=None):
        array = self.model.numbers_of(array) if is_strings(array) else array
        array = self.held[name] = np.array(array, order="C", copy=True)
        return self.lib.tn_binding_input(
            self.handle, name.encode(), as_shape(array.shape), NUMBER[array.dtype],
            array.ctypes.data, array.nbytes if bytes_given is None else bytes_given)

    def run(self, inputs):
        for name, array in inputs.items():
            self.check(self.give(name, array))
        self.check(self.lib.tn_binding_run(self.handle))
        return {name: self.read(name) for name in self.outputs}

    def read(self, name):
        t = self.lib.tn_binding_type(self.handle, name.encode())
        out = np.zeros(tuple(t.shape.size[:t.shape.rank]), NUMPY[t.dtype])
        self.check(self.lib.tn_binding_read(self.handle, name.encode(), t.dtype, out.ctypes.data,
                                            out.nbytes))
        return self.model.strings_of(out) if name in self.strings else out

    def free(self):
        self.lib.tn_binding_free(self.handle)
