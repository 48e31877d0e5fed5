"""
Operator: a callable row of the table, with its descriptor in C and its compiled formulas.

Rows are registered at import, in a few microseconds each. The formulas of a row are compiled when its first node is
recorded (`signature` and `formula` parse them, `lowering` turns them into instructions), its recorded formulas when
they are first needed (`recorded`).
"""

cimport cython
from cpython.object cimport PyObject
from libc.stdint cimport int64_t, uint32_t
from libc.stdio cimport snprintf
from libc.stdlib cimport calloc
from libc.string cimport memcpy
from cygrad._core.arrays.array cimport (
    ARRAY, ARRAYS, BOOLEAN, DIMENSIONED, DTYPE, INTEGER, MAX_DIMS, NOTHING, REAL, ZERO_DIM, array_meta, array_t,
    array_view, clear, common_dtype, copy_value, find_kernel, kernel_t, release, retain, set_array, set_arrays, value_t,
)
from cygrad._core.arrays.dtype cimport (
    COMPLEX64, FLOAT16, FLOAT32, FLOAT64, INT64, UINT64, complex_of, computed_in, dtype_name, is_differentiable,
    is_short, itemsize, promote, real_of,
)
from cygrad._core.elementwise.copying cimport as_dtype, copy_into, images_as_dtype
from cygrad._core.kernels.reduction.reductions cimport casts_itself
from cygrad._core.memory.errors cimport MEMORY_ERROR, MESSAGE, NOT_IMPLEMENTED, OK, message
from cygrad._core.program.builder cimport build_expression, build_program, constant_value, primitive_expression, text
from cygrad._core.program.executor cimport CALL, EVALUATE, MAX_GRADS, WANTED, program_t, run_formula

from sys import intern, modules
from types import SimpleNamespace


# ------------------------------------------------------------------------------------------------------------- operator

cdef enum:
    SHARES = 1 << 16      # a flag: formulas read `wanted`, or share values

cdef extern from "Python.h":
    object PyVectorcall_Call(object callable, object args, object kwargs)

table = {}
# The operators as attributes, in-place forms with an underscore: operators.add(x, y).
operators = SimpleNamespace()
# The same as a dict; modules add `tensor`, `conjugate`, `written` and `suspend_tracing` for formulas.
functions = vars(operators)
cdef dict _rows = {}          # name -> the row, as `signature.parse_row` returns it
cdef dict _attributes = {}    # Operator -> what programs have set on it
cdef object _docstrings = None       # name -> docstring, or a function that loads them


