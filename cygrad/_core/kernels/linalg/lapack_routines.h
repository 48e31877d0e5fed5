/* LAPACK routines for column-major matrices, one function for the four types. With scratch NULL, a routine that needs
 * scratch memory returns its size in bytes. The others return LAPACK's info: 0, or the position of the failure. Lengths
 * of strings come after the arguments, as in gfortran. */

#ifndef CYGRAD_LAPACK_ROUTINES_H
#define CYGRAD_LAPACK_ROUTINES_H

#include <stddef.h>
#include <stdint.h>
#include "kernels/linalg/small_factors.h"

/* As in dtype.pxd. */
enum { LAPACK_S = 6, LAPACK_D = 7, LAPACK_C = 8, LAPACK_Z = 9 };

#define LAPACK_DECLARE(name, ...)                                                      \
    extern void scipy_s##name##_(__VA_ARGS__);                                         \
    extern void scipy_d##name##_(__VA_ARGS__);                                         \
    extern void scipy_c##name##_(__VA_ARGS__);                                         \
    extern void scipy_z##name##_(__VA_ARGS__);
#define LAPACK_DECLARE_REAL(name, ...)                                                 \
    extern void scipy_s##name##_(__VA_ARGS__);                                         \
    extern void scipy_d##name##_(__VA_ARGS__);
#define LAPACK_DECLARE_COMPLEX(name, ...)                                              \
    extern void scipy_c##name##_(__VA_ARGS__);                                         \
    extern void scipy_z##name##_(__VA_ARGS__);

typedef const char *text_p;
typedef const int *int_p;
LAPACK_DECLARE(potrf, text_p, int_p, void *, int_p, int *, size_t)
LAPACK_DECLARE(getrf, int_p, int_p, void *, int_p, int *, int *)
LAPACK_DECLARE(getrs, text_p, int_p, int_p, const void *, int_p, int_p, void *, int_p, int *, size_t)
LAPACK_DECLARE(sytrf, text_p, int_p, void *, int_p, int *, void *, int_p, int *, size_t)
LAPACK_DECLARE_COMPLEX(hetrf, text_p, int_p, void *, int_p, int *, void *, int_p, int *, size_t)
LAPACK_DECLARE(sytrs, text_p, int_p, int_p, const void *, int_p, int_p, void *, int_p, int *, size_t)
LAPACK_DECLARE_COMPLEX(hetrs, text_p, int_p, int_p, const void *, int_p, int_p, void *, int_p, int *, size_t)
LAPACK_DECLARE(trsm, text_p, text_p, text_p, text_p, int_p, int_p, const void *, const void *, int_p, void *, int_p,
               size_t, size_t, size_t, size_t)
LAPACK_DECLARE(geqrf, int_p, int_p, void *, int_p, void *, void *, int_p, int *)
LAPACK_DECLARE_REAL(orgqr, int_p, int_p, int_p, void *, int_p, const void *, void *, int_p, int *)
LAPACK_DECLARE_COMPLEX(ungqr, int_p, int_p, int_p, void *, int_p, const void *, void *, int_p, int *)
LAPACK_DECLARE_REAL(gesdd, text_p, int_p, int_p, void *, int_p, void *, void *, int_p, void *, int_p, void *, int_p,
                    int *, int *, size_t)
LAPACK_DECLARE_COMPLEX(gesdd, text_p, int_p, int_p, void *, int_p, void *, void *, int_p, void *, int_p, void *, int_p,
                       void *, int *, int *, size_t)
LAPACK_DECLARE_REAL(syevd, text_p, text_p, int_p, void *, int_p, void *, void *, int_p, int *, int_p, int *, size_t,
                    size_t)
LAPACK_DECLARE_COMPLEX(heevd, text_p, text_p, int_p, void *, int_p, void *, void *, int_p, void *, int_p, int *, int_p,
                       int *, size_t, size_t)
LAPACK_DECLARE_REAL(geev, text_p, text_p, int_p, void *, int_p, void *, void *, void *, int_p, void *, int_p, void *,
                    int_p, int *, size_t, size_t)
