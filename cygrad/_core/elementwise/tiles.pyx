"""
Execution of a specialized program over a loop nest, tile by tile.

A tile is a part of a row, or several short rows. Operands without a uniform stride in it are first gathered into a
buffer, and so are strided ones if a loop might round them differently: results do not depend on the layout of the
inputs. Tiles depend only on the problem, never on the threads.
"""

from libc.stdint cimport uintptr_t
from libc.stdio cimport snprintf
from cygrad._core.arrays.array cimport MAX_DIMS
from cygrad._core.arrays.dtype cimport itemsize
from cygrad._core.elementwise.iteration cimport nest_pointer
from cygrad._core.elementwise.nan_watch cimport (
    LISTEN, LOOK, clear_invalid, how_to_watch, nan_watchers, row_holds_nan, was_invalid, watch)
from cygrad._core.elementwise.specialize cimport OUT_SLOT, step_t
from cygrad._core.memory.atomic cimport atomic_claim, atomic_store
from cygrad._core.memory.errors cimport MESSAGE, OK, message
from cygrad._core.primitives.cast cimport cast_loops, number_to_cell
from cygrad._core.primitives.chains cimport CHAIN_CODE, ELEMENTS, HELD, NUMBER, chain_step_t, run_chain
from cygrad._core.primitives.primitive_table cimport MAX_ARITY, loop_status, set_loop_status
from cygrad._core.threads.parallel cimport parallel_for

cdef extern from "simd/fetch.h" nogil:
    void fetch(const char *memory, int64_t nbytes, bint written)

cdef extern from "elementwise/repeat_rows.h" nogil:
    bint repeat_rows(char *to, const char *data, int64_t size, int64_t step, int64_t stride, int64_t length,
                     int64_t rows)

cdef enum:
    FAR = 1 << 18         # elements from which operands exceed the caches anyway
    LONG_ROW = 256        # elements from which a row is worth a separate tile
    LARGEST = 4096
    MAX_LINKS = 16        # steps of a chain
    SHORTEST_CHAIN = 256  # elements of a block of a chain
    NO_SLOT = -2
    PORTION = 8192        # elements scanned for nan at a time


cdef int64_t tile_size(int64_t bytes) noexcept nogil:
    cdef int64_t n
    if bytes == 0:
        return WORK           # no buffers to keep in cache: as much as a thread takes at a time
    n = TARGET // bytes // SMALLEST * SMALLEST
    return SMALLEST if n < SMALLEST else LARGEST if n > LARGEST else n


cdef void place_cells(const specialized_t *program, const value_t *inputs, slots_t *slots,
                      double complex *numbers) noexcept nogil:
    cdef int i
    for i in range(program.n_cells):
        slots.steps[program.n_inputs + i] = 0
        if program.cells[i].input < 0:
            slots.data[program.n_inputs + i] = <char *>program.cells[i].value
        else:
            slots.data[program.n_inputs + i] = <char *>&numbers[i]
            number_to_cell(&inputs[program.cells[i].input], program.cells[i].dtype, &numbers[i])


cdef inline void _run_step(const specialized_t *program, const step_t *step, slots_t *slots, char *workspace,
                           int64_t capacity, int64_t done, int64_t n) noexcept nogil:
    """Run one step on n elements from number `done` on."""
    cdef char *pointers[MAX_ARITY + 1]
    cdef int64_t steps[MAX_ARITY + 1]
    cdef int k, slot
    cdef int64_t count = n, varies = 0
    for k in range(step.n_inputs):
        slot = step.inputs[k]
        pointers[k] = slots.data[slot] + done * slots.steps[slot]
        steps[k] = slots.steps[slot]
        varies |= steps[k]
    slot = step.out
    if slot == OUT_SLOT:
        pointers[step.n_inputs] = slots.out + done * slots.out_step
        steps[step.n_inputs] = slots.out_step
    else:
        # Compute a value that is the same for all elements once.
        if varies == 0:
            count = 1
        slots.data[slot] = _buffer(program, slot, workspace, capacity)
        slots.steps[slot] = step.out_size if varies else 0
        if done and done + n > capacity:               # elements left over by a chain
            slots.data[slot] -= done * slots.steps[slot]
        pointers[step.n_inputs] = slots.data[slot] + done * slots.steps[slot]
        steps[step.n_inputs] = step.out_size
    step.loop(pointers, &count, steps, step.data)


