"""PyData libraries accept Tensors: matplotlib, pandas, scikit-learn, xarray."""

import subprocess
import sys

import matplotlib as mpl
import numpy as np
import pytest

mpl.use("Agg")

import matplotlib.pyplot as plt
import pandas as pd
import xarray as xr
from sklearn.decomposition import PCA
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import accuracy_score
from sklearn.model_selection import cross_val_score, train_test_split
from sklearn.preprocessing import StandardScaler

import cygrad

X = cygrad.linspace(0.0, 2.0, 5)
Y = X.sin() + 0.1
GRID = cygrad.arange(25.0).reshape(5, 5).sin()
PLOTS = {
    "plot": lambda ax: ax.plot(X, Y), "scatter": lambda ax: ax.scatter(X, Y, s=X, c=Y), "bar": lambda ax: ax.bar(X, Y),
    "barh": lambda ax: ax.barh(X, Y), "stem": lambda ax: ax.stem(X, Y), "step": lambda ax: ax.step(X, Y),
    "pie": lambda ax: ax.pie(Y), "hist": lambda ax: ax.hist(Y), "hist2d": lambda ax: ax.hist2d(X, Y),
    "boxplot": lambda ax: ax.boxplot(GRID), "violinplot": lambda ax: ax.violinplot(GRID),
    "quiver": lambda ax: ax.quiver(X, Y, X, Y), "barbs": lambda ax: ax.barbs(X, Y, X, Y),
    "imshow": lambda ax: ax.imshow(GRID), "matshow": lambda ax: ax.matshow(GRID),
    "pcolormesh": lambda ax: ax.pcolormesh(X, X, GRID), "contour": lambda ax: ax.contour(X, X, GRID),
    "contourf": lambda ax: ax.contourf(GRID), "streamplot": lambda ax: ax.streamplot(X, X, GRID, GRID),
    "fill_between": lambda ax: ax.fill_between(X, Y, Y + 1, where=Y > 0.5), "fill": lambda ax: ax.fill(X, Y),
    "hexbin": lambda ax: ax.hexbin(X, Y), "errorbar": lambda ax: ax.errorbar(X, Y, yerr=Y / 10),
    "lines": lambda ax: (ax.axvline(X[1]), ax.axhline(Y[1]), ax.vlines(X, 0, Y), ax.hlines(Y, 0, X)),
    "text": lambda ax: ax.annotate("here", (X[0], Y[0])), "xlim": lambda ax: ax.set_xlim(X[0], X[4]),
    "xticks": lambda ax: ax.set_xticks(X),
    "stackplot": lambda ax: ax.stackplot(X, Y, 2 * Y), "eventplot": lambda ax: ax.eventplot(X),
    "semilogy": lambda ax: ax.semilogy(X, Y), "loglog": lambda ax: ax.loglog(X + 1, Y),
    "elements": lambda ax: ax.plot(list(X), list(Y)), "labels": lambda ax: ax.bar(["a", "b", "c", "d", "e"], Y),
}


@pytest.mark.parametrize("name", PLOTS)
def test_plots_take_tensors(name):
    figure, ax = plt.subplots()
    PLOTS[name](ax)
    figure.canvas.draw()
    plt.close(figure)


def test_surfaces_take_tensors():
    figure = plt.figure()
    ax = figure.add_subplot(projection="3d")
    first, second = cygrad.meshgrid(X, X, indexing="ij")
    ax.plot_surface(first, second, GRID)
    ax.plot_wireframe(first, second, GRID)
    figure.canvas.draw()
    plt.close(figure)


def test_bars_have_the_heights_of_the_tensor():
    figure, ax = plt.subplots()
    bars = ax.bar(X, Y)
    np.testing.assert_allclose([bar.get_height() for bar in bars], Y.numpy())
    plt.close(figure)


def test_colors_are_taken_from_tensors_as_they_are_at_the_call():
    color = cygrad.tensor([1.0, 0.5, 0.0])
    assert mpl.colors.to_rgba(color) == (1.0, 0.5, 0.0, 1.0)
    color.zero_()
    assert mpl.colors.to_rgba(color, alpha=0.5) == (0.0, 0.0, 0.0, 0.5)
    figure, ax = plt.subplots()
    bars = ax.bar(X, Y, color=cygrad.eye(5, 3), edgecolor=color)
    line, = ax.plot(X, Y, color=color)
    assert bars[1].get_facecolor() == (0.0, 1.0, 0.0, 1.0) and line.get_color() is color
    figure.canvas.draw()
    plt.close(figure)
    with pytest.raises(ValueError, match="RGBA"):
        mpl.colors.to_rgba(cygrad.ones(2))


@pytest.mark.parametrize("first", ["cygrad", "matplotlib.colors"])
def test_colors_work_whichever_library_is_imported_first(first):
    second = {"cygrad": "matplotlib.colors", "matplotlib.colors": "cygrad"}[first]
    code = f"import {first}, {second}; assert matplotlib.colors.to_hex(cygrad.tensor([1, 0, 0])) == '#ff0000'"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_frames_are_made_of_tensors_in_their_dtype():
    frame = pd.DataFrame(GRID, columns=list("abcde"))
    assert frame.shape == (5, 5) and set(frame.dtypes) == {np.dtype("float32")}
    np.testing.assert_array_equal(frame["b"].to_numpy(), GRID[:, 1].numpy())
    assert pd.DataFrame({"x": X, "y": Y}).assign(z=X).dtypes["z"] == np.float32
    assert (pd.Series(X) * X).tolist() == (X * X).tolist()


