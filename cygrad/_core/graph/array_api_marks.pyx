"""Marks of Array API arrays: tensors returned by functions of that namespace."""

from cygrad._core.arrays.array cimport array_t
from cygrad._core.arrays.value cimport ARRAY, ARRAYS, value_t
from cygrad._core.graph.meta cimport any_is_meta, any_meta, forget_elements, note_unusual


cdef void mark_array_api(array_t *array) noexcept:
    array.array_api = True
    note_unusual()


cdef void propagate_array_api(array_t *array, const array_t *example) noexcept:
    if is_array_api(example):
        mark_array_api(array)


cdef int unusual_among(int n, const value_t *values) noexcept:
    cdef int i, j
    cdef int found = WITHOUT_ELEMENTS if any_meta and any_is_meta(n, values) else 0
    for i in range(n):
        if values[i].kind == ARRAY and is_array_api(values[i].of.array):
            return found | BY_STANDARD
        if values[i].kind == ARRAYS:
            for j in range(values[i].count):
                if values[i].of.arrays[j] != NULL and is_array_api(values[i].of.arrays[j]):
                    return found | BY_STANDARD
    return found


cdef int adapt(int unusual, int n, value_t *results) except -1:
    cdef int i, j
    if unusual & WITHOUT_ELEMENTS:
        forget_elements(n, results)
    if not unusual & BY_STANDARD:
        return 0
    for i in range(n):
        if results[i].kind == ARRAY:
            _mark_new(results[i].of.array)
        elif results[i].kind == ARRAYS:
            for j in range(results[i].count):
                _mark_new(results[i].of.arrays[j])
    return 0


cdef inline void _mark_new(array_t *array) noexcept:
    """Mark results, except those that are an argument itself."""
    if array != NULL and array.tensor == NULL:
        mark_array_api(array)
