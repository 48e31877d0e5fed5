# ruff: noqa: F401, I001  (assign, which uses `expand`, comes last)
"""Imports every module of array kernels, so that the operator table finds them by name."""

import cygrad._core.complex_view
import cygrad._core.copies
import cygrad._core.gather
import cygrad._core.index
import cygrad._core.index_rows
import cygrad._core.join
import cygrad._core.losses
import cygrad._core.mask
import cygrad._core.pad
import cygrad._core.permute
import cygrad._core.products
import cygrad._core.reduce
import cygrad._core.reduce_backward
import cygrad._core.reduce_extrema
import cygrad._core.recurrence
import cygrad._core.scan
import cygrad._core.shape
import cygrad._core.slicing
import cygrad._core.softmax
import cygrad._core.sort
import cygrad._core.split
import cygrad._core.strided_backward
import cygrad._core.view_backward
import cygrad._core.assign
