// Reductions with more than one accumulator per result: moments, argmax, argmin, logsumexp.
// Continues loops.h.

// ---------------------------------------------------------------- variance

// Mean and sum of squared deviations; complex numbers have the variance of both parts together. Where squares overflow
// the variance is infinite: its corrections are left out, which would make it inf - inf.
template <class C> struct moments_t { C mean; double squares; };

INLINE bool is_finite(double x) { return fabs(x) <= std::numeric_limits<double>::max(); }
INLINE double squared(double x) { return x * x; }
INLINE double squared(complex_t<double> z) { return z.re * z.re + z.im * z.im; }
INLINE double minus(double x, double y) { return x - y; }
template <class S> INLINE complex_t<double> minus(complex_t<S> x, complex_t<S> y) {
    return complex_t<double>(x.re - y.re, x.im - y.im);
}
INLINE double scaled(double x, double s) { return x * s; }
INLINE complex_t<double> scaled(complex_t<double> z, double s) { return complex_t<double>(z.re * s,
                                                                                          z.im * s); }

template <class T, class C, class O> struct Variance {
    typedef moments_t<C> A;

    // Sum squared deviations from the rounded mean, corrected for its rounding error; the second pass reads the cache.
    INLINE A of_run(const T *p, int64_t n, int64_t stride, const parameter_t *q) {
        typedef Sum<T, T, T, T> total_t;
        if (n == 0) return A{C(0), 0};
        C mean = C(run<total_t>(p, n, stride, q)) / double(n);
        C rest = C(0);
        double squares = 0;
        if constexpr (std::is_floating_point<T>::value) {
            if (stride == 1) {
                deviations(p, n, T(mean), &rest, &squares);
                return corrected(C(T(mean)), rest, squares, n);
            }
        }
        for (int64_t i = 0; i < n; i++, p += stride) {
            C deviation = minus(C(*p), mean);
            rest += deviation;
            squares += squared(deviation);
        }
        return corrected(mean, rest, squares, n);
    }

    INLINE A corrected(C mean, C rest, double squares, int64_t n) {
        C shift = scaled(rest, 1.0 / n);
        mean += shift;
        if (is_finite(squares)) squares -= squared(shift) * n;
        return A{mean, squares < 0 ? 0 : squares};
    }

    INLINE void deviations(const T *p, int64_t n, T mean, double *rest, double *squares) {
        enum { K = VECTOR_LANES<T> };
        typedef vector_t<T> V;
        V sums[2 * WIDTH] = {}, products[2 * WIDTH] = {}, x;
        V shift = sums[0] + mean;
        int64_t i = 0;
        for (; i + 2 * WIDTH * K <= n; i += 2 * WIDTH * K)
            for (int j = 0; j < 2 * WIDTH; j++) {
                memcpy(&x, p + i + j * K, sizeof x);
                x -= shift;
                sums[j] += x;
                products[j] += x * x;
            }
        for (int j = 0; j < WIDTH; j++)
            for (int k = 0; k < K; k++) {
                *rest += double(sums[j][k]) + double(sums[WIDTH + j][k]);
                *squares += double(products[j][k]) + double(products[WIDTH + j][k]);
            }
        for (; i < n; i++) {
            double deviation = p[i] - mean;
            *rest += deviation;
            *squares += deviation * deviation;
        }
    }

    static void leaf(const char *data, int64_t n, int64_t stride, int64_t width, int64_t column_stride,
                     int by_columns, char *accumulators, const parameter_t *q) {
        typedef Sum<T, T, T, T> total_t;
        const T *p = (const T *)data;
        A *out = (A *)accumulators;
        if (!by_columns || n == 0) {
            for (int64_t c = 0; c < width; c++) out[c] = of_run(p + c * column_stride, n, stride, q);
            return;
        }
        T mean[TILE], rest[TILE];
        typename real_of<T>::type squares[TILE];
        columns<total_t>(p, n, stride, width, column_stride, mean, q);
        for (int64_t c = 0; c < width; c++) {
            mean[c] = T(C(mean[c]) / double(n));
            rest[c] = T(0);
            squares[c] = 0;
        }
        with_step(column_stride, [&](auto step) __attribute__((always_inline)) {
            for (int64_t row = 0; row < n; row++, p += stride) row_deviations(p, width, step, mean, rest, squares);
        });
        for (int64_t c = 0; c < width; c++) out[c] = corrected(C(mean[c]), C(rest[c]), squares[c], n);
    }

    template <class R> INLINE void row_deviations(const T *p, int64_t width, int64_t step,
                                                  const T *__restrict mean,
                                                  T *__restrict rest, R *__restrict squares) {
        for (int64_t c = 0; c < width; c++) {
            if constexpr (is_complex<T>::value) {
                T deviation(p[c * step].re - mean[c].re, p[c * step].im - mean[c].im);
                rest[c] += deviation;
                squares[c] += deviation.re * deviation.re + deviation.im * deviation.im;
            } else {
                T deviation = p[c * step] - mean[c];
                rest[c] += deviation;
                squares[c] += deviation * deviation;
            }
        }
    }

    static void combine(char *accumulators, const char *other, int64_t width, int64_t n_left,
                        int64_t n_right) {
        A *a = (A *)accumulators;
        const A *b = (const A *)other;
        double n = double(n_left + n_right);
        for (int64_t c = 0; c < width; c++) {
            C difference = minus(b[c].mean, a[c].mean);
            a[c].mean += scaled(difference, n_right / n);
            a[c].squares += b[c].squares;
            if (is_finite(a[c].squares)) a[c].squares += squared(difference) * (double(n_left) * n_right / n);
        }
    }

    template <bool ROOT> static void finish(const char *accumulators, int64_t width, char *result, char *,
                                            int64_t stride, const parameter_t *q) {
        const A *a = (const A *)accumulators;
        double freedom = q->count - q->correction;
        for (int64_t c = 0; c < width; c++) {
            double variance = a[c].squares / (freedom > 0 ? freedom : 0.0);
            ((O *)result)[c * stride] = O(ROOT ? sqrt(variance) : variance);
        }
    }
};

