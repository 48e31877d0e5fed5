// Inner loops of the reductions, compiled by simd/dispatch.h.
//
// Floating sums run in a fixed number of lanes (of 64 bytes, so that results are bit-identical for all widths of
// vectors), because compilers may not reorder additions. Partial results within a leaf have the type P, those of leaves
// the type A (double for float32), to limit rounding errors.

// ---------------------------------------------------------------- operations on elements

template <class T_, class P_, class A_, class O_> struct types {
    typedef T_ T;    // of elements
    typedef P_ P;    // of partial results
    typedef A_ A;    // of accumulators
    typedef O_ O;    // of results
    // map() of real numbers also works on vectors
    enum { vector = std::is_floating_point<P_>::value && !is_complex<T_>::value, extremum = 0 };
};

template <class T, class P, class A, class O> struct Sum : types<T, P, A, O> {
    static P identity() { return P(0); }
    template <class V> INLINE V map(V x) { return x; }
    INLINE P load(T x, const parameter_t *) { return P(x); }
    template <class V> INLINE void step(V &a, V x) { a += x; }
    static O finish(A a, const parameter_t *) { return O(a); }
};

template <class T, class P, class A, class O> struct NanSum : Sum<T, P, A, O> {
    template <class V> INLINE V map(V x) { return x == x ? x : V{}; }
    INLINE P load(T x, const parameter_t *) { return x == x ? P(x) : P(0); }
};

template <class T, class P, class A, class O> struct Mean : Sum<T, P, A, O> {
    static O finish(A a, const parameter_t *q) { return O(a / q->count); }
};

template <class T, class P, class A, class O> struct Prod : types<T, P, A, O> {
    static P identity() { return P(1); }
    template <class V> INLINE V map(V x) { return x; }
    INLINE P load(T x, const parameter_t *) { return P(x); }
    template <class V> INLINE void step(V &a, V x) { a *= x; }
    static O finish(A a, const parameter_t *) { return O(a); }
};

template <class T> struct Maximum : types<T, T, T, T> {
    enum { extremum = std::is_floating_point<T>::value };
    template <class V> INLINE V farther(V a, V x) { return a > x ? a : x; }
    static T identity() {
        return std::is_floating_point<T>::value ? -std::numeric_limits<T>::infinity()
                                                : std::numeric_limits<T>::lowest();
    }
    template <class V> INLINE V map(V x) { return x; }
    INLINE T load(T x, const parameter_t *) { return x; }
    template <class V> INLINE void step(V &a, V x) { a = ((x > a) | (x != x)) ? x : a; }
    static T finish(T a, const parameter_t *) { return a; }
};

template <class T> struct Minimum : Maximum<T> {
    template <class V> INLINE V farther(V a, V x) { return a < x ? a : x; }
    static T identity() {
        return std::is_floating_point<T>::value ? std::numeric_limits<T>::infinity()
                                                : std::numeric_limits<T>::max();
    }
    template <class V> INLINE void step(V &a, V x) { a = ((x < a) | (x != x)) ? x : a; }
};

template <class T> INLINE uint8_t is_nonzero(T x) { return x != T(0); }
template <class T> INLINE uint8_t is_nonzero(complex_t<T> z) { return (z.re != 0) | (z.im != 0); }

// Partial results are as wide as elements, so that compilers need no conversions of vectors.
template <class T> using truth_t = std::conditional_t<
    sizeof(T) == 1, uint8_t, std::conditional_t<sizeof(T) == 2, uint16_t,
                                                std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>>>;

template <class T> struct Any : types<T, truth_t<T>, uint8_t, uint8_t> {
    typedef truth_t<T> P;
    static P identity() { return 0; }
    INLINE P load(T x, const parameter_t *) { return is_nonzero(x); }
    template <class B> INLINE void step(B &a, B x) { a |= x; }
    static uint8_t finish(uint8_t a, const parameter_t *) { return a; }
};

template <class T> struct All : Any<T> {
    static truth_t<T> identity() { return 1; }
    template <class B> INLINE void step(B &a, B x) { a &= x; }
};

INLINE double magnitude(double x) { return fabs(x); }
template <class T> INLINE double magnitude(complex_t<T> z) { return hypot(double(z.re), double(z.im)); }

// |x| of each lane
template <class V> INLINE V without_sign(V x) {
    typedef decltype(x != x) bits_t;
    return (V)((bits_t)x & ~(bits_t)(-V{}));
}