@cython.binding(False)      # methods check the type of self
cdef class Operator:
    """
    A row of the table as a function.

    Attributes
    ----------
    name : str
        Name of the row; in-place forms have an underscore.
    signature : str
        Signature: the key `call` of the row.
    formulas : dict
        Derivative formula of each differentiable argument, as written.
    forward : str or None
        Element-wise forward formula, None for a primitive or a kernel.
    """

    def __call__(self, *args, **kwargs):
        return PyVectorcall_Call(self, args, kwargs)

    def __get__(self, instance, owner):
        """Return the operator itself: like built-in functions, it does not bind as a method."""
        return self

    def __getattr__(self, name):
        try:
            return _attributes[self][name]
        except KeyError:
            raise AttributeError(f"operator {self.__name__!r} has no attribute {name!r}") from None

    def __setattr__(self, name, value):
        """Set an attribute, as on Python functions; those of the row are read-only."""
        if hasattr(type(self), name):
            raise AttributeError(f"operator {self.__name__!r}: attribute {name!r} cannot be set")
        _attributes.setdefault(self, {})[name] = value

    def __repr__(self):
        return f"<operator {self.signature}>"

    def __reduce__(self):
        public = getattr(modules.get("cygrad"), self.__name__, None)
        return self.__name__ if public is self else (operator_named, (self.name,))

    @property
    def is_inplace(self):
        """Whether it is an in-place form."""
        return self.call_kind == CALL_INPLACE

    @property
    def __name__(self):
        public = _row_of(self)["public"]
        return public + "_" if self.call_kind == CALL_INPLACE else public

    @property
    def __qualname__(self):
        return self.__name__

    @property
    def __module__(self):
        return "cygrad"

    @property
    def __doc__(self):
        if self.call_kind == CALL_INPLACE:
            from cygrad._core.table.docstrings import inplace_docstring
            return inplace_docstring(_row_of(self))
        return docstring_of(self.name)

    @property
    def __signature__(self):
        from cygrad._core.table.signature import python_signature
        return python_signature(_row_of(self), self.call_kind == CALL_INPLACE)

    @property
    def __text_signature__(self):
        return str(self.__signature__)

    @property
    def __annotations__(self):
        return {}

    @property
    def row(self):
        """The row, as `signature.parse_row` returns it."""
        return _row_of(self)

    @property
    def arguments(self):
        """Names of the arguments, a tuple."""
        return tuple([argument[0] for argument in _row_of(self)["arguments"]])

    @property
    def jvp(self):
        """The rule of forward mode, as `tangent_rules` names it."""
        return _row_of(self)["jvp"]

    def is_differentiable(self, int result):
        """Whether a result, or an entry of a list, can require grad."""
        if self.descriptor.flags & LIST_RESULT:
            result = 0
        return bool(self.descriptor.differentiable_results >> result & 1)

    def derivative(self, int argument):
        """Return the formula of an argument, by its index, as a Python function of gradients and saved values."""
        return self.recorded_function(argument)

    def lowered(self, str argument not None):
        """Return the instructions that compute the gradient of an argument, as text; `None` without a formula."""
        from cygrad._core.table.layout import saved_layout
        from cygrad._core.table.lowering import lower_formulas
        row = _row_of(self)
        code = lower_formulas(row, saved_layout(row), _rows.get).get(argument)
        return None if code is None else str(code)

    cdef int compile(self) except -1:
        """Assign the layout of saved values and compile the derivative formulas, once."""
        from cygrad._core.table.layout import saved_layout, title
        from cygrad._core.table.lowering import lower_formulas
        cdef operator_t *op = self.descriptor
        cdef saved_t[MAX_SAVED] saved
        cdef program_t *formulas[MAX_ARGUMENTS]
        cdef uint32_t reads = 0
        cdef int i
        cdef bint plain = True
        if op.compiled:
            return 0
        row = _row_of(self)
        layout = saved_layout(row)
        if len(layout) > MAX_SAVED:
            raise RuntimeError(f"{self.name}: the formulas use too many names (got {len(layout)}, "
                               f"at most {MAX_SAVED})")
        for i, entry in enumerate(layout):
            saved[i] = saved_t(text(entry.name, self.keep), entry.from_result, entry.index, entry.memory_by,
                               entry.needed_by)
        codes = lower_formulas(row, layout, _rows.get)
        for i in range(op.n_arguments):
            formulas[i] = NULL
            argument = row["arguments"][i][0]
            if argument in codes:
                code = codes[argument]
                plain = plain and _supports_storage_only(code.instructions)
                formulas[i] = build_program(code.instructions, code.constants, code.n_temporaries, self.keep)
                formulas[i].result, formulas[i].reads = code.result, code.reads
                formulas[i].title = text(title(row, argument), self.keep)
                reads |= formulas[i].reads
        # Another thread may have compiled them meanwhile, and backward may be reading its result.
        with cython.critical_section(self):
            if not op.compiled:
                for i in range(<int>len(layout)):
                    op.saved[i] = saved[i]
                for i in range(op.n_arguments):
                    op.formulas[i] = formulas[i]
                op.n_saved = len(layout)
                if reads >> WANTED:
                    op.flags |= SHARES
                elif plain:
                    op.flags |= PLAIN_FORMULAS
                op.compiled = True
        return 0

    cdef int ensure_expression(self) except -1:
        """Compile the forward formula of an element-wise operator, once."""
        from cygrad._core.table.formula import Reader
        from cygrad._core.table.layout import forward_names
        from cygrad._core.table.lowering import lower_forward
        cdef operator_t *op = self.descriptor
        if op.expression != NULL or not op.flags & ELEMENTWISE:
            return 0
        row = _row_of(self)
        names = forward_names(row)
        value = Reader(f"{self.name}: forward", self.forward, names, _rows.get).read()
        expression = lower_forward(value, list(names.values()))
        code, result = expression.registers()
        op.expression = build_expression(len(expression.inputs), expression.constants, code, result, self.keep)
        op.primitive = _only_primitive(op)
        return 0

    cdef object recorded_function(self, int argument):
        function = self.recorded.get(argument)
        if function is None:
            from cygrad._core.table.layout import saved_layout
            from cygrad._core.table.recorded import recorded_function
            row = _row_of(self)
            name = row["arguments"][argument][0]
            function = recorded_function(row, saved_layout(row), name, functions, _is_elementwise)
            self.recorded[argument] = function
        return function