// ---------------------------------------------------------------- argmax, argmin: the first of equals; nan wins

template <class T> struct position_t { T value; int64_t index; };

template <class Op> struct Position {
    typedef typename Op::T T;
    typedef position_t<T> A;
    enum { BLOCK = 32 };

    INLINE bool better(T x, T a) {
        T y = a;
        Op::step(y, x);
        // nan beats everything but an earlier nan
        return (y != a) & (a == a);
    }

    // Look for a block with the value first: compilers vectorize loops without an early exit.
    INLINE int64_t find(const T *p, int64_t n, int64_t stride, T value) {
        int64_t i = 0;
        for (int found = 0; stride == 1 && i + BLOCK <= n; i += BLOCK) {
            for (int k = 0; k < BLOCK; k++) found |= p[i + k] == value;
            if (found) break;
        }
        while (i < n && p[i * stride] != value) i++;
        return i;
    }

    INLINE int64_t find_nan(const T *p, int64_t n, int64_t stride) {
        int64_t i = 0;
        while (i < n && p[i * stride] == p[i * stride]) i++;
        return i;
    }

    static void leaf(const char *data, int64_t n, int64_t stride, int64_t width, int64_t column_stride,
                     int by_columns, char *accumulators, const parameter_t *q) {
        const T *p = (const T *)data;
        A *out = (A *)accumulators;
        if (by_columns) {
            for (int64_t c = 0; c < width; c++) out[c] = A{p[c * column_stride], 0};
            with_step(column_stride, [&](auto step) __attribute__((always_inline)) {
                for (int64_t row = 1; row < n; row++) {
                    p += stride;
                    for (int64_t c = 0; c < width; c++) {
                        T x = p[c * step];
                        bool take = better(x, out[c].value);
                        out[c].value = take ? x : out[c].value;
                        out[c].index = take ? row : out[c].index;
                    }
                }
            });
            return;
        }
        for (int64_t c = 0; c < width; c++, p += column_stride) {
            T value = run<Op>(p, n, stride, q);
            out[c] = A{value, value == value ? find(p, n, stride, value) : find_nan(p, n, stride)};
        }
    }

    static void combine(char *accumulators, const char *other, int64_t width, int64_t n_left, int64_t) {
        A *a = (A *)accumulators;
        const A *b = (const A *)other;
        for (int64_t c = 0; c < width; c++)
            if (better(b[c].value, a[c].value)) a[c] = A{b[c].value, b[c].index + n_left};
    }

    static void finish(const char *accumulators, int64_t width, char *result, char *second, int64_t stride,
                       const parameter_t *) {
        const A *a = (const A *)accumulators;
        for (int64_t c = 0; c < width; c++) {
            if (result) ((T *)result)[c * stride] = a[c].value;
            ((int64_t *)second)[c * stride] = a[c].index;
        }
    }
};

// ---------------------------------------------------------------- log of a sum of exponentials

