/* Loops of grid_sample; see grid_sample.h. */

/* Move positions into the image by the padding mode, and multiply slopes by the derivative. */
template <class T> INLINE void grid_inside(
        T *__restrict at, T *__restrict slope, int64_t count, int64_t size, int padding, int align) {
    const T last = (T)(size - 1), low = align ? 0 : (T)-0.5, span = align ? last : (T)size;
    if (padding == GRID_ZEROS)
        return;
    if (padding == GRID_REFLECTION)
        for (int64_t i = 0; i < count; i++) {
            const T x = at[i] - low, distance = x < 0 ? -x : x;
            const T periods = span > 0 ? floor(distance / span) : 0;
            const T rest = span > 0 ? distance - periods * span : 0;
            const int odd = periods != 2 * floor(periods / 2);
            at[i] = odd ? low + span - rest : low + rest;
            slope[i] = span > 0 ? (odd != (x < 0) ? -slope[i] : slope[i]) : 0;
        }
    for (int64_t i = 0; i < count; i++) {
        const T x = at[i];
        slope[i] = x <= 0 ? 0 : x >= last ? 0 : slope[i];
        at[i] = x < 0 ? 0 : x > last ? last : x;
    }
}

/* Compute the taps of one coordinate: indices (-1 outside of the image) and weights, differentiated `order` times. */
template <class T> static void grid_axis(
        const grid_t *g, int axis, int order, const T *grid, int64_t count, int32_t (*__restrict places)[GRID_BLOCK],
        T (*__restrict weights)[GRID_BLOCK]) {
    T at[GRID_BLOCK], slope[GRID_BLOCK], part[GRID_BLOCK], place[GRID_BLOCK], unused[GRID_BLOCK];
    const int64_t size = g->sizes[axis], step = g->n;
    const T last = (T)(size - 1), half = (g->align ? last : (T)size) / 2;
    for (int64_t i = 0; i < count; i++) {
        const T from_left = grid[i * step + axis] + 1;
        /* Round once, as PyTorch: identity grids are at integer positions, where there is a kink. */
        at[i] = g->align ? from_left * half : multiply_add<T>(from_left, half, (T)-0.5);
        slope[i] = half;
        unused[i] = 0;
    }
    if (g->mode != GRID_CUBIC)
        grid_inside<T>(at, slope, count, size, g->padding, g->align);
    if (g->mode == GRID_NEAREST)
        for (int64_t i = 0; i < count; i++)
            at[i] = nearbyint(at[i]);
    for (int64_t i = 0; i < count; i++) {
        const T low = floor(at[i]);
        part[i] = at[i] - low;
        at[i] = low;
    }
    for (int tap = 0; tap < g->taps; tap++) {
        T c[4] = {0};
        for (int power = order; power < 4; power++) {
            double factor = grid_polynomials[g->mode][tap][power];
            for (int k = 0; k < order; k++)
                factor *= power - k;
            c[power - order] = (T)factor;
        }
        if (places) {
            const T ahead = (T)(g->mode == GRID_CUBIC ? tap - 1 : tap);
            for (int64_t i = 0; i < count; i++)
                place[i] = at[i] + ahead;
            if (g->mode == GRID_CUBIC)
                grid_inside<T>(place, unused, count, size, g->padding, g->align);
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

template <class T> static void grid_taps(
        const grid_t *g, const T *grid, int64_t begin, int64_t count, int32_t *places, T *weights) {
    int32_t at[3][GRID_TAPS][GRID_BLOCK];
    T weight[3][GRID_TAPS][GRID_BLOCK];
    const int taps = g->taps, planes = g->n == 3 ? taps : 1;
    for (int axis = 0; axis < g->n; axis++)
        grid_axis<T>(g, axis, g->order[axis], grid + begin * g->n, count, at[axis], weight[axis]);
    places += begin;
    weights += begin;
    for (int z = 0; z < planes; z++)
        for (int y = 0; y < taps; y++)
            for (int x = 0; x < taps; x++, places += g->points, weights += g->points) {
                const int32_t width = (int32_t)g->sizes[0], height = (int32_t)g->sizes[1];
                const int32_t *__restrict column = at[0][x], *__restrict row = at[1][y], *__restrict plane = at[2][z];
                const T *__restrict a = weight[0][x], *__restrict b = weight[1][y], *__restrict c = weight[2][z];
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

template <class T> static void grid_slopes(
        const grid_t *g, const T *grid, int64_t begin, int64_t count, int along, const T *in, T *out) {
    T weight[3][GRID_TAPS][GRID_BLOCK], slope[3][GRID_TAPS][GRID_BLOCK];
    T sums[3][GRID_BLOCK], rotation[3][GRID_BLOCK];
    const int taps = g->taps, n = g->n, all = n == 3 ? taps * taps * taps : taps * taps;
    for (int axis = 0; axis < n; axis++) {
        grid_axis<T>(g, axis, g->order[axis], grid + begin * n, count, NULL, weight[axis]);
        grid_axis<T>(g, axis, g->order[axis] + 1, grid + begin * n, count, NULL, slope[axis]);
        for (int64_t i = 0; i < count; i++) {
            sums[axis][i] = 0;
            rotation[axis][i] = along ? in[(begin + i) * n + axis] : 0;
        }
    }
    for (int k = 0; k < all; k++) {
        const int tap[3] = {k % taps, k / taps % taps, k / taps / taps};
        const T *__restrict given = along ? NULL : in + k * g->points + begin;
        T *__restrict made = along ? out + k * g->points + begin : NULL;
        for (int axis = 0; axis < n; axis++) {
            const int next = (axis + 1) % n, other = (axis + 2) % n;
            const T *__restrict a = slope[axis][tap[axis]], *__restrict b = weight[next][tap[next]];
            const T *__restrict c = weight[other][tap[other]];
            T product[GRID_BLOCK];
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

#if SIMD_LEVEL > 0
/* Indices for the lanes of a vector. */
template <class T> using places_t = typename vector_of<int32_t, VECTOR_LANES<T> * 4>::type;

template <class T> INLINE places_t<T> load_places(const int32_t *from) {
    return load<int32_t, VECTOR_LANES<T> * 4>(from);
}

/* Add gathered elements times factors to sums; index -1 is skipped. Compilers do not vectorize such a loop. */
#if SIMD_LEVEL == 2
INLINE void add_chosen(vector_t<float> &sums, const float *image, places_t<float> at, const float *factor) {
    const __mmask16 there = (__mmask16)~_mm512_movepi32_mask((__m512i)at);
    const __m512 chosen = _mm512_mask_i32gather_ps(_mm512_setzero_ps(), there, (__m512i)at, image, 4);
    sums = _mm512_mask_add_ps(sums, there, sums, _mm512_mul_ps(_mm512_loadu_ps(factor), chosen));
}

INLINE void add_chosen(vector_t<double> &sums, const double *image, places_t<double> at, const double *factor) {
    const __mmask8 there = (__mmask8)~_mm256_movepi32_mask((__m256i)at);
    const __m512d chosen = _mm512_mask_i32gather_pd(_mm512_setzero_pd(), there, (__m256i)at, image, 8);
    sums = _mm512_mask_add_pd(sums, there, sums, _mm512_mul_pd(_mm512_loadu_pd(factor), chosen));
}

/* Two neighbors in one load: half as many loads, in the same order of sums. */
INLINE int are_pairs(places_t<float> at, places_t<float> after) {
    return _mm512_movepi32_mask((__m512i)at) == 0 && _mm512_cmpneq_epi32_mask((__m512i)(at + 1), (__m512i)after) == 0;
}

INLINE vector_t<float> eight_pairs(const float *image, const int32_t *places) {
    const __m256i at = (__m256i)load<int32_t, 32>(places);
    return (vector_t<float>)_mm512_mask_i32gather_epi64(_mm512_setzero_si512(), 0xff, at, image, 4);
}

INLINE void add_pairs(vector_t<float> &sums, const float *image, const int32_t *places, const float *factor,
                      const float *next_factor) {
    const vector_t<float> low = eight_pairs(image, places), high = eight_pairs(image, places + 8);
    sums += load<float>(factor) * alternate<float, VECTOR_BYTES, 0>(low, high);
    sums += load<float>(next_factor) * alternate<float, VECTOR_BYTES, 1>(low, high);
}
#else
INLINE void add_chosen(vector_t<float> &sums, const float *image, places_t<float> at, const float *factor) {
    const __m256 there = (__m256)~at;
    const __m256 chosen = _mm256_mask_i32gather_ps(_mm256_setzero_ps(), image, (__m256i)at, there, 4);
    sums = _mm256_blendv_ps(sums, sums + load<float>(factor) * chosen, there);
}

INLINE void add_chosen(vector_t<double> &sums, const double *image, places_t<double> at, const double *factor) {
    const __m256d there = (__m256d)_mm256_cvtepi32_epi64((__m128i)~at);
    const __m256d chosen = _mm256_mask_i32gather_pd(_mm256_setzero_pd(), image, (__m128i)at, there, 8);
    sums = _mm256_blendv_pd(sums, sums + load<double>(factor) * chosen, there);
}

INLINE int are_pairs(places_t<float> at, places_t<float> after) {
    return _mm256_movemask_ps((__m256)(at | (at + 1 != after))) == 0;
}

/* The neighbors at places 0, 1, 4 and 5, so that a shuffle within halves separates them; faster than a gather. */
INLINE __m256 four_pairs(const float *image, const int32_t *places) {
    const auto pair = [=](int k) {
        double neighbors;
        memcpy(&neighbors, image + places[k], sizeof neighbors);
        return neighbors;
    };
    return (__m256)_mm256_setr_pd(pair(0), pair(1), pair(4), pair(5));
}

INLINE void add_pairs(vector_t<float> &sums, const float *image, const int32_t *places, const float *factor,
                      const float *next_factor) {
    const __m256 low = four_pairs(image, places), high = four_pairs(image, places + 2);
    sums += load<float>(factor) * (vector_t<float>)_mm256_shuffle_ps(low, high, 0x88);
    sums += load<float>(next_factor) * (vector_t<float>)_mm256_shuffle_ps(low, high, 0xdd);
}
#endif
#endif

template <class T> static void gather_weighted(
        const T *images, const int32_t *places, const T *weights, int64_t channels, int64_t size, int64_t taps,
        int64_t points, T *out) {
    for (int64_t begin = 0; begin < points; begin += GRID_BLOCK) {
        const int64_t end = points - begin < GRID_BLOCK ? points : begin + GRID_BLOCK;
#if SIMD_LEVEL > 0
        constexpr bool PAIRS = !DOUBLE<T>;
        /* Bit k: taps k and k + 1 read neighbors for all lanes. */
        uint64_t next_to[GRID_BLOCK / VECTOR_LANES<T>];
        if constexpr (PAIRS)
            for (int64_t i = begin; i + VECTOR_LANES<T> <= end; i += VECTOR_LANES<T>) {
                uint64_t found = 0;
                for (int64_t k = 0; k + 1 < taps && k < 64; k++)
                    found |= (uint64_t)are_pairs(load_places<T>(places + k * points + i),
                                                 load_places<T>(places + (k + 1) * points + i)) << k;
                next_to[(i - begin) / VECTOR_LANES<T>] = found;
            }
#endif
        for (int64_t channel = 0; channel < channels; channel++) {
            const T *image = images + channel * size;
            int64_t i = begin;
#if SIMD_LEVEL > 0
            for (; i + VECTOR_LANES<T> <= end; i += VECTOR_LANES<T>) {
                vector_t<T> sums = {0};
                for (int64_t k = 0; k < taps; k++) {
                    const int64_t tap = k * points + i;
                    if constexpr (PAIRS)
                        if (next_to[(i - begin) / VECTOR_LANES<T>] >> k & 1) {
                            add_pairs(sums, image, places + tap, weights + tap, weights + tap + points);
                            k++;
                            continue;
                        }
                    add_chosen(sums, image, load_places<T>(places + tap), weights + tap);
                }
                store(out + channel * points + i, sums);
            }
#endif
            for (; i < end; i++) {
                T sum = 0;
                for (int64_t k = 0; k < taps; k++)
                    if (places[k * points + i] >= 0)
                        sum += weights[k * points + i] * image[places[k * points + i]];
                out[channel * points + i] = sum;
            }
        }
    }
}

template <class T> static void scatter_weighted(
        const T *__restrict grad, const int32_t *__restrict places, const T *__restrict weights, int64_t taps,
        int64_t points, T *__restrict image) {
    for (int64_t begin = 0; begin < points; begin += GRID_BLOCK) {
        const int64_t end = points - begin < GRID_BLOCK ? points : begin + GRID_BLOCK;
        for (int64_t k = 0; k < taps; k++)
            for (int64_t i = begin; i < end; i++)
                if (places[k * points + i] >= 0)
                    image[places[k * points + i]] += weights[k * points + i] * grad[i];
    }
}

template <class T> static void gather_products(
        const T *grad, const T *images, const int32_t *places, int64_t channels, int64_t size, int64_t taps,
        int64_t points, int64_t begin, int64_t count, T *out) {
    for (int64_t k = 0; k < taps; k++) {
        int64_t i = begin;
#if SIMD_LEVEL > 0
        for (; i + VECTOR_LANES<T> <= begin + count; i += VECTOR_LANES<T>) {
            const auto at = load_places<T>(places + k * points + i);
            vector_t<T> sums = {0};
            for (int64_t channel = 0; channel < channels; channel++)
                add_chosen(sums, images + channel * size, at, grad + channel * points + i);
            store(out + k * points + i, sums);
        }
#endif
        for (; i < begin + count; i++) {
            const int32_t at = places[k * points + i];
            T sum = 0;
            for (int64_t channel = 0; channel < channels && at >= 0; channel++)
                sum += grad[channel * points + i] * images[channel * size + at];
            out[k * points + i] = sum;
        }
    }
}
