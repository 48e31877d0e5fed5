"""Mode objects: misuse, copies, initial state of a thread."""

import threading

import pytest

import cygrad
from cygrad._core.graph import modes


@pytest.fixture(autouse=True)
def clean_state():
    yield
    assert cygrad.is_grad_enabled()
    assert not cygrad.is_inference_mode_enabled()


def test_leaving_without_entering():
    for make in (cygrad.no_grad, cygrad.enable_grad, cygrad.inference_mode):
        with pytest.raises((IndexError, RuntimeError)):
            make().__exit__(None, None, None)
        with pytest.raises((IndexError, RuntimeError, AttributeError, TypeError)):
            make.__new__(make).__exit__(None, None, None)


def test_state_cannot_be_set_from_strangers():
    for name in ("__setstate_cython__", "__reduce_cython__"):
        assert not hasattr(cygrad.no_grad(), name)


def test_new_threads_start_in_grad_mode():
    seen = []
    with cygrad.inference_mode():
        thread = threading.Thread(target=lambda: seen.append((cygrad.is_grad_enabled(),
                                                              cygrad.is_inference_mode_enabled())))
        thread.start()
        thread.join()
    assert seen == [(True, False)]


def test_decorated_functions_in_several_threads_at_once():
    barrier = threading.Barrier(4)
    results = []

    @cygrad.no_grad()
    def work(depth):
        barrier.wait()
        results.append(cygrad.is_grad_enabled())
        return work(depth - 1) if depth else None

    threads = [threading.Thread(target=work, args=(5,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [False] * 24


def test_methods_and_lambdas():
    class Model:
        @cygrad.no_grad()
        def method(self):
            return cygrad.is_grad_enabled()

        @staticmethod
        @cygrad.inference_mode()
        def static():
            return cygrad.is_inference_mode_enabled()

    assert Model().method() is False
    assert Model.static() is True
    assert cygrad.no_grad()(lambda: cygrad.is_grad_enabled())() is False


def test_names_are_the_packages():
    for mode in (cygrad.no_grad, cygrad.enable_grad, cygrad.set_grad_enabled, cygrad.inference_mode):
        assert mode.__module__ == "cygrad"
    assert modes.no_grad is cygrad.no_grad is cygrad.autograd.no_grad is cygrad.autograd.grad_mode.no_grad


@pytest.mark.parametrize("make", [cygrad.no_grad, lambda: cygrad.autocast("cpu"),
                                  lambda: cygrad.autograd.graph.saved_tensors_hooks(lambda x: x, lambda x: x)])
def test_an_exit_without_an_entry_names_the_manager(make):
    manager = make()
    with pytest.raises(RuntimeError, match=f"{type(manager).__name__}: __exit__ requires a call of __enter__"):
        manager.__exit__(None, None, None)


def test_one_autocast_object_can_be_entered_inside_itself():
    block = cygrad.autocast("cpu")
    with block:
        with block:
            assert cygrad.is_autocast_enabled("cpu")
        assert cygrad.is_autocast_enabled("cpu")
    assert not cygrad.is_autocast_enabled("cpu")