cdef inline char *_buffer(const specialized_t *program, int slot, char *workspace, int64_t capacity) noexcept nogil:
    return workspace + (slot - program.n_inputs - program.n_cells) * capacity * program.width


cdef int _find_links(const specialized_t *program, const step_t *first, slots_t *slots, char *workspace,
                     int64_t capacity, chain_step_t *links) noexcept nogil:
    """Return how many of the steps that may be one chain form one, by the strides of their operands; or 0."""
    cdef const char *pointers[2]
    cdef int[2] kinds
    cdef const step_t *step
    cdef int64_t size = first.out_size
    cdef int i, k, slot, count = 0, held = NO_SLOT
    for i in range(min(<int>first.links, <int>MAX_LINKS)):
        step = first + i
        kinds[0] = kinds[1] = HELD
        pointers[0] = pointers[1] = NULL
        for k in range(step.n_inputs):
            slot = step.inputs[k]
            if slot == held:
                continue
            pointers[k] = slots.data[slot]
            kinds[k] = ELEMENTS if slots.steps[slot] == size else NUMBER
            if kinds[k] == NUMBER and (slots.steps[slot] or slot >= program.n_inputs + program.n_cells):
                break
        else:
            if kinds[0] == NUMBER and (step.n_inputs == 1 or kinds[1] == NUMBER) or (
                    step.out == OUT_SLOT and slots.out_step != size):
                break
            links[i].code = CHAIN_CODE(step.operation >> 1, kinds[0], kinds[1], step.kept or step.out == OUT_SLOT)
            links[i].left, links[i].right, links[i].out = pointers[0], pointers[1], slots.out
            if step.out != OUT_SLOT:
                links[i].out = slots.data[step.out] = _buffer(program, step.out, workspace, capacity)
                slots.steps[step.out] = size
            held = step.out
            count += 1
            continue
        break
    if count < 2:
        return 0
    step = first + count - 1
    if not step.kept and step.out != OUT_SLOT:
        links[count - 1].code += CHAIN_CODE(0, 0, 0, 1)
    return count


cdef void run_steps(const specialized_t *program, slots_t *slots, char *workspace, int64_t capacity,
                    int64_t n) noexcept nogil:
    cdef int i
    if n >= SHORTEST_CHAIN:
        _run_chains(program, slots, workspace, capacity, n)
    else:
        for i in range(program.n_steps):
            _run_step(program, &program.steps[i], slots, workspace, capacity, 0, n)


cdef void _run_chains(const specialized_t *program, slots_t *slots, char *workspace, int64_t capacity,
                      int64_t n) noexcept nogil:
    """Run consecutive steps as chains where possible, and the leftover elements step by step."""
    cdef chain_step_t links[MAX_LINKS]
    cdef int64_t done
    cdef int i = 0, k, chained
    while i < program.n_steps:
        chained = done = 0
        if program.steps[i].links > 1:
            chained = _find_links(program, &program.steps[i], slots, workspace, capacity, links)
            if chained:
                done = run_chain(program.steps[i].operation & 1, links, chained, n)
        chained = max(chained, 1)
        if done < n:
            for k in range(i, i + chained):
                _run_step(program, &program.steps[k], slots, workspace, capacity, done, n - done)
        i += chained