LAPACK_DECLARE_COMPLEX(geev, text_p, text_p, int_p, void *, int_p, void *, void *, int_p, void *, int_p, void *, int_p,
                       void *, int *, size_t, size_t)
LAPACK_DECLARE(gels, text_p, int_p, int_p, int_p, void *, int_p, void *, int_p, void *, int_p, int *, size_t)
LAPACK_DECLARE_REAL(gelsy, int_p, int_p, int_p, void *, int_p, void *, int_p, int *, const void *, int *, void *, int_p,
                    int *)
LAPACK_DECLARE_COMPLEX(gelsy, int_p, int_p, int_p, void *, int_p, void *, int_p, int *, const void *, int *, void *,
                       int_p, void *, int *)
LAPACK_DECLARE_REAL(gelsd, int_p, int_p, int_p, void *, int_p, void *, int_p, void *, const void *, int *, void *,
                    int_p, int *, int *)
LAPACK_DECLARE_COMPLEX(gelsd, int_p, int_p, int_p, void *, int_p, void *, int_p, void *, const void *, int *, void *,
                       int_p, void *, int *, int *)

/* Called around each routine; set by the includer. */
static void (*lapack_before)(void), (*lapack_after)(void);

#define LAPACK_CALL(name, ...)                                                         \
    {                                                                                  \
        lapack_before();                                                               \
        switch (dtype) {                                                               \
        case LAPACK_S: scipy_s##name##_(__VA_ARGS__); break;                           \
        case LAPACK_D: scipy_d##name##_(__VA_ARGS__); break;                           \
        case LAPACK_C: scipy_c##name##_(__VA_ARGS__); break;                           \
        case LAPACK_Z: scipy_z##name##_(__VA_ARGS__); break;                           \
        }                                                                              \
        lapack_after();                                                                \
    }
#define LAPACK_CALL_REAL(name, ...)                                                    \
    {                                                                                  \
        lapack_before();                                                               \
        if (dtype == LAPACK_S) scipy_s##name##_(__VA_ARGS__);                          \
        else scipy_d##name##_(__VA_ARGS__);                                            \
        lapack_after();                                                                \
    }
#define LAPACK_CALL_COMPLEX(name, ...)                                                 \
    {                                                                                  \
        lapack_before();                                                               \
        if (dtype == LAPACK_C) scipy_c##name##_(__VA_ARGS__);                          \
        else scipy_z##name##_(__VA_ARGS__);                                            \
        lapack_after();                                                                \
    }

static inline int lapack_complex(int dtype) { return dtype >= LAPACK_C; }
static inline int64_t lapack_itemsize(int dtype) { return dtype == LAPACK_S ? 4 : dtype == LAPACK_Z ? 16 : 8; }
static inline int64_t lapack_real_size(int dtype) { return dtype == LAPACK_S || dtype == LAPACK_C ? 4 : 8; }
static inline int lapack_least(int a, int b) { return a < b ? a : b; }
static inline int lapack_most(int a, int b) { return a > b ? a : b; }

/* Return the number of elements that a query stored in `cell`; single precision may have rounded it down. */
static inline int64_t lapack_asked(int dtype, const void *cell)
{
    if (lapack_real_size(dtype) == 8)
        return (int64_t)*(const double *)cell + 1;
    double asked = *(const float *)cell;
    return (int64_t)(asked + asked / 4194304) + 1;
}

/* Consecutive parts of the scratch memory, aligned to 64 bytes; NULL only counts them. */
typedef struct {
    char *base;
    int64_t used;
} lapack_scratch_t;

static inline void *lapack_part(lapack_scratch_t *scratch, int64_t bytes)
{
    char *part = scratch->base ? scratch->base + scratch->used : NULL;
    scratch->used += (bytes + 63) / 64 * 64;
    return part;
}

/* ---- without scratch memory */

static inline int lapack_potrf(int dtype, char uplo, int n, void *a)
{
    int info = 0;
    LAPACK_CALL(potrf, &uplo, &n, a, &n, &info, 1)
    return info;
}

/* The number of matrices that one call of getrf or getrs takes at most. */
static inline int lapack_width(int dtype, int m, int n)
{
    return m <= SMALL && n <= SMALL && !lapack_complex(dtype) ? SMALL_WIDTH : 1;
}

