/* Loops of grid_sample.h for one type and one SIMD target. */
#define ROUND_DOWN(x) (DOUBLE ? (REAL)floor(x) : (REAL)floorf((float)(x)))

/* Move positions into the image by the padding mode, and multiply slopes by the derivative. */
INLINE void NAME(grid_inside)(REAL *restrict at, REAL *restrict slope, int64_t count, int64_t size, int padding,
                              int align) {
    const REAL last = (REAL)(size - 1), low = align ? 0 : (REAL)-0.5, span = align ? last : (REAL)size;
    if (padding == GRID_ZEROS)
        return;
    if (padding == GRID_REFLECTION)
        for (int64_t i = 0; i < count; i++) {
            const REAL x = at[i] - low, distance = x < 0 ? -x : x;
            const REAL periods = span > 0 ? ROUND_DOWN(distance / span) : 0;
            const REAL rest = span > 0 ? distance - periods * span : 0;
            const int odd = periods != 2 * ROUND_DOWN(periods / 2);
            at[i] = odd ? low + span - rest : low + rest;
            slope[i] = span > 0 ? (odd != (x < 0) ? -slope[i] : slope[i]) : 0;
        }
    for (int64_t i = 0; i < count; i++) {
        const REAL x = at[i];
        slope[i] = x <= 0 ? 0 : x >= last ? 0 : slope[i];
        at[i] = x < 0 ? 0 : x > last ? last : x;
    }
}

/* Compute the taps of one coordinate: indices (-1 outside of the image) and weights, differentiated `order` times. */
static void NAME(grid_axis)(const grid_t *g, int axis, int order, const REAL *grid, int64_t count,
                            int32_t (*restrict places)[GRID_BLOCK], REAL (*restrict weights)[GRID_BLOCK]) {
    REAL at[GRID_BLOCK], slope[GRID_BLOCK], part[GRID_BLOCK], place[GRID_BLOCK], unused[GRID_BLOCK];
    const int64_t size = g->sizes[axis], step = g->n;
    const REAL last = (REAL)(size - 1), half = (g->align ? last : (REAL)size) / 2;
    for (int64_t i = 0; i < count; i++) {
        const REAL from_left = grid[i * step + axis] + 1;
        /* Round once, as PyTorch: identity grids are at integer positions, where there is a kink. */
        at[i] = g->align ? from_left * half : MULTIPLY_ADD(from_left, half, (REAL)-0.5);
        slope[i] = half;
        unused[i] = 0;
    }
    if (g->mode != GRID_CUBIC)
        NAME(grid_inside)(at, slope, count, size, g->padding, g->align);
    if (g->mode == GRID_NEAREST)
        for (int64_t i = 0; i < count; i++)
            at[i] = DOUBLE ? (REAL)nearbyint(at[i]) : (REAL)nearbyintf((float)at[i]);
    for (int64_t i = 0; i < count; i++) {
        const REAL low = ROUND_DOWN(at[i]);
        part[i] = at[i] - low;
        at[i] = low;
    }
    for (int tap = 0; tap < g->taps; tap++) {
        REAL c[4] = {0};
        for (int power = order; power < 4; power++) {
            double factor = grid_polynomials[g->mode][tap][power];
            for (int k = 0; k < order; k++)
                factor *= power - k;
            c[power - order] = (REAL)factor;
        }
        if (places) {
            const REAL ahead = (REAL)(g->mode == GRID_CUBIC ? tap - 1 : tap);
            for (int64_t i = 0; i < count; i++)
                place[i] = at[i] + ahead;
            if (g->mode == GRID_CUBIC)
                NAME(grid_inside)(place, unused, count, size, g->padding, g->align);
            for (int64_t i = 0; i < count; i++) {
                /* nan is outside too; `last` may have been rounded up */
                const int32_t here = (int32_t)(place[i] >= 0 && place[i] <= last ? place[i] : -1);
                places[tap][i] = here < (int32_t)size ? here : (int32_t)size - 1;
            }
        }
        if (g->mode == GRID_CUBIC)
            for (int64_t i = 0; i < count; i++)
                weights[tap][i] = ((c[3] * part[i] + c[2]) * part[i] + c[1]) * part[i] + c[0];
        else
            for (int64_t i = 0; i < count; i++)
                weights[tap][i] = c[1] * part[i] + c[0];
        for (int k = 0; k < order; k++)
            for (int64_t i = 0; i < count; i++)
                weights[tap][i] *= slope[i];
    }
}

