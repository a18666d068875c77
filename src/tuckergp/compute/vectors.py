"""Vectors of eight numbers in compiled code: products that stay in registers, and fetching ahead of use.

The compiler makes these of loops over plain numbers only sometimes, so they are written as its own instructions, which
exist on every machine (eight numbers are one, two or four of its registers). They take pointers to float64 or float32
(`pointer`): arrays passed on in compiled code cost atomic counts of references, which take longer than the arithmetic.
Tables have rows of ``width`` entries, whole vectors (`padded`). Nothing here checks bounds or keeps memory alive.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tuckergp.compute.compiled import from_module, instruction, jit

__all__ = [
    "LANES",
    "add_outer",
    "add_weighted",
    "dot",
    "move",
    "multiply",
    "padded",
    "pointer",
    "prefetch",
    "solve_four",
    "tile_height",
]

LANES = 8

# A tile of sums has LANES columns and this many bytes of rows: it fills half of 16 registers of 256 bits.
TILE_BYTES = 32

# Sums that run side by side where one would wait for itself.
CHAINS = 4

FUSE = ("contract",)

ir = from_module("llvmlite.ir")
types = from_module("numba.types")


@jit
def padded(size: int) -> int:
    """Round a size up to whole vectors."""
    return (size + LANES - 1) // LANES * LANES


@instruction
def pointer(typing: Any, array: Any) -> Any:
    """Where the entries of a contiguous array lie; the array must be kept alive elsewhere."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return context.make_array(signature.args[0])(context, builder, values[0]).data

    return types.CPointer(array.dtype)(array), generate


class _Emitter:
    """The instructions of one intrinsic: its arguments by name, and vectors of numbers."""

    def __init__(self, builder: Any, names: str, values: Any) -> None:
        self.builder = builder
        self.data = dict(zip(names.split(), values, strict=True))

    def number(self, value: int) -> Any:
        return ir.Constant(ir.IntType(64), value)

    def place(self, name: str, row: Any, column: Any) -> Any:
        """A pointer to an entry of a table."""
        at = self.builder.add(self.builder.mul(row, self.data["width"]), column)
        return self.builder.gep(self.data[name], [at])

    def load(self, pointer: Any) -> Any:
        """The vector that begins at a pointer."""
        vector = ir.VectorType(pointer.type.pointee, LANES)
        return self.builder.load(self.builder.bitcast(pointer, vector.as_pointer()), align=_bytes(vector.element))

    def store(self, vector: Any, pointer: Any) -> None:
        place = self.builder.bitcast(pointer, vector.type.as_pointer())
        self.builder.store(vector, place, align=_bytes(vector.type.element))

    def splat(self, number: Any) -> Any:
        """A vector of one number."""
        vector = ir.VectorType(number.type, LANES)
        none = ir.Constant(vector, ir.Undefined)
        one = self.builder.insert_element(none, number, ir.Constant(ir.IntType(32), 0))
        return self.builder.shuffle_vector(one, none, ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES))

    def add_product(self, total: Any, left: Any, right: Any) -> Any:
        return self.builder.fadd(total, self.builder.fmul(left, right, flags=FUSE), flags=FUSE)

    def add_to(self, pointer: Any, scale: Any, vector: Any) -> None:
        """Add scale times a vector, of the same or of smaller numbers, to what is there."""
        there = self.load(pointer)
        if vector.type != there.type:
            vector = self.builder.fpext(vector, there.type)
        self.store(self.add_product(there, self.splat(scale), vector), pointer)

    def across(self, vector: Any) -> Any:
        """The sum of a vector's numbers: halves are added until one is left."""
        size = LANES // 2
        while size:
            mask = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [(k + size) % LANES for k in range(LANES)])
            vector = self.builder.fadd(vector, self.builder.shuffle_vector(vector, vector, mask))
            size //= 2
        return self.builder.extract_element(vector, ir.Constant(ir.IntType(32), 0))

    def sums(self, element: Any, count: int, begin: Any, end: Any, step: int, body: Callable[..., list[Any]]) -> Any:
        """Totals of a loop: ``body`` takes the loop's number and the totals so far, and returns the new ones."""
        builder, before = self.builder, self.builder.block
        loop, done = builder.append_basic_block("loop"), builder.append_basic_block("done")
        vector = ir.VectorType(element, LANES)
        zero = ir.Constant(vector, [0.0] * LANES)
        builder.cbranch(builder.icmp_signed("<", begin, end), loop, done)
        builder.position_at_end(loop)
        k = builder.phi(ir.IntType(64))
        k.add_incoming(begin, before)
        totals = [builder.phi(vector) for _ in range(count)]
        new = body(k, totals)
        following = builder.add(k, self.number(step))
        k.add_incoming(following, loop)
        for total, value in zip(totals, new, strict=True):
            total.add_incoming(zero, before)
            total.add_incoming(value, loop)
        builder.cbranch(builder.icmp_signed("<", following, end), loop, done)
        builder.position_at_end(done)
        results = [builder.phi(vector) for _ in range(count)]
        for result, value in zip(results, new, strict=True):
            result.add_incoming(zero, before)
            result.add_incoming(value, loop)
        return results