// Norms compute in double: squares of large float32 do not overflow.
template <class T, class O> struct Norm0 : types<T, double, double, O> {
    enum { vector = 0 };
    static double identity() { return 0; }
    INLINE double load(T x, const parameter_t *) { return is_nonzero(x); }
    INLINE void step(double &a, double x) { a += x; }
    static O finish(double a, const parameter_t *) { return O(a); }
};

template <class T, class O> struct Norm1 : types<T, double, double, O> {
    static double identity() { return 0; }
    template <class V> INLINE V map(V x) { return without_sign(x); }
    INLINE double load(T x, const parameter_t *) { return magnitude(x); }
    template <class V> INLINE void step(V &a, V x) { a += x; }
    static O finish(double a, const parameter_t *) { return O(a); }
};

INLINE double square(double x) { return x * x; }
template <class T> INLINE double square(complex_t<T> z) {
    return double(z.re) * double(z.re) + double(z.im) * double(z.im);
}

template <class T, class O> struct Norm2 : types<T, double, double, O> {
    static double identity() { return 0; }
    template <class V> INLINE V map(V x) { return x * x; }
    INLINE double load(T x, const parameter_t *) { return square(x); }
    template <class V> INLINE void step(V &a, V x) { a += x; }
    static O finish(double a, const parameter_t *) { return O(sqrt(a)); }
};

// Common orders without pow().
INLINE double power(double x, double p) {
    return p == 3 ? x * x * x : p == 4 ? (x * x) * (x * x) : p == 0.5 ? sqrt(x) : pow(x, p);
}

template <class T, class O> struct NormP : types<T, double, double, O> {
    enum { vector = 0 };
    static double identity() { return 0; }
    INLINE double load(T x, const parameter_t *q) { return power(magnitude(x), q->p); }
    INLINE void step(double &a, double x) { a += x; }
    static O finish(double a, const parameter_t *q) { return O(pow(a, 1 / q->p)); }
};

template <class T, class O> struct NormMax : types<T, double, double, O> {
    static double identity() { return 0; }
    template <class V> INLINE V map(V x) { return without_sign(x); }
    INLINE double load(T x, const parameter_t *) { return magnitude(x); }
    template <class V> INLINE void step(V &a, V x) { a = ((x > a) | (x != x)) ? x : a; }
    static O finish(double a, const parameter_t *) { return O(a); }
};

template <class T, class O> struct NormMin : NormMax<T, O> {
    static double identity() { return std::numeric_limits<double>::infinity(); }
    template <class V> INLINE void step(V &a, V x) { a = ((x < a) | (x != x)) ? x : a; }
};

// ---------------------------------------------------------------- contiguous elements

// Prefetch a page ahead: leaves are too short for the hardware prefetcher.
INLINE void fetch_ahead(const void *p) { __builtin_prefetch((const char *)p + 4096); }

enum { WIDTH = 64 / VECTOR_BYTES };      // vectors that hold 64 bytes of lanes

// Combine the lanes of WIDTH vectors in the same order for all widths.
template <class P, class F> INLINE P folded(vector_t<P> *lanes, F how) {
    for (int left = WIDTH / 2; left; left /= 2)
        for (int j = 0; j < left; j++)
            how(lanes[j], lanes[left + j]);
    return folded<P, VECTOR_BYTES>(lanes[0], how);
}

// Convert each lane. Compilers split a conversion of float to double in halves, instead of the instruction for it.
template <class V, class S> INLINE V converted(const S &x) {
#if SIMD_LEVEL > 0
    if constexpr (sizeof(V) == VECTOR_BYTES && std::is_same<S, typename vector_of<float, VECTOR_BYTES / 2>::type>::value)
#if SIMD_LEVEL == 2
        return (V)_mm512_maskz_cvtps_pd((__mmask8)-1, (__m256)x);
#else
        return (V)_mm256_cvtps_pd((__m128)x);
#endif
#endif
    return __builtin_convertvector(x, V);
}

// Load elements, converted to the type of partial results.
template <class Op, class V, int K> INLINE V load_vector(const typename Op::T *p) {
    typedef typename vector_of<typename Op::T, K * sizeof(typename Op::T)>::type source_t;
    source_t x;
    memcpy(&x, p, sizeof x);
    return Op::map(converted<V>(x));
}