static inline void lapack_getrf(int dtype, int count, int m, int n, void *a, int *pivots, int *info)
{
    int failed = 0;
    if (lapack_width(dtype, m, n) > 1) {
        small_getrf[dtype == LAPACK_D](count, m, n, a, pivots, info);
        return;
    }
    LAPACK_CALL(getrf, &m, &n, a, &m, pivots, &failed)
    if (info)
        *info = failed;
}

static inline void lapack_getrs(int dtype, int count, char trans, int n, int k, const void *lu, const int *pivots,
                                void *b)
{
    int info = 0;
    if (lapack_width(dtype, n, n) > 1) {
        small_getrs[dtype == LAPACK_D](count, trans != 'N', n, k, lu, pivots, b);
        return;
    }
    LAPACK_CALL(getrs, &trans, &n, &k, lu, &n, pivots, b, &n, &info, 1)
}

/* B (m x n) becomes op(A)^-1 B or B op(A)^-1, A triangular of the size that fits. */
static inline void lapack_trsm(int dtype, char side, char uplo, char trans, char diag, int m, int n, const void *a,
                               int lda, void *b)
{
    const double one[2] = {1, 0};
    const float one32[2] = {1, 0};
    const void *alpha = lapack_real_size(dtype) == 4 ? (const void *)one32 : (const void *)one;
    LAPACK_CALL(trsm, &side, &uplo, &trans, &diag, &m, &n, alpha, a, &lda, b, &m, 1, 1, 1, 1)
}

/* Solve with the factors of sytrf of a symmetric or Hermitian matrix. */
static inline void lapack_sytrs(int dtype, int hermitian, int n, int k, const void *ld, const int *pivots, void *b)
{
    const char uplo = 'L';
    int info = 0;
    if (hermitian && lapack_complex(dtype)) {
        LAPACK_CALL_COMPLEX(hetrs, &uplo, &n, &k, ld, &n, pivots, b, &n, &info, 1)
    } else {
        LAPACK_CALL(sytrs, &uplo, &n, &k, ld, &n, pivots, b, &n, &info, 1)
    }
}

/* ---- with scratch memory */

static inline int64_t lapack_sytrf(int dtype, int hermitian, int n, void *a, int *pivots, void *scratch, int64_t size,
                                   int *info)
{
    const char uplo = 'L';
    double cell[2] = {0, 0};
    int lwork = scratch ? (int)(size / lapack_itemsize(dtype)) : -1;
    void *work = scratch ? scratch : cell;
    if (hermitian && lapack_complex(dtype)) {
        LAPACK_CALL_COMPLEX(hetrf, &uplo, &n, a, &n, pivots, work, &lwork, info, 1)
    } else {
        LAPACK_CALL(sytrf, &uplo, &n, a, &n, pivots, work, &lwork, info, 1)
    }
    return lapack_asked(dtype, cell) * lapack_itemsize(dtype);
}

static inline int64_t lapack_geqrf(int dtype, int m, int n, void *a, void *tau, void *scratch, int64_t size, int *info)
{
    double cell[2] = {0, 0};
    int lwork = scratch ? (int)(size / lapack_itemsize(dtype)) : -1;
    void *work = scratch ? scratch : cell;
    LAPACK_CALL(geqrf, &m, &n, a, &m, tau, work, &lwork, info)
    return lapack_asked(dtype, cell) * lapack_itemsize(dtype);
}

/* Compute the first n columns of the product of k reflectors. */
static inline int64_t lapack_orgqr(int dtype, int m, int n, int k, void *a, const void *tau, void *scratch,
                                   int64_t size, int *info)
{
    double cell[2] = {0, 0};
    int lwork = scratch ? (int)(size / lapack_itemsize(dtype)) : -1;
    void *work = scratch ? scratch : cell;
    if (lapack_complex(dtype)) {
        LAPACK_CALL_COMPLEX(ungqr, &m, &n, &k, a, &m, tau, work, &lwork, info)
    } else {
        LAPACK_CALL_REAL(orgqr, &m, &n, &k, a, &m, tau, work, &lwork, info)
    }
    return lapack_asked(dtype, cell) * lapack_itemsize(dtype);
}

