// The casts, with vectors of the SIMD target of this processor where both types are usual.

#include "primitives/casts.h"

#include <string.h>
#include <type_traits>
#include "arrays/element_types.h"
#include "simd/instruction_set.h"
#if SIMD_TARGETS > 1
#include <immintrin.h>
#endif

template <class T> constexpr bool is_stored =
    std::is_same_v<T, half_t> || std::is_same_v<T, bfloat_t> || std::is_same_v<T, complex_half_t>;

// Return how many of n contiguous elements were converted by AVX2, which has one instruction for eight halves.
#if SIMD_TARGETS > 1
template <class S, class T> static inline int64_t convert_eights(const S *, T *, int64_t) { return 0; }

__attribute__((target("avx2,f16c"))) static int64_t convert_eights(const half_t *source, float *out, int64_t n) {
    for (int64_t i = 0; i < n / 8; i++)
        _mm256_storeu_ps(out + 8 * i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)source + i)));
    return n / 8 * 8;
}

__attribute__((target("avx2,f16c"))) static int64_t convert_eights(const float *source, half_t *out, int64_t n) {
    for (int64_t i = 0; i < n / 8; i++)
        _mm_storeu_si128((__m128i *)out + i,
                         _mm256_cvtps_ph(_mm256_loadu_ps(source + 8 * i), _MM_FROUND_TO_NEAREST_INT));
    return n / 8 * 8;
}

// As bfloat_of_float(): compilers assemble the halves of words in more steps.
__attribute__((target("avx2"))) static int64_t convert_eights(const float *source, bfloat_t *out, int64_t n) {
    for (int64_t i = 0; i < n / 16; i++) {
        __m256i halves[2];
        for (int k = 0; k < 2; k++) {
            const __m256 x = _mm256_loadu_ps(source + 16 * i + 8 * k);
            const __m256i bits = _mm256_castps_si256(x), high = _mm256_srli_epi32(bits, 16);
            const __m256i odd = _mm256_and_si256(high, _mm256_set1_epi32(1));
            const __m256i half = _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff));
            const __m256i sign = _mm256_and_si256(high, _mm256_set1_epi32(0x8000));
            halves[k] = _mm256_blendv_epi8(_mm256_srli_epi32(_mm256_add_epi32(bits, half), 16),
                                           _mm256_or_si256(sign, _mm256_set1_epi32(0x7fc0)),
                                           _mm256_castps_si256(_mm256_cmp_ps(x, x, _CMP_UNORD_Q)));
        }
        _mm256_storeu_si256((__m256i *)out + i,
                            _mm256_permute4x64_epi64(_mm256_packus_epi32(halves[0], halves[1]), 0xd8));
    }
    return n / 16 * 16;
}
#endif

#define LOOPS "primitives/cast_loops.h"
#include "simd/dispatch.h"

typedef std::remove_reference_t<decltype(cast_table[0][0])> loop_t;

namespace {

template <class T, class... Types> constexpr bool is_one_of = (std::is_same_v<T, Types> || ...);
template <class T> constexpr bool is_wide = is_one_of<T, int32_t, int64_t, float, double>;
template <class T> constexpr bool is_half = is_one_of<T, half_t, bfloat_t>;
template <class S, class T> constexpr bool is_usual =
    (is_wide<T> && (is_wide<S> || std::is_same_v<S, uint8_t>)) ||
    (is_half<S> && std::is_same_v<T, float>) || (is_half<T> && std::is_same_v<S, float>);

template <class word> loop_t move() { return DISPATCH(move_loop<word>); }

template <class S, class T> loop_t cast() {
    if constexpr (std::is_same_v<S, T>)
        return sizeof(T) == 1 ? move<uint8_t>() : sizeof(T) == 2 ? move<uint16_t>() : sizeof(T) == 4 ? move<uint32_t>()
               : sizeof(T) == 8 ? move<uint64_t>() : move<pair_t>();
    else if constexpr (is_usual<S, T>)
        return DISPATCH(cast_loop<S, T>);
    else
        return baseline::cast_loop<S, T>;
}

template <class S> loop_t cast_to_bool() {
    if constexpr (is_wide<S>)
        return DISPATCH(to_bool_loop<S>);
    else
        return baseline::to_bool_loop<S>;
}

}  // namespace

loop_t cast_table[DTYPE_COUNT][DTYPE_COUNT];

template <class S, class... Types> static void fill_row(loop_t *row) {
    row[BOOL_DTYPE] = cast_to_bool<S>();
    ((row[dtype_of<Types>] = cast<S, Types>()), ...);
}

template <class... Types> static bool fill_table() {
    (fill_row<Types, Types...>(cast_table[dtype_of<Types>]), ...);
    fill_row<uint8_t, Types...>(cast_table[BOOL_DTYPE]);
    cast_table[BOOL_DTYPE][BOOL_DTYPE] = cast_table[BOOL_DTYPE][dtype_of<int8_t>] = move<uint8_t>();
    return true;
}

static const bool loaded =
    fill_table<uint8_t, int8_t, int16_t, int32_t, int64_t, float, double, complex64_t, complex128_t, half_t, bfloat_t,
               complex_half_t, uint16_t, uint32_t, uint64_t>();