template <class Op> INLINE typename Op::P run_vector(const typename Op::T *p, int64_t n,
                                                     const parameter_t *q) {
    typedef typename Op::P P;
    enum { K = VECTOR_LANES<P> };
    typedef vector_t<P> V;
    const bool far = q != NULL && q->far;
    V lanes[4][WIDTH];
    for (int j = 0; j < 4 * WIDTH; j++) lanes[j / WIDTH][j % WIDTH] = V{} + Op::identity();
    int64_t i = 0;
    for (; i + 4 * WIDTH * K <= n; i += 4 * WIDTH * K) {
        if (far)
            for (int64_t at = 0; at < 4 * WIDTH * K; at += 64 / sizeof(*p)) fetch_ahead(p + i + at);
        for (int j = 0; j < 4 * WIDTH; j++)
            Op::step(lanes[j / WIDTH][j % WIDTH], load_vector<Op, V, K>(p + i + j * K));
    }
    for (; i + WIDTH * K <= n; i += WIDTH * K)
        for (int j = 0; j < WIDTH; j++) Op::step(lanes[0][j], load_vector<Op, V, K>(p + i + j * K));
    for (int j = 0; j < WIDTH; j++) {
        Op::step(lanes[0][j], lanes[1][j]);
        Op::step(lanes[2][j], lanes[3][j]);
        Op::step(lanes[0][j], lanes[2][j]);
    }
    P total = folded<P>(lanes[0], [](auto &x, const auto &y) { Op::step(x, y); }), rest = Op::identity();
    for (; i < n; i++) Op::step(rest, Op::load(p[i], q));
    Op::step(total, rest);
    return total;
}

template <class M> INLINE bool is_any(const M &mask) {
    return folded<int64_t, VECTOR_BYTES>(load((const int64_t *)&mask), [](auto &a, const auto &b) { a |= b; });
}

// Extrema: nan is detected separately, so that a step is one instruction.
template <class Op> INLINE typename Op::T run_extremum(const typename Op::T *p, int64_t n, const parameter_t *q) {
    typedef typename Op::T T;
    enum { K = VECTOR_LANES<T> };
    typedef vector_t<T> V;
    typedef decltype(V{} != V{}) mask_t;
    const bool far = q != NULL && q->far;
    T last = Op::identity();
    V best[4][WIDTH], x;
    for (int j = 0; j < 4 * WIDTH; j++) best[j / WIDTH][j % WIDTH] = V{} + last;
    mask_t unordered = best[0][0] != best[0][0];
    int64_t i = 0;
    for (; i + 4 * WIDTH * K <= n; i += 4 * WIDTH * K)
        for (int j = 0; j < 4 * WIDTH; j++) {
            memcpy(&x, p + i + j * K, sizeof x);
            if (far) fetch_ahead(p + i + j * K);
            best[j / WIDTH][j % WIDTH] = Op::farther(best[j / WIDTH][j % WIDTH], x);
            unordered |= x != x;
        }
    for (; i + WIDTH * K <= n; i += WIDTH * K)
        for (int j = 0; j < WIDTH; j++) {
            memcpy(&x, p + i + j * K, sizeof x);
            best[0][j] = Op::farther(best[0][j], x);
            unordered |= x != x;
        }
    for (int j = WIDTH; j < 4 * WIDTH; j++)
        best[0][j % WIDTH] = Op::farther(best[0][j % WIDTH], best[j / WIDTH][j % WIDTH]);
    for (; i < n; i++) Op::step(last, p[i]);
    Op::step(last, folded<T>(best[0], [](auto &a, const auto &b) { a = Op::farther(a, b); }));
    return is_any(unordered) ? std::numeric_limits<T>::quiet_NaN() : last;
}

// The partial result of n elements.
template <class Op> INLINE typename Op::P run(const typename Op::T *p, int64_t n, int64_t stride,
                                              const parameter_t *q) {
    typedef typename Op::P P;
    if constexpr (Op::vector && Op::extremum) {
        if (stride == 1 && n >= 16) return run_extremum<Op>(p, n, q);
    } else if constexpr (Op::vector) {
        if (stride == 1 && n >= 16) return run_vector<Op>(p, n, q);
    }
    if constexpr (std::is_integral<P>::value) {
        // The compiler may reorder these itself.
        if (stride == 1) {
            P a = Op::identity();
            for (int64_t i = 0; i < n; i++) Op::step(a, Op::load(p[i], q));
            return a;
        }
    }
    P a = Op::identity(), b = a, c = a, d = a;
    auto steps = [&](auto stride) __attribute__((always_inline)) {
        int64_t i = 0;
        for (; i + 4 <= n; i += 4, p += 4 * stride) {
            Op::step(a, Op::load(p[0], q));
            Op::step(b, Op::load(p[stride], q));
            Op::step(c, Op::load(p[2 * stride], q));
            Op::step(d, Op::load(p[3 * stride], q));
        }
        for (; i < n; i++, p += stride) Op::step(a, Op::load(*p, q));
    };
    if constexpr (Op::vector) steps(stride);
    else with_step(stride, steps);
    Op::step(a, b);
    Op::step(c, d);
    Op::step(a, c);
    return a;
}

