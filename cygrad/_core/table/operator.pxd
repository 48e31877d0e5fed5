"""Operator: a callable row of the table, with its descriptor in C and its compiled formulas."""

from cpython.object cimport PyObject
from libc.stdint cimport int32_t, int64_t, uint32_t
from cygrad._core.arrays.array cimport array_t, kernel_t, value_t
from cygrad._core.elementwise.expression cimport expression_t
from cygrad._core.program.executor cimport MAX_RESULTS, program_t

# ------------------------------------------------------------------------------------------------------------- operator

cdef enum:
    MAX_ARGUMENTS = 12
    MAX_SAVED = 16

ctypedef enum argument_kind_t:
    TENSOR = 0        # Tensor
    TENSORS           # Tensor[]
    OPERAND           # "Tensor|number": a tensor or a Python number (weak)
    NUMBER            # int, float, complex or bool
    INT
    INTS              # int[]: an int or a sequence of ints
    BOOL_
    FLOAT
    DTYPE_
    STRING

ctypedef enum flag_t:
    ELEMENTWISE = 1       # `expression` is the forward; broadcasts and promotes
    VIEW = 2              # the result may share the memory of argument 0
    LIST_RESULT = 4       # results[0] is ARRAYS
    INPLACE = 8           # has an in-place form
    OUT = 16              # has out=
    NO_GRADIENT = 32      # results never require grad (comparisons, indices)
    REFUSES_BOOL = 64     # element-wise operators: dtypes that the arguments must not promote to
    REFUSES_INTEGERS = 128
    REFUSES_REALS = 256
    REFUSES_COMPLEX = 512
    # For storage-only dtypes such as float16 (see graph/native.pyx):
    MOVES = 4096          # the kernel only moves elements, so it accepts them directly
    MIXED = 8192          # floating arguments may have several such dtypes; the first result has that of the first
    PLAIN_FORMULAS = 16384     # so do the formulas, or each is one element-wise expression (known when compiled)
    # Numbers must be in the range of the common dtype of the tensors (key `fits`):
    FITS_INTEGER = 1 << 21     # if it is an integer
    FITS_HALF = 1 << 22        # if it has 16 bits, else in that of float32
    FITS_SINGLE = 1 << 23      # if it is floating

ctypedef struct argument_t:
    const char *name
    int32_t kind
    int32_t optional          # None is allowed
    int32_t differentiable    # has a derivative formula
    int32_t edge              # number of single arguments with a formula before it: see first_edge()

ctypedef struct saved_t:
    const char *name          # "self", "other", "result", "dim" ... as in `_saved_<name>`
    int32_t from_result       # index below is of a result, not of an argument
    int32_t index
    uint32_t memory_by        # bit i: the formula of argument i uses more than shape and dtype: the memory is saved
    uint32_t needed_by        # bit i: the formula of argument i uses it

ctypedef struct operator_t:
    const char *name
    const char *node_name     # "MulBackward0"
    kernel_t kernel           # NULL if ELEMENTWISE
    kernel_t into             # the in-place kernel for the memory of argument 0; NULL: copies the result
    expression_t *expression  # forward, if ELEMENTWISE; NULL until a formula is compiled
    int32_t primitive         # its primitive if the expression is one instruction on the arguments in order; else -1
    int32_t flags
    int32_t n_arguments
    int32_t n_required        # arguments without default
    int32_t n_positional      # arguments that may be positional
    int32_t n_single          # arguments with a formula that are no lists
    int32_t listed            # the list argument with a formula; MAX_ARGUMENTS if there is none
    argument_t arguments[MAX_ARGUMENTS]
    value_t defaults[MAX_ARGUMENTS]
    int32_t n_results
    uint32_t differentiable_results   # bit j: result j can require grad
    const char *result_names[MAX_RESULTS]
    int32_t n_saved
    saved_t saved[MAX_SAVED]
    program_t *formulas[MAX_ARGUMENTS]        # derivative of each argument, or NULL
    int32_t compiled                  # formulas are compiled
    void *object                      # the Operator, borrowed