/* job: 'N' singular values only, 'S' thin, 'A' full. */
static inline int64_t lapack_gesdd(int dtype, char job, int m, int n, void *a, void *s, void *u, void *vh,
                                   void *memory, int64_t size, int *info)
{
    int64_t k = lapack_least(m, n), l = lapack_most(m, n);
    int ldvh = job == 'A' ? n : (int)k, lwork;
    lapack_scratch_t scratch = {memory, 0};
    double cell[2] = {0, 0}, real_cell = 0;
    int count_cell = 0;
    int *iwork = lapack_part(&scratch, 8 * k * (int64_t)sizeof(int));
    void *rwork = NULL;
    if (lapack_complex(dtype)) {
        int64_t with_vectors = 5 * k * k + 5 * k > 2 * l * k + 2 * k * k + k ? 5 * k * k + 5 * k
                                                                             : 2 * l * k + 2 * k * k + k;
        rwork = lapack_part(&scratch, (job == 'N' ? 7 * k : with_vectors) * lapack_real_size(dtype));
    }
    if (ldvh < 1)
        ldvh = 1;
    if (!memory) {
        rwork = &real_cell;
        iwork = &count_cell;
    }
    lwork = memory ? (int)((size - scratch.used) / lapack_itemsize(dtype)) : -1;
    void *work = memory ? lapack_part(&scratch, 0) : cell;
    if (lapack_complex(dtype)) {
        LAPACK_CALL_COMPLEX(gesdd, &job, &m, &n, a, &m, s, u, &m, vh, &ldvh, work, &lwork, rwork, iwork, info, 1)
    } else {
        LAPACK_CALL_REAL(gesdd, &job, &m, &n, a, &m, s, u, &m, vh, &ldvh, work, &lwork, iwork, info, 1)
    }
    return scratch.used + lapack_asked(dtype, cell) * lapack_itemsize(dtype);
}

/* job: 'N' eigenvalues only, 'V' vectors in the place of the matrix. The sizes are those of the manual. */
static inline int64_t lapack_heevd(int dtype, char job, char uplo, int n, void *a, void *w, void *memory, int64_t size,
                                   int *info)
{
    int64_t m = n;
    int64_t counts = job == 'V' ? 3 + 5 * m : 1;
    int64_t reals = job == 'V' ? 1 + 5 * m + 2 * m * m : m + 1;
    lapack_scratch_t scratch = {memory, 0};
    double cell[2] = {0, 0}, real_cell = 0;
    int liwork = memory ? (int)counts : -1, lrwork = memory ? (int)reals : -1, count_cell = 0, lwork;
    int *iwork = lapack_part(&scratch, counts * (int64_t)sizeof(int));
    void *rwork = lapack_complex(dtype) ? lapack_part(&scratch, reals * lapack_real_size(dtype)) : NULL;
    lwork = memory ? (int)((size - scratch.used) / lapack_itemsize(dtype)) : -1;
    void *work = memory ? lapack_part(&scratch, 0) : cell;
    if (!memory) {
        iwork = &count_cell;
        rwork = &real_cell;
    }
    if (lapack_complex(dtype)) {
        LAPACK_CALL_COMPLEX(heevd, &job, &uplo, &n, a, &n, w, work, &lwork, rwork, &lrwork, iwork, &liwork, info, 1, 1)
    } else {
        LAPACK_CALL_REAL(syevd, &job, &uplo, &n, a, &n, w, work, &lwork, iwork, &liwork, info, 1, 1)
    }
    return scratch.used + lapack_asked(dtype, cell) * lapack_itemsize(dtype);
}