cdef bint _supports_storage_only(list instructions) except -1:
    """Return whether a formula is one element-wise expression, or consists of kernels that only move elements."""
    if len(instructions) == 1 and instructions[0].kind == EVALUATE:
        return True
    return all([instruction.kind != EVALUATE and (instruction.kind != CALL or _rows[instruction.name]["moves"])
                for instruction in instructions])


def _is_elementwise(str name):
    """Return whether there is an element-wise operator of this name."""
    row = _rows.get(name)
    return row is not None and row["forward"] is not None


cdef dict _row_of(Operator operator):
    """Return the row of an operator, also for its in-place form."""
    return _rows[(<Operator>operator.descriptor.object).name]


def find_operator(str name not None):
    """Return the `Operator` of a row; None if there is none of that name."""
    return table.get(name)


def operator_named(str name not None):
    """Return the operator, or in-place form, of a name, for unpickling."""
    return functions[name]


def set_docstrings(read):
    """Set the function that loads the docstrings of all rows, by name, on first access."""
    global _docstrings
    _docstrings = read


def docstring_of(str name not None):
    """The docstring of a row."""
    global _docstrings
    if callable(_docstrings):
        _docstrings = _docstrings()
    return (_docstrings or {}).get(name)


# ---- registration

cdef Operator register_operator(dict row):
    """Return the Operator of a row: as it is in the table, or parsed by `signature.parse_row` before."""
    cdef Operator made = Operator.__new__(Operator)
    if "arguments" not in row:
        from cygrad._core.table.signature import parse_row
        row = parse_row(row)
    name = row["name"]
    if name in table:
        raise RuntimeError(f"register_operator: '{name}' is registered twice")
    made.descriptor = <operator_t *>calloc(1, sizeof(operator_t))
    if made.descriptor == NULL:
        raise MemoryError()
    made.name = name
    made.signature = row["call"]
    made.formulas = row["formulas"]
    made.forward = None if row["forward"] == "primitive" else row["forward"]
    made.keep = []
    made.recorded = {}
    made.variadic = row["variadic"]
    made.overloads = row["overloads"]
    made.factors = row["factors"]
    _describe(made, row)
    _rows[name] = row
    table[name] = functions[name] = made
    if row["inplace"]:
        functions[name + "_"] = inplace_form(made)
    return made


cdef Operator inplace_form(Operator functional):
    cdef Operator made = Operator.__new__(Operator)
    made.descriptor = functional.descriptor
    made.name = functional.name + "_"
    made.signature, made.formulas, made.forward = functional.signature, functional.formulas, functional.forward
    memcpy(made.parameters, functional.parameters, sizeof(made.parameters))
    memcpy(made.defaults, functional.defaults, sizeof(made.defaults))
    made.factors = functional.factors
    made.call_kind = CALL_INPLACE
    made.keep = [functional]
    made.recorded = functional.recorded
    return made


# Values of the key `autocast`, and their flags: see dispatch/operator_modes.pxd.
AUTOCAST = {None: 0, "lower": 1 << 17, "float32": 1 << 18, "meet": 1 << 19}
COUNTS_ARGUMENTS = 1 << 20          # see graph/boxing.pxd
# Values of the key `fits`.
FITS = {"integer": FITS_INTEGER, "half": FITS_HALF, "single": FITS_SINGLE}
# Values of the key `dtypes`.
REFUSALS = {"bool": REFUSES_BOOL, "integer": REFUSES_INTEGERS, "real": REFUSES_REALS, "complex": REFUSES_COMPLEX}


