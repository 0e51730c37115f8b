"""Products with panels, and sums of radial kernels made of them (kernels/products, kernels/support_vectors/radial.py)."""

from __future__ import annotations

import numpy as np
import pytest

from separatrix.dual.kernel_matrix import RADIAL_PART, radial_sums
from separatrix.dual.kernels import RBFKernel
from separatrix.dual.points import Points
from separatrix.kernels.exponentials import falling_exponentials, single_falling_exponentials
from separatrix.kernels.products.panels import WIDTH, aligned, multiply, multiply_some
from separatrix.kernels.products.tiles import COLUMNS, ROWS, tile


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(1, 1), (3, 5), (4, 4), (7, 33), (9, 70), (128, 32)])
def test_a_product_with_a_panel_is_the_product_of_the_matrices(shape, dtype):
    rng = np.random.default_rng(sum(shape))
    left, panel = rng.normal(size=shape).astype(dtype), rng.normal(size=(shape[1], WIDTH)).astype(dtype)
    out = np.full(shape[0] * WIDTH, np.nan, dtype)
    multiply(left, panel.ravel(), out)
    size = np.abs(left).astype(np.float64) @ np.abs(panel).astype(np.float64)
    error = np.abs(out.reshape(-1, WIDTH) - left.astype(np.float64) @ panel.astype(np.float64))
    assert (error <= (shape[1] + 1) * np.finfo(dtype).eps * size).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_room_begins_with_a_line_of_the_cache(dtype):
    for size in (0, 1, 100):
        room = aligned(size, np.empty(1, dtype))
        assert room.shape == (size,) and room.dtype == dtype and room.ctypes.data % 64 == 0


def test_exponentials_in_place_are_those_of_numpy():
    x = np.concatenate([-np.logspace(-20, np.log10(707.9), 5000), [0.0, 1e-9]])
    found, single = x.copy(), np.maximum(x, -87.0).astype(np.float32)
    expected = np.exp(single.astype(np.float64))
    falling_exponentials(found)
    single_falling_exponentials(single)
    np.testing.assert_allclose(found, np.exp(x), rtol=1e-15)
    np.testing.assert_allclose(single, np.where(x > -87.0, expected, 0.0), rtol=1e-6)


@pytest.mark.parametrize(("dtype", "digits"), [(np.float64, 1e-13), (np.float32, 2e-5)])
@pytest.mark.parametrize("columns", [1, 3])
def test_sums_of_radial_kernels_are_those_of_the_definition(dtype, digits, columns):
    rng = np.random.default_rng(0)
    vectors, rows = rng.normal(size=(2 * RADIAL_PART + 5, 6)), rng.normal(size=(131, 6))
    coefficients, kernel = rng.normal(size=(len(vectors), columns)), RBFKernel(0.3)
    points = Points(vectors)
    left = kernel.left(Points(rows, points.centre), dtype)
    found = radial_sums(kernel, points, coefficients, dtype)(left)
    values = np.exp(-0.3 * np.square(rows[:, None] - vectors).sum(axis=2))
    assert (np.abs(found - values @ coefficients) <= digits * (values @ np.abs(coefficients))).all()
    assert RADIAL_PART == WIDTH


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("rows", range(1, ROWS + 1))
def test_a_tile_is_a_product_of_what_its_places_name_and_touches_nothing_else(rows, dtype):
    rng, depth, width = np.random.default_rng(rows), 7, 3 * COLUMNS * 8 // np.dtype(dtype).itemsize
    columns = width // 3
    wide, out = rng.normal(size=(depth, width)).astype(dtype), rng.normal(size=(rows + 2, width)).astype(dtype)
    before, at = out.copy(), columns + 1
    product = wide[:, 2 : 2 + rows].astype(np.float64).T @ wide[:, 3 : 3 + columns].astype(np.float64)
    for add in (False, True):  # a transpose on the left, both sides in one array, at places of no alignment
        tile(rows, wide, 2, width, 1, wide, 3, width, depth, out, width + at, width, add)
        expected = before.astype(np.float64)
        expected[1 : 1 + rows, at : at + columns] = (1 + add) * product
        np.testing.assert_allclose(out, expected, rtol=0, atol=200 * np.finfo(dtype).eps)


@pytest.mark.parametrize("columns", [1, 32, 100])
def test_some_columns_of_a_product_are_those_of_the_whole(columns):
    rng = np.random.default_rng(columns)
    left, panel = rng.normal(size=(13, 9)), rng.normal(size=9 * WIDTH)
    whole, some = np.empty(13 * WIDTH), np.empty(13 * WIDTH)
    multiply(left, panel, whole)
    multiply_some(left, 11, panel, columns, some)
    np.testing.assert_array_equal(some.reshape(13, -1)[:11, :columns], whole.reshape(13, -1)[:11, :columns])