template <class T> struct LogSumExp {
    struct A { double shift, sum; };

    INLINE double finite_or_zero(double x) { return is_finite(x) ? x : 0; }

    INLINE void exponentials(T *x, int64_t n, const parameter_t *q) {
        if (q->exp) {
            char *arguments[2] = {(char *)x, (char *)x};
            int64_t steps[2] = {sizeof(T), sizeof(T)};
            q->exp(arguments, &n, steps, q->exp_data);
        } else {
            for (int64_t i = 0; i < n; i++) x[i] = T(exp(double(x[i])));
        }
    }

    static void leaf(const char *data, int64_t n, int64_t stride, int64_t width, int64_t column_stride,
                     int by_columns, char *accumulators, const parameter_t *q) {
        typedef Sum<T, T, T, T> total_t;
        const T *p = (const T *)data;
        A *out = (A *)accumulators;
        T shifted[TILE];
        if (by_columns) {
            T shift[TILE];
            columns<Maximum<T>>(p, n, stride, width, column_stride, shift, q);
            for (int64_t c = 0; c < width; c++) {
                shift[c] = T(finite_or_zero(shift[c]));
                out[c] = A{shift[c], 0};
            }
            for (int64_t row = 0; row < n; row++, p += stride) {
                with_step(column_stride, [&](auto step) __attribute__((always_inline)) {
                    for (int64_t c = 0; c < width; c++) shifted[c] = p[c * step] - shift[c];
                });
                exponentials(shifted, width, q);
                for (int64_t c = 0; c < width; c++) out[c].sum += shifted[c];
            }
            return;
        }
        for (int64_t c = 0; c < width; c++, p += column_stride) {
            T shift = T(finite_or_zero(run<Maximum<T>>(p, n, stride, q)));
            double sum = 0;
            for (int64_t begin = 0; begin < n; begin += TILE) {
                int64_t size = n - begin < TILE ? n - begin : TILE;
                with_step(stride, [&](auto step) __attribute__((always_inline)) {
                    for (int64_t i = 0; i < size; i++) shifted[i] = p[(begin + i) * step] - shift;
                });
                exponentials(shifted, size, q);
                sum += run<total_t>(shifted, size, 1, q);
            }
            out[c] = A{shift, sum};
        }
    }

    INLINE double rescaled(double sum, double by) { return finite_or_zero(sum) == 0 ? sum : sum * exp(by); }

    static void combine(char *accumulators, const char *other, int64_t width, int64_t, int64_t) {
        A *a = (A *)accumulators;
        const A *b = (const A *)other;
        for (int64_t c = 0; c < width; c++) {
            if (b[c].sum == 0) continue;
            if (a[c].sum == 0) { a[c] = b[c]; continue; }
            double shift = a[c].shift > b[c].shift ? a[c].shift : b[c].shift;
            double sum = rescaled(a[c].sum, a[c].shift - shift) + rescaled(b[c].sum, b[c].shift - shift);
            a[c] = A{shift, sum};
        }
    }

    static void finish(const char *accumulators, int64_t width, char *result, char *, int64_t stride,
                       const parameter_t *) {
        const A *a = (const A *)accumulators;
        for (int64_t c = 0; c < width; c++) ((T *)result)[c * stride] = T(log(a[c].sum) + a[c].shift);
    }
};

template <class R> loops_t several(finish_t finish) {
    return loops_t{R::leaf, R::combine, finish, sizeof(typename R::A)};
}

// ---------------------------------------------------------------- the table

// T: element type, S: type of sums within a leaf, A: of whole sums, O: of results.
template <class T, class S, class A, class O> loops_t sums(int operation) {
    if (operation == SUM) return loops<Sum<T, S, A, O>>();
    if (operation == PROD) return loops<Prod<T, S, A, O>>();
    if (operation == ANY) return loops<Any<T>>();
    if (operation == ALL) return loops<All<T>>();
    return loops_t{};
}

template <class T> loops_t ordered(int operation) {
    if (operation == MAXIMUM) return loops<Maximum<T>>();
    if (operation == MINIMUM) return loops<Minimum<T>>();
    if (operation == ARGMAX) return several<Position<Maximum<T>>>(Position<Maximum<T>>::finish);
    if (operation == ARGMIN) return several<Position<Minimum<T>>>(Position<Minimum<T>>::finish);
    return loops_t{};
}

// R: type of magnitudes, C: of means.
template <class T, class A, class R> loops_t floating(int operation) {
    switch (operation) {
        case MEAN: return loops<Sum<T, T, A, T>, Mean<T, T, A, T>>();
        case VARIANCE: return several<Variance<T, A, R>>(Variance<T, A, R>::template finish<false>);
        case DEVIATION: return several<Variance<T, A, R>>(Variance<T, A, R>::template finish<true>);
        case NORM_0: return loops<Norm0<T, R>>();
        case NORM_1: return loops<Norm1<T, R>>();
        case NORM_2: return loops<Norm2<T, R>>();
        case NORM_P: return loops<NormP<T, R>>();
        case NORM_MAX: return loops<NormMax<T, R>>();
        case NORM_MIN: return loops<NormMin<T, R>>();
        case LOGSUMEXP:
            if constexpr (!is_complex<T>::value) return several<LogSumExp<T>>(LogSumExp<T>::finish);
    }
    return sums<T, T, A, T>(operation);
}

template <class T> loops_t integral(int operation) {
    loops_t found = ordered<T>(operation);
    return found.leaf ? found : sums<T, int64_t, int64_t, int64_t>(operation);
}

template <class T> loops_t real(int operation) {
    loops_t found = operation == NANSUM ? loops<NanSum<T, T, double, T>>() : ordered<T>(operation);
    return found.leaf ? found : floating<T, double, T>(operation);
}