cdef int _describe(Operator made, dict row) except -1:
    """Fill the descriptor; kernels and primitives must exist."""
    cdef operator_t *op = made.descriptor
    cdef int i
    op.object = <void *>made
    op.primitive = -1
    op.name = text(row["name"], made.keep)
    op.node_name = text(row["node"], made.keep)
    op.n_arguments = len(row["arguments"])
    op.listed = MAX_ARGUMENTS
    for i in range(op.n_arguments):
        _describe_argument(made, i, row["arguments"][i])
    op.flags = ((ELEMENTWISE if row["forward"] is not None else 0) | (VIEW if row["view"] else 0)
                | (LIST_RESULT if row["list"] else 0) | (INPLACE if row["inplace"] else 0)
                | (OUT if row["out"] else 0) | (0 if row["gradient"] else NO_GRADIENT)
                | (MOVES if row["moves"] else 0) | (MIXED if row["mixed"] else 0)
                | AUTOCAST[row["autocast"]] | (COUNTS_ARGUMENTS if row["zeros"] else 0)
                | sum([FITS[name] for name in row["fits"]]))
    if row["forward"] is not None:
        for name, flag in REFUSALS.items():
            if name not in row["dtypes"]:
                op.flags |= <int>flag
    for i, name in enumerate(row["results"]):
        op.result_names[i] = text(name, made.keep)
        if row["gradient"] and name in row["differentiable"]:
            op.differentiable_results |= <uint32_t>1 << i
    op.n_results = len(row["results"])
    if row["forward"] is not None and op.n_arguments <= 2 and all(
            [entry[1] in (TENSOR, OPERAND) and entry[3] for entry in row["arguments"]]):
        made.call_kind = CALL_UNARY if op.n_arguments == 1 else CALL_BINARY
    if row["forward"] == "primitive":
        op.expression = primitive_expression(row["name"], op.n_arguments, made.keep)
        op.primitive = _only_primitive(op)
    elif row["forward"] is None:
        op.kernel = _kernel(row["name"], row["kernel"])
        if row["into"] is not None:
            op.into = _kernel(row["name"], row["into"])
    return 0


cdef int _only_primitive(const operator_t *op) noexcept:
    """Return the primitive if the expression is one instruction on the arguments in order, else -1."""
    cdef const expression_t *expression = op.expression
    cdef int i
    if expression.n_instructions != 1 or expression.n_constants or expression.n_inputs != op.n_arguments:
        return -1
    for i in range(expression.n_inputs):
        if expression.code[0].inputs[i] != i:
            return -1
    return expression.code[0].primitive


cdef kernel_t _kernel(str operator, str name) except NULL:
    """Return the array kernel that a row names."""
    cdef kernel_t kernel = find_kernel(name)
    if kernel == NULL:
        raise RuntimeError(f"{operator}: no kernel '{name}' is registered. Import the module that registers it first, "
                           "or correct 'kernel', 'into' or 'forward' in the table.")
    return kernel


cdef int _describe_argument(Operator made, int i, object entry) except -1:
    cdef operator_t *op = made.descriptor
    cdef argument_t *argument = &op.arguments[i]
    cdef value_t *default = &op.defaults[i]
    name, kind, optional, required, value, keyword_only = entry
    parameter = intern("input" if name == "self" else name)
    made.keep += [parameter, value]
    made.parameters[i] = <PyObject *>parameter
    if not required:
        made.defaults[i] = <PyObject *>value
    argument.name = text(name, made.keep)
    argument.kind = kind
    argument.optional = optional
    argument.differentiable = name in made.formulas
    argument.edge = op.n_single
    if argument.differentiable and kind == TENSORS:
        op.listed = i
    elif argument.differentiable:
        op.n_single += 1
    op.n_required += <bint>required
    op.n_positional += not keyword_only
    if argument.kind == INTS and isinstance(value, int):
        value = (value,)
    constant_value(value, default, made.keep)
    if argument.kind == FLOAT and (default.kind == INTEGER or default.kind == BOOLEAN):
        default.kind, default.of.real = REAL, <double>default.of.integer
    return 0


# ---- native execution

