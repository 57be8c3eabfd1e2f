#!/usr/bin/env python3
"""Tests `tenon run` on recorded test data in ONNX's folder layout: --check, --input-dir,
--output-dir.

    test_sets.py BUILD [CLASS[.TEST]]…
"""

import os
import pathlib
import stat
import subprocess
import sys
import tempfile
import unittest

try:
    import ml_dtypes  # noqa: F401
    import numpy as np
    import onnx
    from onnx import TensorProto, helper, numpy_helper
except ImportError as missing:
    print(f"skipped: {missing} (scripts/setup.sh --tests installs it)")
    sys.exit(77)

TENON = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "build/dev").resolve() / "tenon"
TYPES = [TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16, TensorProto.BFLOAT16,
         TensorProto.BOOL, TensorProto.INT8, TensorProto.INT16, TensorProto.INT32,
         TensorProto.INT64, TensorProto.UINT8, TensorProto.UINT16, TensorProto.UINT32,
         TensorProto.UINT64]


def tenon(*args, status=0, **env):
    done = subprocess.run([TENON, *map(str, args)], capture_output=True, text=True, check=False,
                          timeout=100, env={**os.environ, **env})
    if done.returncode != status:
        raise AssertionError(f"tenon {args}: exit status {done.returncode}, not {status}:\n"
                             f"{done.stdout}{done.stderr}")
    return done


def save(path, tensor):
    path.parent.mkdir(exist_ok=True, parents=True)
    path.write_bytes(tensor.SerializeToString())


class Case(unittest.TestCase):
    def setUp(self):
        held = tempfile.TemporaryDirectory()
        self.addCleanup(held.cleanup)
        self.folder = pathlib.Path(held.name)

    def model(self, op="Sub", elem=TensorProto.FLOAT, inputs=("a", "b"), opset=14, shape=("n", 3)):
        ports = [helper.make_tensor_value_info(n, elem, shape) for n in inputs]
        out = helper.make_tensor_value_info("y", elem, shape)
        graph = helper.make_graph([helper.make_node(op, inputs, ["y"])], "g", ports, [out])
        path = self.folder / "model.onnx"
        onnx.save(helper.make_model(graph, ir_version=8,
                                    opset_imports=[helper.make_opsetid("", opset)]), path)
        return path

    def set(self, inputs, outputs, name="test_data_set_0", make=numpy_helper.from_array):
        folder = self.folder / "sets" / name
        for kind, arrays in (("input", inputs), ("output", outputs)):
            for i, x in enumerate(arrays):
                save(folder / f"{kind}_{i}.pb", make(np.asarray(x)))
        return folder

    def difference(self, rows=2, **kwargs):
        rng = np.random.default_rng(rows)
        a, b = (rng.standard_normal((rows, 3)).astype(np.float32) for _ in range(2))
        return self.set([a, b], [a - b], **kwargs)

    def misuse(self, *args, says):
        said = tenon("run", *args, status=2).stderr
        self.assertIn(says, said)
        self.assertIn("Try 'tenon help run' for more information.", said)