static void NAME(grid_taps)(const grid_t *g, const REAL *grid, int64_t begin, int64_t count, int32_t *places,
                            REAL *weights) {
    int32_t at[3][GRID_TAPS][GRID_BLOCK];
    REAL weight[3][GRID_TAPS][GRID_BLOCK];
    const int taps = g->taps, planes = g->n == 3 ? taps : 1;
    for (int axis = 0; axis < g->n; axis++)
        NAME(grid_axis)(g, axis, g->order[axis], grid + begin * g->n, count, at[axis], weight[axis]);
    places += begin;
    weights += begin;
    for (int z = 0; z < planes; z++)
        for (int y = 0; y < taps; y++)
            for (int x = 0; x < taps; x++, places += g->points, weights += g->points) {
                const int32_t width = (int32_t)g->sizes[0], height = (int32_t)g->sizes[1];
                const int32_t *restrict column = at[0][x], *restrict row = at[1][y], *restrict plane = at[2][z];
                const REAL *restrict a = weight[0][x], *restrict b = weight[1][y], *restrict c = weight[2][z];
                if (g->n == 2)
                    for (int64_t i = 0; i < count; i++) {
                        places[i] = (column[i] | row[i]) < 0 ? -1 : row[i] * width + column[i];
                        weights[i] = b[i] * a[i];
                    }
                else
                    for (int64_t i = 0; i < count; i++) {
                        places[i] = (column[i] | row[i] | plane[i]) < 0 ? -1
                            : (plane[i] * height + row[i]) * width + column[i];
                        weights[i] = c[i] * b[i] * a[i];
                    }
            }
}

static void NAME(grid_slopes)(const grid_t *g, const REAL *grid, int64_t begin, int64_t count, int along,
                              const REAL *in, REAL *out) {
    REAL weight[3][GRID_TAPS][GRID_BLOCK], slope[3][GRID_TAPS][GRID_BLOCK];
    REAL sums[3][GRID_BLOCK], rotation[3][GRID_BLOCK];
    const int taps = g->taps, n = g->n, all = n == 3 ? taps * taps * taps : taps * taps;
    for (int axis = 0; axis < n; axis++) {
        NAME(grid_axis)(g, axis, g->order[axis], grid + begin * n, count, NULL, weight[axis]);
        NAME(grid_axis)(g, axis, g->order[axis] + 1, grid + begin * n, count, NULL, slope[axis]);
        for (int64_t i = 0; i < count; i++) {
            sums[axis][i] = 0;
            rotation[axis][i] = along ? in[(begin + i) * n + axis] : 0;
        }
    }
    for (int k = 0; k < all; k++) {
        const int tap[3] = {k % taps, k / taps % taps, k / taps / taps};
        const REAL *restrict given = along ? NULL : in + k * g->points + begin;
        REAL *restrict made = along ? out + k * g->points + begin : NULL;
        for (int axis = 0; axis < n; axis++) {
            const int next = (axis + 1) % n, other = (axis + 2) % n;
            const REAL *restrict a = slope[axis][tap[axis]], *restrict b = weight[next][tap[next]];
            const REAL *restrict c = weight[other][tap[other]];
            REAL product[GRID_BLOCK];
            for (int64_t i = 0; i < count; i++)
                product[i] = n == 3 ? a[i] * b[i] * c[i] : a[i] * b[i];
            if (along)
                for (int64_t i = 0; i < count; i++)
                    made[i] = (axis ? made[i] : 0) + rotation[axis][i] * product[i];
            else
                for (int64_t i = 0; i < count; i++)
                    sums[axis][i] += given[i] * product[i];
        }
    }
    if (!along)
        for (int axis = 0; axis < n; axis++)
            for (int64_t i = 0; i < count; i++)
                out[(begin + i) * n + axis] = sums[axis][i];
}