/* job: 'N' eigenvalues only, 'V' right vectors too. For a real matrix `w` has real parts, then imaginary ones. */
static inline int64_t lapack_geev(int dtype, char job, int n, void *a, void *w, void *vectors, void *memory,
                                  int64_t size, int *info)
{
    char none = 'N';
    int one = 1, lwork;
    lapack_scratch_t scratch = {memory, 0};
    double cell[2] = {0, 0}, real_cell = 0;
    void *rwork = lapack_complex(dtype) ? lapack_part(&scratch, 2 * (int64_t)n * lapack_real_size(dtype)) : NULL;
    if (!memory)
        rwork = &real_cell;                     /* the query writes it too */
    lwork = memory ? (int)((size - scratch.used) / lapack_itemsize(dtype)) : -1;
    void *work = memory ? lapack_part(&scratch, 0) : cell;
    if (lapack_complex(dtype)) {
        LAPACK_CALL_COMPLEX(geev, &none, &job, &n, a, &n, w, NULL, &one, vectors, &n, work, &lwork, rwork, info, 1, 1)
    } else {
        void *imaginary = w ? (char *)w + n * lapack_itemsize(dtype) : NULL;
        LAPACK_CALL_REAL(geev, &none, &job, &n, a, &n, w, imaginary, NULL, &one, vectors, &n, work, &lwork, info, 1, 1)
    }
    return scratch.used + lapack_asked(dtype, cell) * lapack_itemsize(dtype);
}

/* Least squares: `b` has max(m, n) rows; the first n become the solution. driver 's': full rank; 'y': complete
   orthogonal factorization; 'd': singular values, stored in `s`. */
static inline int64_t lapack_lstsq(int dtype, char driver, int m, int n, int k, void *a, void *b, void *s, double rcond,
                                   int *rank, void *memory, int64_t size, int *info)
{
    char trans = 'N';
    int ldb = lapack_most(m, n), lwork, count_cell = 0;
    int64_t least = lapack_least(m, n);
    float rcond32 = (float)rcond;
    void *limit = lapack_real_size(dtype) == 4 ? (void *)&rcond32 : (void *)&rcond;
    lapack_scratch_t scratch = {memory, 0};
    double cell[2] = {0, 0}, real_cell = 0;
    int *iwork = &count_cell;
    void *rwork = NULL;
    /* gelsd: at most 27 levels of division, leaves of 25 (xLASDA in the manual of LAPACK). */
    int64_t counts = driver == 'y' ? n : driver == 'd' ? least * (3 * 27 + 11) + 1 : 0;
    int64_t reals = driver == 'y' ? 2 * (int64_t)n : driver == 'd' ? 10 * (int64_t)n + 10 * least + 2 * least * 25
                    + 8 * least * 27 + 3 * 25 * (int64_t)k + 26 * 26 + (int64_t)n * (1 + k) + 2 * k + 64 : 0;
    int *own = lapack_part(&scratch, counts * (int64_t)sizeof(int));
    if (lapack_complex(dtype))
        rwork = lapack_part(&scratch, reals * lapack_real_size(dtype));
    if (memory) {
        iwork = own;
        for (int64_t i = 0; i < counts; ++i)
            iwork[i] = 0;                       /* gelsy: every column may be moved */
    } else {
        rwork = &real_cell;
    }
    lwork = memory ? (int)((size - scratch.used) / lapack_itemsize(dtype)) : -1;
    void *work = memory ? lapack_part(&scratch, 0) : cell;
    if (driver == 's') {
        LAPACK_CALL(gels, &trans, &m, &n, &k, a, &m, b, &ldb, work, &lwork, info, 1)
    } else if (driver == 'y') {
        if (lapack_complex(dtype)) {
            LAPACK_CALL_COMPLEX(gelsy, &m, &n, &k, a, &m, b, &ldb, iwork, limit, rank, work, &lwork, rwork, info)
        } else {
            LAPACK_CALL_REAL(gelsy, &m, &n, &k, a, &m, b, &ldb, iwork, limit, rank, work, &lwork, info)
        }
    } else if (lapack_complex(dtype)) {
        LAPACK_CALL_COMPLEX(gelsd, &m, &n, &k, a, &m, b, &ldb, s, limit, rank, work, &lwork, rwork, iwork, info)
    } else {
        LAPACK_CALL_REAL(gelsd, &m, &n, &k, a, &m, b, &ldb, s, limit, rank, work, &lwork, iwork, info)
    }
    return scratch.used + lapack_asked(dtype, cell) * lapack_itemsize(dtype);
}

#endif