cdef int differentiate(const operator_t *op, const value_t *saved, value_t *grads, int n_grads, uint32_t needed,
                       array_t **metas, int n_edges, value_t *out) noexcept nogil:
    cdef uint32_t[MAX_ARGUMENTS] later         # gradients that later formulas read
    cdef uint32_t reads = 0
    cdef value_t[MAX_GRADS] own
    cdef const array_t *meta
    cdef int i, status = OK
    if op.flags & (LIST_RESULT | SHARES):
        status = _own_grads(op, grads, n_grads, needed, own)
        grads, n_grads = own, MAX_GRADS if op.flags & SHARES else 1
    for i in range(op.n_arguments - 1, -1, -1):
        later[i] = reads
        if needed >> i & 1 and op.formulas[i] != NULL:
            reads |= op.formulas[i].reads
    for i in range(op.n_arguments):
        out[i].kind = NOTHING
        if status == OK and needed >> i & 1 and op.formulas[i] != NULL:
            meta = NULL if metas == NULL or i == op.listed else metas[first_edge(op, i, n_edges)]
            status = run_formula(op.formulas[i], saved, grads, ~later[i], meta, &out[i])
    for i in range(n_grads):
        if grads[i].kind != NOTHING:
            clear(&grads[i])
    if status != OK:
        for i in range(op.n_arguments):
            clear(&out[i])
    return status


cdef int _own_grads(const operator_t *op, value_t *grads, int n_grads, uint32_t needed, value_t *own) noexcept nogil:
    """Move the gradients so that shared values of formulas fit after them; those of a list into one value."""
    cdef int i, status = OK
    own.kind = NOTHING
    if op.flags & SHARES:
        for i in range(MAX_GRADS):
            own[i].kind = NOTHING
        own[WANTED].kind = INTEGER
        own[WANTED].of.integer = needed
    if op.flags & LIST_RESULT and not (n_grads == 1 and grads.kind == ARRAYS):
        status = set_arrays(own, n_grads)
    for i in range(n_grads):
        if status != OK:
            clear(&grads[i])
        elif not op.flags & LIST_RESULT or grads[i].kind == ARRAYS:
            own[i] = grads[i]
        elif grads[i].kind == ARRAY:
            own.of.arrays[i] = grads[i].of.array
        grads[i].kind = NOTHING
    return status


# --------------------------------------------------------------------------------------------------------- storage only

# Kernels on storage-only dtypes: float16, bfloat16, complex32, uint16, uint32 and uint64.
#
# No kernel has loops for these. Arguments are cast to their compute dtypes, and results are rounded once. Element-wise
# expressions do not use this, because they cast tile by tile; nor do reductions, which cast block by block, and kernels
# that only move elements.

ctypedef struct promotion_t:
    int common                # promoted dtype of the floating arguments; -1: there are none
    int integer               # the first storage-only integer dtype, or -1
    int requested                 # the argument dtype=, or one of the two below
    bint mixed                # arguments have several floating dtypes, one of them of 16 bits

cdef enum:
    NOT_REQUESTED = -1
    NO_DTYPE_ARGUMENT = -2


cdef inline bint _is_storage_only(int64_t dtype) noexcept nogil:
    return dtype >= FLOAT16


cdef bint any_storage_only(const value_t *values, int n) noexcept nogil:
    cdef int i, k
    for i in range(n):
        if values[i].kind == ARRAY and _is_storage_only(values[i].of.array.dtype):
            return True
        if values[i].kind == DTYPE and _is_storage_only(values[i].of.integer):
            return True
        if values[i].kind == ARRAYS:
            for k in range(values[i].count):
                if values[i].of.arrays[k] != NULL and _is_storage_only(values[i].of.arrays[k].dtype):
                    return True
    return False


cdef array_t *_cast(array_t *array, int dtype) noexcept nogil:
    """Cast an array; one without memory changes only its dtype. Expanded elements are cast once."""
    cdef array_t *made
    cdef array_t *once
    cdef int64_t[MAX_DIMS] sizes
    cdef int64_t[MAX_DIMS] strides
    cdef int d
    cdef bint repeats = False
    if array.dtype == dtype:
        return retain(array)
    if array.storage == NULL:
        made = array_meta(array)
        if made != NULL:
            made.dtype = dtype
            made.data = NULL + <size_t>array.data // itemsize(array.dtype) * itemsize(dtype)
        return made
    for d in range(array.ndim):
        sizes[d] = 1 if array.strides[d] == 0 and array.shape[d] > 1 else array.shape[d]
        repeats = repeats or sizes[d] != array.shape[d]
    if not repeats:
        return images_as_dtype(array, dtype) if is_short(array.dtype) else as_dtype(array, dtype)
    made = array_view(array, array.dtype, array.ndim, sizes, array.strides, 0)
    if made == NULL:
        return NULL
    once = as_dtype(made, dtype)
    release(made)
    if once == NULL:
        return NULL
    for d in range(array.ndim):
        strides[d] = once.strides[d] if sizes[d] == array.shape[d] else 0
    made = array_view(once, dtype, array.ndim, array.shape, strides, 0)
    release(once)
    return made