/* Add a vector of gathered elements times factors to sums; -1 is skipped. Compilers do not vectorize such a loop. */
#if SIMD_LEVEL == 2 && DOUBLE
#define LANES 8
#define LANES_OF(name) __m512d name = _mm512_setzero_pd()
#define PLACES_OF(name, from) __m256i name = _mm256_loadu_si256((const __m256i *)(from))
#define ADD_CHOSEN(sums, image, at, factor) do { \
        const __mmask8 there = (__mmask8)~_mm256_movepi32_mask(at); \
        const __m512d chosen = _mm512_mask_i32gather_pd(_mm512_setzero_pd(), there, at, image, 8); \
        sums = _mm512_mask_add_pd(sums, there, sums, _mm512_mul_pd(_mm512_loadu_pd(factor), chosen)); \
    } while (0)
#define STORE(to, sums) _mm512_storeu_pd(to, sums)
#elif SIMD_LEVEL == 2
#define LANES 16
#define LANES_OF(name) __m512 name = _mm512_setzero_ps()
#define PLACES_OF(name, from) __m512i name = _mm512_loadu_si512(from)
#define ADD_CHOSEN(sums, image, at, factor) do { \
        const __mmask16 there = (__mmask16)~_mm512_movepi32_mask(at); \
        const __m512 chosen = _mm512_mask_i32gather_ps(_mm512_setzero_ps(), there, at, image, 4); \
        sums = _mm512_mask_add_ps(sums, there, sums, _mm512_mul_ps(_mm512_loadu_ps(factor), chosen)); \
    } while (0)
#define STORE(to, sums) _mm512_storeu_ps(to, sums)
/* Two neighbors in one load: half as many loads, in the same order of sums. */
#define PAIRS
#define ARE_PAIRS(at, after) (_mm512_movepi32_mask(at) == 0 && _mm512_cmpneq_epi32_mask( \
        _mm512_add_epi32(at, _mm512_set1_epi32(1)), after) == 0)
#define ADD_PAIRS(sums, image, at, factor, next_factor) do { \
        const __m512 low = _mm512_castsi512_ps(_mm512_i32gather_epi64(_mm512_castsi512_si256(at), image, 4)); \
        const __m512 high = _mm512_castsi512_ps(_mm512_i32gather_epi64(_mm512_extracti64x4_epi64(at, 1), image, 4)); \
        const __m512i even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30); \
        const __m512i odd = _mm512_add_epi32(even, _mm512_set1_epi32(1)); \
        sums = _mm512_add_ps(sums, _mm512_mul_ps(_mm512_loadu_ps(factor), \
                                                 _mm512_permutex2var_ps(low, even, high))); \
        sums = _mm512_add_ps(sums, _mm512_mul_ps(_mm512_loadu_ps(next_factor), \
                                                 _mm512_permutex2var_ps(low, odd, high))); \
    } while (0)
#elif SIMD_LEVEL == 1 && DOUBLE
#define LANES 4
#define LANES_OF(name) __m256d name = _mm256_setzero_pd()
#define PLACES_OF(name, from) __m128i name = _mm_loadu_si128((const __m128i *)(from))
#define ADD_CHOSEN(sums, image, at, factor) do { \
        const __m256d there = _mm256_castsi256_pd(_mm256_cvtepi32_epi64(_mm_xor_si128(at, _mm_set1_epi32(-1)))); \
        const __m256d chosen = _mm256_mask_i32gather_pd(_mm256_setzero_pd(), image, at, there, 8); \
        const __m256d more = _mm256_add_pd(sums, _mm256_mul_pd(_mm256_loadu_pd(factor), chosen)); \
        sums = _mm256_blendv_pd(sums, more, there); \
    } while (0)
#define STORE(to, sums) _mm256_storeu_pd(to, sums)
#elif SIMD_LEVEL == 1
#define LANES 8
#define LANES_OF(name) __m256 name = _mm256_setzero_ps()
#define PLACES_OF(name, from) __m256i name = _mm256_loadu_si256((const __m256i *)(from))
#define ADD_CHOSEN(sums, image, at, factor) do { \
        const __m256 there = _mm256_castsi256_ps(_mm256_xor_si256(at, _mm256_set1_epi32(-1))); \
        const __m256 chosen = _mm256_mask_i32gather_ps(_mm256_setzero_ps(), image, at, there, 4); \
        const __m256 more = _mm256_add_ps(sums, _mm256_mul_ps(_mm256_loadu_ps(factor), chosen)); \
        sums = _mm256_blendv_ps(sums, more, there); \
    } while (0)