class Check(Case):
    def check(self, model, folder, *args, status=0):
        return tenon("run", model, "--check", folder, *args, status=status)

    def test_a_line_for_each_set_in_the_order_of_numbers(self):
        m = self.model()
        for k in (10, 2, 0):
            self.difference(k + 1, name=f"test_data_set_{k}")
        lines = self.check(m, self.folder / "sets").stdout.splitlines()
        self.assertEqual([line.split(":")[0] for line in lines],
                         [f"test_data_set_{k}" for k in (0, 2, 10)])
        self.assertTrue(all("1 output as expected" in line for line in lines), lines)

    def test_what_lies_beside_sets_is_none(self):
        path = self.model()
        self.difference(name="test_data_set_0")
        for name in ("test_data_set_0.tar.gz", "test_data_set_"):
            (self.folder / "sets" / name).write_bytes(b"")
        done = tenon("run", path, "--check", self.folder / "sets")
        self.assertEqual([line.split(":")[0].split()[0] for line in done.stdout.splitlines()],
                         ["test_data_set_0"])

    def test_a_set_by_itself(self):
        m, folder = self.model(), self.difference()
        self.assertIn("1 output as expected", self.check(m, folder).stdout)

    def test_the_first_that_differs_ends_it(self):
        m = self.model()
        self.difference(name="test_data_set_0")
        a = np.zeros((2, 3), np.float32)
        wrong = np.array([[0, 0, 0], [0, 0.5, -2]], np.float32)
        self.set([a, a], [wrong], name="test_data_set_1")
        self.difference(name="test_data_set_2")
        lines = self.check(m, self.folder / "sets", status=1).stdout.splitlines()
        self.assertEqual(len(lines), 2)
        for part in ("test_data_set_1", "output y is 0 at [1, 1], not 0.5", "off by 0.5",
                     "more than 0.0005001 (--rtol 0.001, --atol 1e-07)",
                     "2 of 6 differ, by up to 2"):
            self.assertIn(part, lines[1])

    def test_shapes_and_types_are_compared(self):
        m = self.model()
        a = np.zeros((2, 3), np.float32)
        out = self.check(m, self.set([a, a], [a[:1]]), status=1).stdout
        self.assertIn("output y is f32 [2, 3], not f32 [1, 3]", out)
        out = self.check(m, self.set([a, a], [a.astype(np.float64)]), status=1).stdout
        self.assertIn("output y is f32 [2, 3], not f64 [2, 3]", out)
        out = self.check(m, self.set([a, a], [a.reshape(2, 3, 1)]), status=1).stdout
        self.assertIn("not f32 [2, 3, 1]", out)

    def test_tolerances(self):
        m, ones = self.model(), np.ones((1, 3), np.float32)
        folder = self.set([ones * 3, ones], [ones * np.float32(2.001)])
        self.check(m, folder)
        self.check(m, folder, "--rtol", "1e-4", status=1)
        self.check(m, folder, "--rtol", "0", "--atol", "0.0011")
        self.check(m, folder, "--rtol", "0", "--atol", "0.0009", status=1)
        for option, text in (("rtol", "-1"), ("atol", "x"), ("rtol", "nan"), ("atol", "inf")):
            self.misuse(m, "--check", folder, f"--{option}", text,
                        says=f'--{option} must be a nonnegative number, not "{text}"')

    def test_what_is_not_finite(self):
        m = self.model(op="Add")
        x = np.array([[np.nan, np.inf, -np.inf]], np.float32)
        zero = np.zeros((1, 3), np.float32)
        self.check(m, self.set([x, zero], [x]))
        for i, wrong in enumerate((0, 1e30, np.inf)):
            y = x.copy()
            y[0, i] = wrong
            self.check(m, self.set([x, zero], [y]), "--rtol", "0.5", status=1)
        self.check(m, self.set([zero, zero], [x]), "--rtol", "0.5", status=1)
        ones = np.ones((1, 3), np.float32)
        said = self.check(m, self.set([x, zero], [ones]), status=1).stdout
        self.assertIn("output y is nan at [0, 0], not 1; 3 of 3 differ\n", said)
        said = self.check(m, self.set([ones, zero], [np.full_like(x, np.nan)]), status=1).stdout
        self.assertIn("output y is 1 at [0, 0], not nan; 3 of 3 differ\n", said)
        x[0, 1] = 3
        said = self.check(m, self.set([ones, zero], [x]), status=1).stdout
        self.assertIn("not nan; 3 of 3 differ, by up to 2\n", said)

    def test_integers_are_exact(self):
        m = self.model(elem=TensorProto.INT64)
        a = np.array([[2**53 + 1, 7, 0]])
        zero = np.zeros((1, 3), np.int64)
        self.check(m, self.set([a, zero], [a]))
        said = self.check(m, self.set([a, zero], [a - [[0, 1, 0]]]), "--rtol", "1", status=1).stdout
        self.assertIn("not 6: off by 1; 1 of 3 differ, by up to 1\n", said)
        self.check(m, self.set([a, zero], [a - [[1, 0, 0]]]), "--rtol", "1", status=1)

    def test_every_type_in_every_field(self):
        for elem in TYPES:
            m = self.model("Identity", elem, ("a",), opset=13, shape=("n",))
            x = np.array([0, 1, 1, 0, 1]).astype(helper.tensor_dtype_to_np_dtype(elem))
            raw = self.set([x], [x])
            self.check(m, raw)
            listed = self.set([x], [x], make=lambda v: helper.make_tensor(
                "t", elem, v.shape, v.astype(np.float64).tolist()))
            self.check(m, listed)
            save(listed / "output_0.pb", helper.make_tensor("t", elem, [5], [0, 1, 1, 0, 0]))
            self.check(m, listed, status=1)

    def test_scalars_and_nothing(self):
        m = self.model("Identity", inputs=("a",), shape=())
        self.check(m, self.set([np.float32(2)], [np.float32(2)]))
        self.assertIn("at [], not 3", self.check(m, self.set([np.float32(2)], [np.float32(3)]),
                                                 status=1).stdout)
        m = self.model("Identity", inputs=("a",))
        none = np.zeros((0, 3), np.float32)
        self.check(m, self.set([none], [none]))

    def test_files_that_are_missing_or_too_many(self):
        m, folder = self.model(), self.difference()
        (folder / "input_2.pb").write_bytes((folder / "input_1.pb").read_bytes())
        self.assertIn("input_2.pb exists, but the model has only 2 inputs",
                      self.check(m, folder, status=1).stderr)
        (folder / "input_2.pb").unlink()
        (folder / "input_1.pb").unlink()
        self.assertIn("input_1.pb", self.check(m, folder, status=1).stderr)
        folder = self.difference()
        (folder / "output_0.pb").unlink()
        self.assertIn("output_0.pb", self.check(m, folder, status=1).stderr)
        (self.folder / "empty").mkdir()
        self.assertIn("empty has neither", self.check(m, self.folder / "empty", status=1).stderr)
        self.assertIn("absent", self.check(m, self.folder / "absent", status=1).stderr)

    def test_files_that_are_damaged(self):
        m, folder = self.model(), self.difference()
        file = folder / "input_1.pb"
        whole = file.read_bytes()
        for n in range(len(whole)):
            file.write_bytes(whole[:n])
            said = self.check(m, folder, status=1)
            self.assertIn("input_1.pb", said.stderr)
            self.assertNotIn("as expected", said.stdout)
            self.assertNotIn("not an ONNX model", said.stderr)
        file.write_bytes(whole[:-1])
        self.assertIn(f"{file}: not an ONNX tensor, or damaged at byte",
                      self.check(m, folder, status=1).stderr)

    def test_shapes_are_told_before_anything_is_compiled(self):
        m, folder, cache = self.model(), self.difference(), self.folder / "cache"
        file = folder / "input_1.pb"
        save(file, numpy_helper.from_array(np.zeros((2, 4), np.float32)))
        for args in (["--check", folder], ["--input-dir", folder]):
            said = tenon("run", m, *args, status=1, TENON_CACHE=str(cache)).stderr
            self.assertIn(f"input b ({file}): axis 1 has size 4, not 3", said)
            self.assertFalse(cache.exists() and any(cache.iterdir()))

    def test_what_is_no_tensor_of_the_inputs_type(self):
        m, folder = self.model(), self.difference()
        file = folder / "input_1.pb"
        save(file, numpy_helper.from_array(np.zeros((2, 3))))
        self.assertIn('input_1.pb contains f64, but input "b" is f32',
                      self.check(m, folder, status=1).stderr)
        save(file, helper.make_tensor("t", TensorProto.STRING, [1], [b"x"]))
        self.assertIn("elements of type string", self.check(m, folder, status=1).stderr)
        save(file, numpy_helper.from_list([np.zeros((2, 3), np.float32)]))
        self.assertIn("input_1.pb", self.check(m, folder, status=1).stderr)
        elsewhere = TensorProto(data_type=1, dims=[2, 3], data_location=TensorProto.EXTERNAL)
        elsewhere.external_data.add(key="location", value="weights.bin")
        save(file, elsewhere)
        self.assertIn("external data", self.check(m, folder, status=1).stderr)

    def test_wrong_uses(self):
        m, folder = self.model(), self.difference()
        for more in (("--input", "a=ones"), ("--output", "y=out.npy"), ("--json",),
                     ("--input-dir", folder), ("--output-dir", folder)):
            self.misuse(m, "--check", folder, *more, says="--check cannot be combined")
        self.misuse(m, "--rtol", "1", says="require --check")