cdef inline int _target(int dtype, bint apart) noexcept nogil:
    return FLOAT64 if apart and dtype == FLOAT32 else INT64 if dtype == UINT64 else computed_in(dtype)


cdef int _computed(const value_t *values, int n, bint apart, bint short_stay, value_t *made) noexcept nogil:
    """
    `apart`: float32 arguments become float64, so that the kernel sees a different dtype. `short_stay`: the kernel casts
    16-bit floats itself.
    """
    cdef array_t *array
    cdef int i, k, status = OK
    for i in range(n):
        made[i].kind = NOTHING
    for i in range(n):
        if values[i].kind == ARRAY:
            array = values[i].of.array
            array = (retain(array) if short_stay and is_short(array.dtype)
                     else _cast(array, _target(array.dtype, apart)))
            if array == NULL:
                status = MEMORY_ERROR
            else:
                set_array(&made[i], array)
        elif values[i].kind == ARRAYS:
            status = set_arrays(&made[i], values[i].count)
            if status == OK:
                for k in range(values[i].count):
                    array = values[i].of.arrays[k]
                    if array != NULL:
                        made[i].of.arrays[k] = _cast(array, _target(array.dtype, apart))
                        if made[i].of.arrays[k] == NULL:
                            status = MEMORY_ERROR
        else:
            status = copy_value(&made[i], &values[i])
            if made[i].kind == DTYPE:
                made[i].of.integer = _target(<int>made[i].of.integer, False)
        if status != OK:
            for k in range(n):
                clear(&made[k])
            return status
    return OK


cdef int cast_to_compute_dtypes(value_t *values, int n) noexcept nogil:
    cdef value_t made
    cdef int i, status
    for i in range(n):
        status = _computed(&values[i], 1, False, False, &made)
        if status != OK:
            return status
        clear(&values[i])
        values[i] = made
    return OK


cdef void _promote_with(promotion_t *promotion, int *ranks, const array_t *array) noexcept nogil:
    """Take one argument into account; tensors with dimensions decide, as they do for element-wise operators."""
    cdef int *met
    if array == NULL:
        return
    if not is_differentiable(array.dtype):
        if _is_storage_only(array.dtype) and promotion.integer < 0:
            promotion.integer = array.dtype
        return
    met = &ranks[DIMENSIONED if array.ndim else ZERO_DIM]
    if met[0] >= 0 and met[0] != array.dtype and array.ndim and (is_short(met[0]) or is_short(array.dtype)):
        promotion.mixed = True
    met[0] = array.dtype if met[0] < 0 else promote(met[0], array.dtype)


cdef promotion_t _promotion_of(const operator_t *op, const value_t *arguments) noexcept nogil:
    cdef promotion_t promotion = promotion_t(-1, -1, NO_DTYPE_ARGUMENT, False)
    cdef int[2] ranks
    cdef int i, k
    ranks[0] = ranks[1] = -1
    for i in range(op.n_arguments):
        if op.arguments[i].kind == DTYPE_:
            promotion.requested = <int>arguments[i].of.integer if arguments[i].kind == DTYPE else NOT_REQUESTED
        elif arguments[i].kind == ARRAY:
            _promote_with(&promotion, ranks, arguments[i].of.array)
        elif arguments[i].kind == ARRAYS:
            for k in range(arguments[i].count):
                _promote_with(&promotion, ranks, arguments[i].of.arrays[k])
        if op.flags & MIXED and i == 0:
            break                                # the first one decides
    promotion.common = common_dtype(ranks[0], ranks[1], -1)
    return promotion