def test_series_decide_what_an_operator_with_a_tensor_returns():
    series, tensor = pd.Series([1.0, 2.0]), cygrad.tensor([3.0, 4.0], dtype=cygrad.float64)
    for left, right in ((series, tensor), (tensor, series)):
        pd.testing.assert_series_equal(left + right, pd.Series([4.0, 6.0]))
    pd.testing.assert_series_equal(tensor > series, pd.Series([True, True]))
    assert tensor @ series == 11


def test_estimators_take_tensors():
    cygrad.manual_seed(0)
    inputs = cygrad.randn(60, 3, dtype=cygrad.float64)
    targets = inputs @ cygrad.tensor([1.0, -2.0, 0.5], dtype=cygrad.float64)
    classes = (targets > 0).long()
    model = LinearRegression().fit(inputs, targets)
    np.testing.assert_allclose(model.coef_, [1, -2, 0.5])
    assert LogisticRegression().fit(inputs, classes).score(inputs, classes) > 0.9
    assert cross_val_score(LogisticRegression(), inputs, classes).mean() > 0.8
    assert accuracy_score(classes, classes) == 1
    assert StandardScaler().fit_transform(inputs).std() == pytest.approx(1)
    assert PCA(2).fit_transform(inputs).shape == (60, 2)
    train, test = train_test_split(inputs, test_size=20)
    assert train.shape == (40, 3) and test.shape == (20, 3)


def test_labeled_arrays_of_tensors_differentiate():
    x = cygrad.arange(6.0).reshape(3, 2).requires_grad_()
    labeled = xr.DataArray(x, dims=["row", "column"], coords={"row": [10, 20, 30]})
    loss = (labeled.mean("row") ** 2).sum() + labeled.sel(row=20).max("column") + labeled.std()
    assert type(loss.data) is cygrad.Tensor
    loss.data.backward()
    expected, = cygrad.autograd.grad((x.mean(0) ** 2).sum() + x[1].max() + x.std(correction=0), x)
    np.testing.assert_allclose(x.grad, expected, rtol=1e-6)


def test_ufuncs_with_arrays_of_objects_are_computed_by_numpy():
    found = np.add(X[:2], np.array([1, 2], dtype=object))
    assert type(found) is np.ndarray and found.dtype == object and found.tolist() == [1.0, 2.5]
    with pytest.raises(TypeError, match="lose its history"):
        np.add(X[:2].clone().requires_grad_(), np.array([1, 2], dtype=object))


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int16", "int64", "float16", "float32", "float64", "complex64"])
def test_dtypes_stand_for_those_of_numpy(dtype):
    ours, theirs = getattr(cygrad, dtype), np.dtype(dtype)
    assert np.dtype(ours) is theirs and np.zeros(2, dtype=ours).dtype is theirs
    assert ours == theirs and ours == theirs.type and hash(ours) == hash(theirs)
    assert ours != np.str_ and {theirs: 1}[ours] == 1
    assert (ours.kind, ours.char, ours.type) == (theirs.kind, theirs.char, theirs.type)
    assert np.issubdtype(ours, np.inexact) == np.issubdtype(theirs, np.inexact)
    assert cygrad.ones(2).astype(theirs).dtype is ours and cygrad.ones(2).astype(dtype).dtype is ours


def test_dtypes_that_numpy_lacks_say_so():
    with pytest.raises(TypeError, match="NumPy has no dtype bfloat16"):
        np.dtype(cygrad.bfloat16)
    assert cygrad.bfloat16 != np.float32 and cygrad.bfloat16.kind == "f" and cygrad.complex32.kind == "c"
    assert not hasattr(cygrad.float32, "nonsense")


def test_methods_of_arrays_that_mean_the_same():
    x = cygrad.arange(6.0, dtype=cygrad.float64).reshape(2, 3).requires_grad_()
    assert x.strides == x.detach().numpy().strides and x.T.strides == x.detach().numpy().T.strides
    copied = x.copy()
    assert copied.grad_fn is not None and copied.data_ptr() != x.data_ptr()
    x.astype(np.float32).sum().backward()
    assert x.grad.dtype is cygrad.float64 and x.grad.sum() == 6
    assert x.astype(float, copy=False) is x and x.astype(float) is not x
    assert (x + 0.123).round(1)[0, 1].item() == pytest.approx(1.1)
    assert cygrad.ones(2).imag.tolist() == [0, 0]


def test_running_sums_without_a_dimension_go_through_all_elements():
    x = cygrad.arange(6.0).reshape(2, 3).requires_grad_()
    for name in ("cumsum", "cumprod"):
        ours, theirs = getattr(x, name)(), getattr(x.detach().numpy(), name)()
        np.testing.assert_array_equal(ours.detach(), theirs)
        np.testing.assert_array_equal(getattr(cygrad, name)(x.detach(), axis=None, dtype=np.float64), theirs)
    x.cumsum().square().sum().backward()
    np.testing.assert_array_equal(x.grad, [[70, 70, 68], [62, 50, 30]])
    with pytest.raises(TypeError, match="cumsum_: missing required argument 'dim'"):
        x.detach().cumsum_()


def test_transpose_takes_the_axes_that_arrays_take():
    x = cygrad.arange(24.0).reshape(2, 3, 4)
    for axes in ((), (None,), (2, 0, 1), ((1, 2, 0),), ([0, -1, 1],)):
        np.testing.assert_array_equal(x.transpose(*axes), x.numpy().transpose(*axes))
    assert x.transpose(0, 1).shape == (3, 2, 4) and x.transpose(axes=(1, 0, 2)).shape == (3, 2, 4)
    assert x.transpose().data_ptr() == x.data_ptr()
    for wrong in ((1,), (0, 1, 2, 0)):
        with pytest.raises(TypeError, match=r"Its signature is transpose\(input, dim0, dim1\)"):
            x.transpose(*wrong)