class Folders(Case):
    def test_there_and_back(self):
        for elem in TYPES:
            m = self.model("Identity", elem, ("a",), opset=13, shape=("n", 3))
            x = np.array([[0, 1, 1], [1, 0, 0]]).astype(helper.tensor_dtype_to_np_dtype(elem))
            folder = self.set([x], [x])
            out = self.folder / "out"
            out.mkdir(exist_ok=True)
            said = tenon("run", m, "--input-dir", folder, "--output-dir", out)
            self.assertEqual(said.stdout, "")
            tensor = TensorProto.FromString((out / "output_0.pb").read_bytes())
            self.assertEqual((tensor.name, tensor.data_type), ("y", elem))
            np.testing.assert_array_equal(numpy_helper.to_array(tensor), x)
            self.assertEqual((folder / "output_0.pb").exists(), True)

    def test_outputs_are_printed_where_no_folder_is_given(self):
        said = tenon("run", self.model(), "--input-dir", self.difference())
        self.assertIn("y: f32 [2, 3]", said.stdout)

    def test_what_fails_leaves_no_file(self):
        m, out = self.model(), self.folder / "out"
        out.mkdir()
        folder = self.difference()
        (folder / "input_1.pb").unlink()
        tenon("run", m, "--input-dir", folder, "--output-dir", out, status=1)
        self.assertEqual(list(out.iterdir()), [])
        said = tenon("run", m, "--input-dir", folder, "--output-dir", self.folder / "no/such",
                     status=1).stderr
        self.assertIn("input_1.pb", said)
        self.assertFalse((self.folder / "no").exists())

    def test_a_folder_that_is_not_there_is_made(self):
        m, out = self.model(), self.folder / "new/and/new"
        subprocess.run([TENON, "run", m, "--input-dir", self.difference(), "--output-dir", out],
                       stderr=subprocess.DEVNULL, check=True, timeout=100, umask=0o027)
        self.assertEqual([path.name for path in out.iterdir()], ["output_0.pb"])
        self.assertEqual(stat.S_IMODE(out.stat().st_mode), 0o750)

    def test_a_folder_that_cannot_be_made_is_told_before_anything_runs(self):
        m = self.model()
        for out in ("/proc/no/such", m / "below"):
            said = tenon("run", m, "--output-dir", out, status=1).stderr
            self.assertIn(f'cannot create "{out}"', said)
            self.assertNotIn("taken as", said)

    def test_the_model_is_not_replaced(self):
        m, out = self.model(), self.folder / "out"
        out.mkdir()
        (out / "output_0.pb").symlink_to(m)
        self.misuse(m, "--output-dir", out, says="is the model")
        onnx.load(m)

    def test_what_is_read_or_written_besides_is_not_replaced(self):
        m, read, out = self.model(), self.difference(), self.folder / "out"
        file, named, late = out / "output_0.pb", self.folder / "a.npy", self.folder / "late"
        out.mkdir()
        np.save(named, np.ones((1, 3), np.float32))
        inputs = ("--input-dir", read)
        for link, args, says in (
                (None, ("--trace", file), "--trace: "),
                (None, ("--output", f"y={file}"), "--output-dir: "),
                (read / "input_1.pb", inputs, "is the file of input b"),
                (named, ("--input", f"a={named}"), "is the file of input a"),
                (self.folder / "none", ("--trace", self.folder / "none"), "the same file")):
            if link:
                file.symlink_to(link)
            before = {p: p.read_bytes() for p in self.folder.rglob("*") if p.is_file()}
            with self.subTest(args=args):
                self.misuse(m, "--output-dir", out, *args, says=says)
            self.assertEqual({p: p.read_bytes() for p in before}, before)
            file.unlink(missing_ok=True)
        (read / "output_0.pb").unlink()
        (read / "output_0.pb").symlink_to("input_0.pb")
        self.misuse(m, *inputs, "--output-dir", read, says="is the file of input a")
        for folder in (late, f"{late}/"):
            self.misuse(m, "--output-dir", folder, "--trace", late, says="the same file")
        self.assertFalse(late.exists())
        (read / "output_0.pb").unlink()
        tenon("run", m, *inputs, "--output-dir", read, "--trace", late)
        self.assertTrue(late.exists() and (read / "output_0.pb").exists())

    def test_wrong_uses(self):
        self.misuse(self.model(), "--input-dir", self.difference(), "--input", "a=ones",
                    says="--input-dir and --input cannot be combined")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