// Reduce runs of RUN elements and combine them as a balanced tree. Where order has no effect, they are one run.
template <class Op> INLINE typename Op::A run_tree(const typename Op::T *p, int64_t n, int64_t stride,
                                                   const parameter_t *q) {
    typedef typename Op::A A;
    enum { WHOLE = Op::extremum || std::is_integral<typename Op::P>::value };
    A stack[8], sum;                   // more than the levels of RUNS
    int depth = 0;
    for (int64_t index = 0, left = n;; index++, p += RUN * stride, left -= RUN) {
        sum = A(run<Op>(p, WHOLE || left < RUN ? left : RUN, stride, q));
        if (WHOLE || n <= RUN) return sum;
        for (int64_t i = index; i & 1; i >>= 1, depth--) {
            Op::step(stack[depth - 1], sum);
            sum = stack[depth - 1];
        }
        if (left <= RUN) break;
        stack[depth++] = sum;
    }
    for (; depth > 0; depth--) {
        Op::step(stack[depth - 1], sum);
        sum = stack[depth - 1];
    }
    return sum;
}

// ---------------------------------------------------------------- rows

// Contiguous elements, a vector at a time; return number of elements done.
template <class Op> INLINE int64_t add_rows_vector(const typename Op::T *p, int64_t n, int64_t stride,
                                                   int64_t width,
                                                   typename Op::P *tile) {
    typedef typename Op::P P;
    enum { K = VECTOR_LANES<P> };
    typedef vector_t<P> V;
    int64_t row = 0, c = 0;
    V total;
    if constexpr (Op::extremum) {
        // As run_extremum(); if there is a nan, the steps below find it from these extrema on.
        typedef decltype(V{} != V{}) mask_t;
        mask_t unordered = {};
        const typename Op::T *first = p;
        for (; row + 4 <= n; row += 4, p += 4 * stride)
            for (c = 0; c + K <= width; c += K) {
                memcpy(&total, tile + c, sizeof total);
                for (int j = 0; j < 4; j++) {
                    V x = load_vector<Op, V, K>(p + j * stride + c);
                    fetch_ahead(p + j * stride + c);
                    unordered |= x != x;
                    total = Op::farther(x, total);      // of equal ones the first, as step()
                }
                memcpy(tile + c, &total, sizeof total);
            }
        if (is_any(unordered)) row = 0, p = first;
    }
    for (; row + 4 <= n; row += 4, p += 4 * stride) {
        for (c = 0; c + K <= width; c += K) {
            for (int j = 0; j < 4; j++) fetch_ahead(p + j * stride + c);
            V x = load_vector<Op, V, K>(p + c), y = load_vector<Op, V, K>(p + 2 * stride + c);
            Op::step(x, load_vector<Op, V, K>(p + stride + c));
            Op::step(y, load_vector<Op, V, K>(p + 3 * stride + c));
            Op::step(x, y);
            memcpy(&total, tile + c, sizeof total);
            Op::step(total, x);
            memcpy(tile + c, &total, sizeof total);
        }
    }
    for (; row < n; row++, p += stride) {
        for (c = 0; c + K <= width; c += K) {
            memcpy(&total, tile + c, sizeof total);
            Op::step(total, load_vector<Op, V, K>(p + c));
            memcpy(tile + c, &total, sizeof total);
        }
    }
    return c;
}

