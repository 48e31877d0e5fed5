/* Type numbers of the loops of a ufunc, `nargs` for each: NumPy's declarations for Cython leave them out from 2.5 on. */
#pragma once
#include <Python.h>
#include <numpy/ndarraytypes.h>
#include <numpy/ufuncobject.h>

static inline const char *ufunc_types(const void *ufunc)
{
#ifdef _PyUFuncObject_GET_ITEM_DATA
    return _PyUFuncObject_GET_ITEM_DATA(ufunc)->types;
#else
    return ((const PyUFuncObject *)ufunc)->types;
#endif
}