def _bytes(element: Any) -> int:
    return 4 if isinstance(element, ir.FloatType) else 8


def _emitted(names: str, emit: Callable[[_Emitter], Any]) -> Callable[..., Any]:
    """The code generator of an intrinsic with these arguments, from what emits its instructions."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        result = emit(_Emitter(builder, names, values))
        return context.get_dummy_value() if result is None else result

    return generate


@instruction
def tile_height(typing: Any, Z: Any) -> Any:
    """The rows of a tile of `add_outer`: 4 of float64, 8 of float32."""
    return types.int64(Z), _emitted("Z", lambda at: at.number(TILE_BYTES // _bytes(at.data["Z"].type.pointee)))


@instruction
def add_outer(typing: Any, Z: Any, width: Any, i: Any, j: Any, n: Any, scale: Any, A: Any) -> Any:
    """Add scale sum_{k < n} Z[k, i:i + h] Z[k, j:j + LANES]' to A[i:i + h, j:j + LANES], h = tile_height(Z)."""

    def emit(at: _Emitter) -> None:
        number, data, builder = at.number, at.data, at.builder
        element = data["Z"].type.pointee
        height = TILE_BYTES // _bytes(element)

        def body(k: Any, totals: list[Any]) -> list[Any]:
            right = at.load(at.place("Z", k, data["j"]))
            left = at.place("Z", k, data["i"])
            entries = [builder.load(builder.gep(left, [number(a)])) for a in range(height)]
            return [at.add_product(total, at.splat(entry), right) for total, entry in zip(totals, entries, strict=True)]

        for a, total in enumerate(at.sums(element, height, number(0), data["n"], 1, body)):
            at.add_to(at.place("A", builder.add(data["i"], number(a)), data["j"]), data["scale"], total)

    signature = types.void(Z, types.int64, types.int64, types.int64, types.int64, types.float64, A)
    return signature, _emitted("Z width i j n scale A", emit)


@instruction
def add_weighted(typing: Any, Z: Any, width: Any, t: Any, j: Any, n: Any, scale: Any, b: Any) -> Any:
    """Add scale sum_{k < n} t[k] Z[k, j:j + LANES] to b[j:j + LANES]; n is a multiple of CHAINS."""

    def emit(at: _Emitter) -> None:
        number, data, builder = at.number, at.data, at.builder

        def body(k: Any, totals: list[Any]) -> list[Any]:
            rows = [builder.add(k, number(a)) for a in range(CHAINS)]
            return [
                at.add_product(
                    total,
                    at.splat(builder.load(builder.gep(data["t"], [row]))),
                    at.load(at.place("Z", row, data["j"])),
                )
                for total, row in zip(totals, rows, strict=True)
            ]

        s = at.sums(data["Z"].type.pointee, CHAINS, number(0), data["n"], CHAINS, body)
        total = builder.fadd(builder.fadd(s[0], s[1]), builder.fadd(s[2], s[3]))
        at.add_to(builder.gep(data["b"], [data["j"]]), data["scale"], total)

    signature = types.void(Z, types.int64, t, types.int64, types.int64, types.float64, b)
    return signature, _emitted("Z width t j n scale b", emit)