template <class Op> APART void add_rows(const typename Op::T *p, int64_t n, int64_t stride, int64_t width, int64_t step,
                                        typename Op::P *__restrict tile, const parameter_t *q) {
    typedef typename Op::P P;
    int64_t row = 0;
    if constexpr (Op::vector) {
        if (step == 1) {
            int64_t done = add_rows_vector<Op>(p, n, stride, width, tile);
            if (done == width) return;
            p += done;
            tile += done;
            width -= done;
        }
    }
    auto steps = [&](auto step) __attribute__((always_inline)) {
        for (; row + 4 <= n; row += 4, p += 4 * stride) {
            const typename Op::T *p1 = p + stride, *p2 = p1 + stride, *p3 = p2 + stride;
            for (int64_t c = 0; c < width; c++) {
                P x = Op::load(p[c * step], q), y = Op::load(p2[c * step], q);
                Op::step(x, Op::load(p1[c * step], q));
                Op::step(y, Op::load(p3[c * step], q));
                Op::step(x, y);
                Op::step(tile[c], x);
            }
        }
        for (; row < n; row++, p += stride)
            for (int64_t c = 0; c < width; c++) Op::step(tile[c], Op::load(p[c * step], q));
    };
    if constexpr (Op::vector) steps(step);
    else with_step(step, steps);
}

// tile[width] = reduction of `n` rows.
template <class Op> APART void columns(const typename Op::T *p, int64_t n, int64_t stride, int64_t width,
                                       int64_t column_stride, typename Op::P *tile, const parameter_t *q) {
    for (int64_t c = 0; c < width; c++) tile[c] = Op::identity();
    if (column_stride != 1) {
        add_rows<Op>(p, n, stride, width, column_stride, tile, q);
    } else if (FOLDS(n, stride, width)) {
        // Narrow rows without gaps are combined to wide ones, folded at the end.
        typename Op::P wide[128];
        int64_t fold = 128 / width, rows = n / fold, used = rows * fold;
        for (int64_t c = 0; c < fold * width; c++) wide[c] = Op::identity();
        add_rows<Op>(p, rows, fold * width, fold * width, 1, wide, q);
        for (int64_t f = 0; f < fold; f++)
            for (int64_t c = 0; c < width; c++) Op::step(tile[c], wide[f * width + c]);
        add_rows<Op>(p + used * width, n - used, width, width, 1, tile, q);
    } else {
        add_rows<Op>(p, n, stride, width, 1, tile, q);
    }
}

template <class Op> void leaf(const char *data, int64_t n, int64_t stride, int64_t width,
                              int64_t column_stride,
                              int by_columns, char *accumulators, const parameter_t *q) {
    const typename Op::T *p = (const typename Op::T *)data;
    typename Op::A *a = (typename Op::A *)accumulators;
    if (by_columns) {
        typename Op::P tile[TILE];
        columns<Op>(p, n, stride, width, column_stride, tile, q);
        for (int64_t c = 0; c < width; c++) a[c] = typename Op::A(tile[c]);
    } else {
        for (int64_t c = 0; c < width; c++) a[c] = run_tree<Op>(p + c * column_stride, n, stride, q);
    }
}

template <class Op> void rows(const char *data, int64_t n, int64_t stride, int64_t width, int begin, int end,
                              char *partial, char *accumulators, const parameter_t *q) {
    typename Op::P *tile = (typename Op::P *)partial;
    typename Op::A *a = (typename Op::A *)accumulators;
    for (int64_t c = 0; begin && c < width; c++) tile[c] = Op::identity();
    add_rows<Op>((const typename Op::T *)data, n, stride, width, 1, tile, q);
    for (int64_t c = 0; end && c < width; c++) a[c] = typename Op::A(tile[c]);
}

template <class Op> void combine(char *accumulators, const char *other, int64_t width, int64_t, int64_t) {
    typename Op::A *a = (typename Op::A *)accumulators;
    const typename Op::A *b = (const typename Op::A *)other;
    for (int64_t c = 0; c < width; c++) Op::step(a[c], b[c]);
}

template <class Op> void finish(const char *accumulators, int64_t width, char *result, char *, int64_t stride,
                                const parameter_t *q) {
    const typename Op::A *a = (const typename Op::A *)accumulators;
    typename Op::O *out = (typename Op::O *)result;
    with_step(stride, [&](auto stride) __attribute__((always_inline)) {
        for (int64_t c = 0; c < width; c++) out[c * stride] = Op::finish(a[c], q);
    });
}

// Finished: the same operation but for finish().
template <class Op, class Finished = Op> loops_t loops() {
    return loops_t{leaf<Op>, combine<Op>, finish<Finished>, sizeof(typename Op::A), rows<Op>};
}

#include "kernels/reduction/statistics.h"