cdef inline int first_edge(const operator_t *op, int argument, int n_edges) noexcept nogil:
    """Return the edge of an argument with a formula; a list has one for each entry, from there on."""
    return op.arguments[argument].edge + (n_edges - op.n_single if argument > op.listed else 0)

# CPython's vectorcall protocol: the function, its arguments, their number and a flag, the names of the last ones.
ctypedef object (*vectorcall_t)(PyObject *function, PyObject **given, size_t count, PyObject *names)

# How a call continues after its arguments are bound.
cdef enum:
    CALL_GENERAL = 0
    CALL_UNARY            # element-wise, of one tensor
    CALL_BINARY           # element-wise, of two operands
    CALL_INPLACE

cdef class Operator:
    """A row of the table, or its in-place form: callable, like a ufunc of NumPy."""
    cdef vectorcall_t vectorcall      # set by cygrad._core.dispatch.binding, for the whole `call_kind`
    cdef operator_t *descriptor       # shared with the in-place form; lives as long as the process
    cdef readonly str name            # of the row; in-place forms have an underscore
    cdef int32_t call_kind
    cdef bint variadic                # the second argument may be given as several positional ones
    # Names of parameters, interned, and their defaults (NULL: required); `keep` holds the references.
    cdef PyObject *parameters[MAX_ARGUMENTS]
    cdef PyObject *defaults[MAX_ARGUMENTS]
    cdef readonly dict overloads      # keyword -> function for calls with it; None for most operators
    cdef readonly tuple factors       # of addmm(beta, input, alpha, ...): keywords that may precede tensors
    cdef readonly str signature       # the row's `call`
    cdef readonly dict formulas       # argument name -> derivative formula, as written
    cdef readonly object forward      # element-wise forward formula, or None for a primitive of that name
    cdef list keep                    # objects whose memory the fields above point into
    cdef object __weakref__
    cdef type node_type               # type of its nodes, created with the first one
    cdef dict recorded                # argument index -> Python function, compiled on first use
    # Compile the derivative formulas and lay out `saved`, once, before the first node is recorded.
    cdef int compile(self) except -1
    # Compile the forward of an element-wise operator that is a formula (`expression` is NULL until then).
    cdef int ensure_expression(self) except -1
    # Return the Python function f(grads, saved) for recorded execution. Its tuples are the gradients of the results
    # (None where undefined) and the saved values in the order of descriptor.saved; it returns the gradient of that
    # argument, a Tensor, list of Tensors or None.
    cdef object recorded_function(self, int argument)

# Native execution: out[i] = derivative of argument i for every i whose bit is in `needed`. saved: values in the order
# of descriptor.saved (NOTHING where not needed). grads: gradients of the results (NOTHING where undefined; at least one
# is defined), which it takes over: it releases them and may reuse their memory if that is not shared. metas: NULL, or
# for each of `n_edges` edges NULL or the shape and dtype of its gradient. out[i] is ARRAY, ARRAYS (for a Tensor[]
# argument) or NOTHING (zero). Gradients may be summed to the shape of `metas` already; the caller casts.
cdef int differentiate(const operator_t *op, const value_t *saved, value_t *grads, int n_grads, uint32_t needed,
                       array_t **metas, int n_edges, value_t *out) noexcept nogil

# Names of all operators -> Operator.
cdef dict table
cdef Operator register_operator(dict row)
# Return the in-place form of an operator.
cdef Operator inplace_form(Operator functional)

# --------------------------------------------------------------------------------------------------------- storage only

# Kernels on storage-only dtypes.

# Return whether one of the values is an array, a list with an array, or a storage-only dtype.
cdef bint any_storage_only(const value_t *values, int n) noexcept nogil
# Cast arrays and dtypes among the values to their compute dtypes, in place.
cdef int cast_to_compute_dtypes(value_t *values, int n) noexcept nogil
# Run the kernel on such arguments and round its results to their promoted dtype.
cdef int run_in_compute_dtypes(const operator_t *op, kernel_t kernel, const value_t *arguments,
                               value_t *results) noexcept nogil
# The same for an in-place kernel.
cdef int run_in_compute_dtypes_inplace(const operator_t *op, kernel_t kernel, const value_t *arguments,
                                       value_t *results) noexcept nogil