#define STORE(to, sums) _mm256_storeu_ps(to, sums)
#else
#define LANES 1
#define LANES_OF(name) REAL name = 0
#define PLACES_OF(name, from) const int32_t name = *(from)
#define ADD_CHOSEN(sums, image, at, factor) sums += (at) < 0 ? 0 : *(factor) * (image)[at]
#define STORE(to, sums) *(to) = (sums)
#endif

static void NAME(gather_weighted)(const REAL *images, const int32_t *places, const REAL *weights, int64_t channels,
                                  int64_t size, int64_t taps, int64_t points, REAL *out) {
    for (int64_t begin = 0; begin < points; begin += GRID_BLOCK) {
        const int64_t end = points - begin < GRID_BLOCK ? points : begin + GRID_BLOCK;
#if defined(PAIRS)
        /* Bit k: taps k and k + 1 read neighbors for all lanes. */
        uint64_t next_to[GRID_BLOCK / LANES];
        for (int64_t i = begin; i + LANES <= end; i += LANES) {
            uint64_t found = 0;
            for (int64_t k = 0; k + 1 < taps && k < 64; k++) {
                PLACES_OF(at, places + k * points + i);
                PLACES_OF(after, places + (k + 1) * points + i);
                found |= (uint64_t)ARE_PAIRS(at, after) << k;
            }
            next_to[(i - begin) / LANES] = found;
        }
#endif
        for (int64_t channel = 0; channel < channels; channel++) {
            const REAL *image = images + channel * size;
            int64_t i = begin;
            for (; i + LANES <= end; i += LANES) {
                LANES_OF(sums);
                for (int64_t k = 0; k < taps; k++) {
                    PLACES_OF(at, places + k * points + i);
#if defined(PAIRS)
                    if (next_to[(i - begin) / LANES] >> k & 1) {
                        ADD_PAIRS(sums, image, at, weights + k * points + i, weights + (k + 1) * points + i);
                        k++;
                        continue;
                    }
#endif
                    ADD_CHOSEN(sums, image, at, weights + k * points + i);
                }
                STORE(out + channel * points + i, sums);
            }
            for (; i < end; i++) {
                REAL sum = 0;
                for (int64_t k = 0; k < taps; k++)
                    if (places[k * points + i] >= 0)
                        sum += weights[k * points + i] * image[places[k * points + i]];
                out[channel * points + i] = sum;
            }
        }
    }
}

static void NAME(scatter_weighted)(const REAL *restrict grad, const int32_t *restrict places,
                                   const REAL *restrict weights, int64_t taps, int64_t points, REAL *restrict image) {
    for (int64_t begin = 0; begin < points; begin += GRID_BLOCK) {
        const int64_t end = points - begin < GRID_BLOCK ? points : begin + GRID_BLOCK;
        for (int64_t k = 0; k < taps; k++)
            for (int64_t i = begin; i < end; i++)
                if (places[k * points + i] >= 0)
                    image[places[k * points + i]] += weights[k * points + i] * grad[i];
    }
}

static void NAME(gather_products)(const REAL *grad, const REAL *images, const int32_t *places, int64_t channels,
                                  int64_t size, int64_t taps, int64_t points, int64_t begin, int64_t count,
                                  REAL *out) {
    for (int64_t k = 0; k < taps; k++) {
        int64_t i = begin;
        for (; i + LANES <= begin + count; i += LANES) {
            PLACES_OF(at, places + k * points + i);
            LANES_OF(sums);
            for (int64_t channel = 0; channel < channels; channel++)
                ADD_CHOSEN(sums, images + channel * size, at, grad + channel * points + i);
            STORE(out + k * points + i, sums);
        }
        for (; i < begin + count; i++) {
            const int32_t at = places[k * points + i];
            REAL sum = 0;
            for (int64_t channel = 0; channel < channels && at >= 0; channel++)
                sum += grad[channel * points + i] * images[channel * size + at];
            out[k * points + i] = sum;
        }
    }
}
#undef LANES
#undef LANES_OF
#undef PLACES_OF
#undef ADD_CHOSEN
#undef PAIRS
#undef ARE_PAIRS
#undef ADD_PAIRS
#undef STORE
#undef ROUND_DOWN