@instruction
def dot(typing: Any, x: Any, i: Any, y: Any, j: Any, n: Any) -> Any:
    """The inner product of n entries of x from i on with those of y from j on; n is of whole vectors."""

    def emit(at: _Emitter) -> Any:
        data, builder = at.data, at.builder
        element = data["x"].type.pointee

        def body(k: Any, totals: list[Any]) -> list[Any]:
            left, right = (
                at.load(builder.gep(data[name], [builder.add(data[first], k)])) for name, first in ("xi", "yj")
            )
            return [at.add_product(totals[0], left, right)]

        (total,) = at.sums(element, 1, at.number(0), data["n"], LANES, body)
        return at.across(total)

    return x.dtype(x, types.int64, y, types.int64, types.int64), _emitted("x i y j n", emit)


@instruction
def move(typing: Any, x: Any, i: Any, scale: Any, y: Any, j: Any) -> Any:
    """Write scale times the vector of x at i to y at j."""

    def emit(at: _Emitter) -> None:
        data, builder = at.data, at.builder
        vector = at.load(builder.gep(data["x"], [data["i"]]))
        at.store(builder.fmul(vector, at.splat(data["scale"])), builder.gep(data["y"], [data["j"]]))

    return types.void(x, types.int64, x.dtype, y, types.int64), _emitted("x i scale y j", emit)


@instruction
def multiply(typing: Any, x: Any, i: Any, y: Any, j: Any) -> Any:
    """Multiply the vector of y at j by that of x at i."""

    def emit(at: _Emitter) -> None:
        data, builder = at.data, at.builder
        place = builder.gep(data["y"], [data["j"]])
        at.store(builder.fmul(at.load(builder.gep(data["x"], [data["i"]])), at.load(place)), place)

    return types.void(x, types.int64, y, types.int64), _emitted("x i y j", emit)


@instruction
def solve_four(typing: Any, A: Any, width: Any, i: Any, j: Any, u: Any) -> Any:
    """Replace A[i:i + 4, j:j + LANES] by U'^-1 of it, U upper triangular (4, 4): u has U, but 1 / U_kk."""

    def emit(at: _Emitter) -> None:
        number, data, builder = at.number, at.data, at.builder
        solved: list[Any] = []
        for a in range(4):
            place = at.place("A", builder.add(data["i"], number(a)), data["j"])
            row = at.load(place)
            for c, other in enumerate(solved):
                factor = builder.fneg(builder.load(builder.gep(data["u"], [number(4 * c + a)])))
                row = at.add_product(row, at.splat(factor), other)
            solved.append(builder.fmul(row, at.splat(builder.load(builder.gep(data["u"], [number(5 * a)])))))
            at.store(solved[a], place)

    return types.void(A, types.int64, types.int64, types.int64, u), _emitted("A width i j u", emit)


@instruction
def prefetch(typing: Any, x: Any, i: Any) -> Any:
    """Begin to fetch what lies at entry i of x."""

    def emit(at: _Emitter) -> None:
        data, builder = at.data, at.builder
        place = builder.bitcast(builder.gep(data["x"], [data["i"]]), ir.IntType(8).as_pointer())
        kind = ir.FunctionType(ir.VoidType(), [place.type, ir.IntType(32), ir.IntType(32), ir.IntType(32)])
        fetch = builder.module.declare_intrinsic("llvm.prefetch", [place.type], kind)
        builder.call(fetch, [place, *(ir.Constant(ir.IntType(32), value) for value in (0, 3, 1))])

    return types.void(x, types.int64), _emitted("x i", emit)