cdef void _move_rows(const task_t *task, int k, char *tile, int64_t start, int64_t n) noexcept nogil:
    """Gather n elements of operand k, from `start` on, into a tile; or, for operand 0, scatter them."""
    cdef const nest_t *nest = &task.nest
    cdef int64_t[MAX_DIMS] position
    cdef int64_t index, count, column, rows, length = nest.shape[0]
    cdef int64_t steps[2]
    cdef char *pointers[2]
    cdef char *row = nest.data[k]
    cdef int d, first = 1, own = 1 if k == 0 else 0
    cdef int64_t tile_step = task.itemsize[k] if k else task.program.steps[task.program.n_steps - 1].out_size
    # Merge rows with a uniform stride in this operand.
    while first < nest.ndim and nest.strides[k][first] == nest.strides[k][first - 1] * nest.shape[first - 1]:
        length *= nest.shape[first]
        first += 1
    column, index = start % length, start // length
    row += column * nest.strides[k][0]
    for d in range(first, nest.ndim):
        position[d] = index % nest.shape[d]
        index //= nest.shape[d]
        row += position[d] * nest.strides[k][d]
    steps[own] = nest.strides[k][0]
    steps[1 - own] = tile_step
    while True:
        count = min(length - column, n)
        rows = 0
        if k and count == length and first < nest.ndim:
            rows = min(n // length, nest.shape[first] - position[first])
            if not repeat_rows(tile, row, tile_step, nest.strides[k][0], nest.strides[k][first], length, rows):
                rows = 0
        if rows == 0:
            pointers[own] = row
            pointers[1 - own] = tile
            task.move[k](pointers, &count, steps, NULL)
            rows = 1
        n -= rows * count
        if n == 0:
            return
        tile += rows * count * tile_step
        row += (rows - 1) * nest.strides[k][first] - column * nest.strides[k][0]
        position[first] += rows - 1
        column = 0
        d = first
        while True:
            position[d] += 1
            row += nest.strides[k][d]
            if position[d] < nest.shape[d]:
                break
            row -= position[d] * nest.strides[k][d]
            position[d] = 0
            d += 1


cdef bint _has_uniform_stride(const nest_t *nest, int k, int dims) noexcept nogil:
    """Is the stride the same throughout the inner dimensions?"""
    cdef int d
    for d in range(1, dims):
        if nest.strides[k][d] != nest.strides[k][d - 1] * nest.shape[d - 1]:
            return False
    return True


cdef inline bint _is_directly_addressable(const task_t *task, int k, int64_t size, int dims) noexcept nogil:
    """
    May the steps access operand k directly, with elements `size` bytes apart?

    Tiles of several rows are blocks of that many dimensions, or irregular (0).
    """
    cdef int64_t step = task.nest.strides[k][0]
    return (task.even[k] or task.rows == 0 or (dims and _has_uniform_stride(&task.nest, k, dims))) and (
        step == size or task.program.exact or step == 0)


cdef void _run_and_look(task_t *task, slots_t *slots, char *workspace, int64_t n) noexcept nogil:
    """Run the steps in small blocks, and scan each for nan while it is in the L1 cache."""
    cdef const specialized_t *program = task.program
    cdef int64_t count
    cdef int k
    while n > 0:
        count = n if n < PORTION else PORTION
        run_steps(program, slots, workspace, task.capacity, count)
        if row_holds_nan(slots.out, program.dtype, count, slots.out_step):
            atomic_store(&task.nan, 1)
        for k in range(program.n_inputs):
            if task.nest.data[k + 1] != NULL:
                slots.data[k] += count * slots.steps[k]
        slots.out += count * slots.out_step
        n -= count


cdef void _run_tile(task_t *task, slots_t *slots, char *workspace, int64_t start, int64_t n, char *to,
                    bint first) noexcept nogil:
    """
    Compute the tile of n elements from `start` on, into the result or, if given, into `to`. `first`: it is the first
    one.
    """
    cdef const specialized_t *program = task.program
    cdef const nest_t *nest = &task.nest
    cdef char *space = workspace + program.n_buffers * task.capacity * program.width
    cdef int64_t out_size = program.steps[program.n_steps - 1].out_size
    cdef bint scatter = to == NULL and not task.ready[0]
    cdef int k
    for k in range(1, nest.n):
        if nest.data[k] == NULL:
            continue
        if task.ready[k]:
            slots.data[k - 1] = (nest.data[k] + start * nest.strides[k][0] if task.even[k]
                                 else nest_pointer(nest, k, start))
            slots.steps[k - 1] = nest.strides[k][0]
        else:
            if first or not task.same[k]:
                _move_rows(task, k, space, start, n)
            slots.data[k - 1] = space
            slots.steps[k - 1] = task.itemsize[k]
            space += task.capacity * task.itemsize[k]
    if to != NULL or scatter:
        slots.out = to if to != NULL else space
        slots.out_step = out_size
    else:
        slots.out = (nest.data[0] + start * nest.strides[0][0] if task.even[0]
                     else nest_pointer(nest, 0, start))
        slots.out_step = nest.strides[0][0]
    if task.watched == LOOK:
        _run_and_look(task, slots, workspace, n)
    else:
        run_steps(program, slots, workspace, task.capacity, n)
    if scatter:
        _move_rows(task, 0, space, start, n)


cdef void _fetch_tile(const task_t *task, int64_t start, int64_t n) noexcept nogil:
    """
    Prefetch the operands of the next tile.

    A program reads one operand after the other, a few pages of each: too few for the hardware prefetcher.
    """
    cdef const nest_t *nest = &task.nest
    cdef int64_t step
    cdef int k
    for k in range(nest.n):
        step = nest.strides[k][0]
        if nest.data[k] != NULL and task.even[k] and 0 < step <= 16:
            fetch(nest.data[k] + start * step, min(n, nest.size - start) * step, k == 0)


cdef inline void _copy_cells(const task_t *task, slots_t *slots) noexcept nogil:
    cdef int k
    for k in range(task.program.n_inputs, task.program.n_inputs + task.program.n_cells):
        slots.data[k] = task.cells.data[k]
        slots.steps[k] = 0


cdef void produce(void *context, int64_t start, int64_t n, char *to) noexcept nogil:
    cdef task_t *task = <task_t *>context
    cdef char[WORKSPACE + 64] memory
    cdef char *workspace = <char *>((<uintptr_t>memory + 63) & ~<uintptr_t>63)
    cdef slots_t slots
    cdef int64_t count
    _copy_cells(task, &slots)
    while n > 0:
        count = min(n, task.piece)
        # Some operands have a uniform stride only in tiles of whole blocks.
        count = min(count, task.piece - start % task.piece if task.rows
                    else task.nest.shape[0] - start % task.nest.shape[0])
        _run_tile(task, &slots, workspace, start, count, to, True)
        start += count
        n -= count
        to += count * itemsize(task.program.dtype)


cdef void _run_tiles(void *context, int64_t begin, int64_t end) noexcept nogil:
    """Compute tiles begin..end, with the thread's own workspace and slots."""
    cdef task_t *task = <task_t *>context
    cdef char[WORKSPACE + 64] memory
    cdef char *workspace = <char *>((<uintptr_t>memory + 63) & ~<uintptr_t>63)
    cdef slots_t slots
    cdef int64_t tile, start, n, n_run = 0, length = task.nest.shape[0]
    cdef bint far = task.nest.size >= FAR and task.program.steps[0].links < task.program.n_steps
    if task.watched == LISTEN:
        clear_invalid()
    _copy_cells(task, &slots)
    for tile in range(begin, end):
        if task.rows:
            start = tile * task.rows * length
            n = task.rows * length
            if n > task.nest.size - start:
                n = task.nest.size - start
        else:
            start = (tile % task.pieces) * task.piece
            n = length - start if length - start < task.piece else task.piece
            start += (tile // task.pieces) * length
        if far and tile + 1 < end:
            _fetch_tile(task, start + n, n)
        _run_tile(task, &slots, workspace, start, n, NULL, n_run == 0 or n > n_run)
        n_run = max(n_run, n)
    if task.watched == LISTEN and was_invalid():
        atomic_store(&task.nan, 1)
    if task.program.partial and loop_status() != OK:
        if atomic_claim(&task.error, OK, loop_status()):
            snprintf(task.text, sizeof(task.text), b"%s", message())
        set_loop_status(OK)


cdef int _collapsible_dims(const task_t *task, int64_t size) noexcept nogil:
    """Return how many inner dimensions a tile should hold so that broadcast operands are directly addressable; or 0."""
    cdef const nest_t *nest = &task.nest
    cdef int64_t block = nest.shape[0]
    cdef int k, dims = 1
    while dims < nest.ndim and block * nest.shape[dims] <= size:
        block *= nest.shape[dims]
        dims += 1
    for k in range(1, nest.n):
        if block >= LONG_ROW and nest.data[k] != NULL and not task.even[k] and _has_uniform_stride(nest, k, dims):
            return dims
    return 0


cdef bint _is_one_chain(task_t *task) noexcept nogil:
    """Do all steps form one chain on operands with uniform strides? Then only leftover elements need temporaries."""
    cdef const specialized_t *program = task.program
    cdef chain_step_t links[MAX_LINKS]
    cdef slots_t slots
    cdef int k
    if program.n_steps == 1 or program.steps[0].links < program.n_steps or task.nest.ndim > 1 or task.move[0] != NULL:
        return False
    slots.out, slots.out_step = NULL, task.nest.strides[0][0]
    for k in range(program.n_inputs + program.n_cells):
        slots.data[k], slots.steps[k] = NULL, 0
        if k < program.n_inputs and task.nest.data[k + 1] != NULL:
            slots.steps[k] = task.nest.strides[k + 1][0]
    for k in range(program.n_steps):
        if program.steps[k].kept:
            return False
    return _find_links(program, program.steps, &slots, NULL, 0, links) == program.n_steps


cdef void prepare_task(task_t *task) noexcept nogil:
    """Determine operand access and tile size."""
    cdef nest_t *nest = &task.nest
    cdef const specialized_t *program = task.program
    cdef int64_t out_size = program.steps[program.n_steps - 1].out_size
    cdef int64_t bytes, size, length = nest.shape[0]
    cdef int k, d, dims = 0
    cdef bint chained = _is_one_chain(task)
    task.error = OK
    task.watched = how_to_watch() if nan_watchers else 0
    task.nan = 0
    # Reserve a buffer for every operand that may have to be gathered or scattered.
    task.rows = 0
    bytes = 0 if chained else program.n_buffers * program.width
    for k in range(nest.n):
        task.even[k] = _has_uniform_stride(nest, k, nest.ndim)
        size = task.itemsize[k] if k else out_size
        if nest.data[k] != NULL and not (task.even[k] and _is_directly_addressable(task, k, size, 0)
                                         and (k or task.move[0] == NULL)):
            bytes += size
    size = tile_size(bytes)
    if nest.ndim == 1 or length >= size or length >= LONG_ROW:
        task.pieces = (length + size - 1) // size
        task.piece = ((length + task.pieces - 1) // task.pieces + 15) // 16 * 16
        task.pieces = (length + task.piece - 1) // task.piece
    else:
        task.rows = size // length
        dims = _collapsible_dims(task, size)
        if dims:
            task.rows = 1
            for k in range(1, dims):
                task.rows *= nest.shape[k]
        task.piece = task.rows * length
    task.capacity = SHORTEST_CHAIN if chained else task.piece
    for k in range(1, nest.n):
        # numbers are in cells
        task.ready[k] = nest.data[k] != NULL and _is_directly_addressable(task, k, task.itemsize[k], dims)
        task.same[k] = task.rows > 0
        for d in range(1, nest.ndim):
            task.same[k] = task.same[k] and nest.strides[k][d] == 0
    task.ready[0] = task.move[0] == NULL and _is_directly_addressable(task, 0, out_size, dims)
    if not task.ready[0] and task.move[0] == NULL:       # same dtype, but no uniform stride: moved without a cast
        task.move[0] = cast_loops[program.dtype][program.dtype]


cdef int run_task(task_t *task) noexcept nogil:
    cdef int64_t tiles, grain, length = task.nest.shape[0]
    prepare_task(task)
    if task.rows:
        tiles = (task.nest.size // length + task.rows - 1) // task.rows
    else:
        tiles = task.nest.size // length * task.pieces
    grain = WORK // (task.program.cost * task.piece)
    parallel_for(_run_tiles, task, tiles, grain if grain > 1 else 1)
    if task.nan:
        watch().nan = 1
    if task.error != OK:
        snprintf(message(), MESSAGE, b"%s", task.text)
    return task.error