cdef int _rounded(const operator_t *op, const promotion_t *promotion, int result, int dtype) noexcept nogil:
    """Return the dtype that a result is rounded to."""
    if promotion.requested >= 0:
        return promotion.requested if dtype == _target(promotion.requested, False) else dtype
    if not is_differentiable(dtype):
        # Sums stay in int64, and further results are positions.
        return (promotion.integer if promotion.integer >= 0 and dtype == INT64 and result == 0
                and promotion.requested == NO_DTYPE_ARGUMENT and op.differentiable_results & 1 else dtype)
    if op.flags & MIXED and result:
        return dtype
    if promotion.mixed:
        return promotion.common if dtype == FLOAT64 else dtype
    if promotion.common < 0 or not is_short(promotion.common):
        return dtype
    return (real_of(promotion.common) if dtype == FLOAT32 else complex_of(promotion.common) if dtype == COMPLEX64
            else dtype)


cdef int _round(array_t **array, int dtype) noexcept nogil:
    cdef array_t *made
    if array[0] == NULL or array[0].dtype == dtype:
        return OK
    made = images_as_dtype(array[0], dtype)
    if made == NULL:
        return MEMORY_ERROR
    release(array[0])
    array[0] = made
    return OK


cdef int _check_range(const operator_t *op, const value_t *arguments, const value_t *made) noexcept nogil:
    """uint64 is computed in int64, which does not hold all values; sums are the same in both."""
    cdef const int64_t *elements
    cdef int64_t k
    cdef int i
    for i in range(op.n_arguments):
        if op.arguments[i].kind == DTYPE_:
            return OK
    for i in range(op.n_arguments):
        if arguments[i].kind != ARRAY or arguments[i].of.array.dtype != UINT64:
            continue
        elements = <const int64_t *>made[i].of.array.data           # contiguous, or expanded, as it was cast
        for k in range(made[i].of.array.size if made[i].of.array.contiguous else 1):
            if elements[k] < 0:
                snprintf(message(), MESSAGE, b"%s: computed in int64, which does not hold all elements of a uint64 "
                         b"tensor (got %llu). Convert with to() first.", op.name, <unsigned long long>elements[k])
                return NOT_IMPLEMENTED
    return OK


cdef int run_in_compute_dtypes(const operator_t *op, kernel_t kernel, const value_t *arguments,
                               value_t *results) noexcept nogil:
    cdef value_t[MAX_ARGUMENTS] made
    cdef promotion_t promotion
    cdef int i, k, status
    if op.flags & (MOVES | VIEW):
        return kernel(arguments, results)
    promotion = _promotion_of(op, arguments)
    status = _computed(arguments, op.n_arguments, promotion.mixed, casts_itself(kernel), made)
    if status != OK:
        return status
    status = _check_range(op, arguments, made) or kernel(made, results)
    for i in range(op.n_arguments):
        clear(&made[i])
    if status != OK and promotion.mixed:
        snprintf(message(), MESSAGE, b"%s: expected tensors of the same dtype (got %s and others). Convert with to() "
                 b"first.", op.name, dtype_name(_first_short(arguments, op.n_arguments)))
    for i in range(op.n_results):
        if status == OK and results[i].kind == ARRAY:
            status = _round(&results[i].of.array, _rounded(op, &promotion, i, results[i].of.array.dtype))
        elif status == OK and results[i].kind == ARRAYS:
            for k in range(results[i].count):
                if status == OK and results[i].of.arrays[k] != NULL:
                    status = _round(&results[i].of.arrays[k],
                                    _rounded(op, &promotion, 0, results[i].of.arrays[k].dtype))
    if status != OK:
        for i in range(op.n_results):
            clear(&results[i])
    return status


cdef int _first_short(const value_t *arguments, int n) noexcept nogil:
    cdef int i
    for i in range(n):
        if arguments[i].kind == ARRAY and is_short(arguments[i].of.array.dtype):
            return arguments[i].of.array.dtype
    return FLOAT16


cdef int run_in_compute_dtypes_inplace(const operator_t *op, kernel_t kernel, const value_t *arguments,
                                       value_t *results) noexcept nogil:
    cdef value_t[MAX_ARGUMENTS] made
    cdef int i, status
    if op.flags & MOVES:
        return kernel(arguments, results)
    status = _computed(arguments, op.n_arguments, False, False, made)
    if status != OK:
        return status
    status = kernel(made, results)        # it moves or adds: sums are the same in int64 and uint64
    if status == OK and made[0].of.array != arguments[0].of.array:
        status = copy_into(arguments[0].of.array, made[0].of.array)
    for i in range(op.n_arguments):
        clear(&made[i])
    return status
