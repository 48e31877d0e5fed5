/* Conversion of float16 and bfloat16, as bits, to float and back, rounded to nearest even; float16 keeps subnormal
 * numbers. Branch-free, so that compilers vectorize the loops. */
#ifndef CYGRAD_SHORT_FLOATS_H
#define CYGRAD_SHORT_FLOATS_H

#include <stdint.h>
#include <string.h>
#include "simd/target_clones.h"

typedef struct { uint16_t bits; } half_t;
typedef struct { uint16_t bits; } bfloat_t;
typedef struct { half_t real, imag; } complex_half_t;

static inline uint32_t bits_of_float(float value) {
    uint32_t bits;
    memcpy(&bits, &value, 4);
    return bits;
}

static inline float float_of_bits(uint32_t bits) {
    float value;
    memcpy(&value, &bits, 4);
    return value;
}

static inline float float_of_half(half_t half) {
    const uint32_t magnitude = (uint32_t)(half.bits & 0x7fff) << 13, sign = (uint32_t)(half.bits & 0x8000) << 16;
    /* The exponent is 112 less than that of a float: a product corrects it, for subnormal numbers as well. */
    const uint32_t scaled = bits_of_float(float_of_bits(magnitude) * 0x1p112f);
    return float_of_bits(scaled | (magnitude >= 0x0f800000 ? 0x7f800000 : 0) | sign);
}

static inline half_t half_of_float(float value) {
    const uint32_t bits = bits_of_float(value), sign = bits & 0x80000000, magnitude = bits ^ sign;
    /* Below 2^-14 the sum with 1/2 has its last bit where float16 has its own, so the processor rounds. */
    const uint32_t small = bits_of_float(float_of_bits(magnitude) + 0.5f) - 0x3f000000;
    const uint32_t normal = (magnitude + (magnitude >> 13 & 1) - 0x37fff001) >> 13;
    const uint32_t beyond = magnitude > 0x7f800000 ? 0x7e00 : 0x7c00;
    /* Masks, because compilers would move the sum, which may raise a flag, under a condition. */
    const uint32_t is_small = -(uint32_t)(magnitude < 0x38800000), is_beyond = -(uint32_t)(magnitude >= 0x47800000);
    const uint32_t rounded = (small & is_small) | (beyond & is_beyond) | (normal & ~(is_small | is_beyond));
    half_t half = {(uint16_t)(rounded | sign >> 16)};
    return half;
}

static inline float float_of_bfloat(bfloat_t bfloat) {
    return float_of_bits((uint32_t)bfloat.bits << 16);
}

static inline bfloat_t bfloat_of_float(float value) {
    const uint32_t bits = bits_of_float(value);
    const uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    bfloat_t bfloat = {(uint16_t)((bits & 0x7fffffff) > 0x7f800000 ? 0x7fc0 | (bits >> 16 & 0x8000) : rounded)};
    return bfloat;
}

/* out[i] = convert(source[i]) for contiguous elements; return 1. */
#define CONVERSION(name, source_t, target_t, convert)                                      \
    TARGET_CLONES static int name(const source_t *source, target_t *out, int64_t n) {       \
        INDEPENDENT                                                                        \
        for (int64_t i = 0; i < n; i++)                                                    \
            out[i] = convert(source[i]);                                                   \
        return 1;                                                                          \
    }

CONVERSION(rest_of_halves, half_t, float, float_of_half)
CONVERSION(rest_of_floats, float, half_t, half_of_float)
CONVERSION(floats_of_bfloats, bfloat_t, float, float_of_bfloat)
CONVERSION(bfloats_of_floats, float, bfloat_t, bfloat_of_float)

/* The usual conversions of other types; of floats through int64, so that they wrap around. */
#define AS_IT_IS(x) (x)
#define AS_LONG(x) ((int64_t)(x))
#define IS_SET(x) ((x) != 0)
CONVERSION(doubles_of_floats, float, double, AS_IT_IS)
CONVERSION(floats_of_doubles, double, float, (float))
CONVERSION(longs_of_floats, float, int64_t, AS_LONG)
CONVERSION(longs_of_doubles, double, int64_t, AS_LONG)
CONVERSION(words_of_floats, float, int32_t, (int32_t)AS_LONG)
CONVERSION(words_of_longs, int64_t, int32_t, (int32_t))
CONVERSION(longs_of_words, int32_t, int64_t, AS_IT_IS)
CONVERSION(floats_of_longs, int64_t, float, (float))
CONVERSION(floats_of_words, int32_t, float, (float))
CONVERSION(floats_of_bytes, uint8_t, float, AS_IT_IS)
CONVERSION(longs_of_bytes, uint8_t, int64_t, AS_IT_IS)
CONVERSION(bools_of_floats, float, uint8_t, IS_SET)
CONVERSION(bools_of_doubles, double, uint8_t, IS_SET)

static int convert_none(const void *source, void *out, int64_t n) {
    (void)source, (void)out, (void)n;
    return 0;
}

/* Convert n contiguous elements, by the types of the pointers; return whether there is a loop for them. */
#define TO(out, float_to, double_to, word_to, long_to) \
    _Generic((out), default: convert_none, float *: float_to, double *: double_to, int32_t *: word_to, \
             int64_t *: long_to)
#define convert_neighbors(source, out, n) CONVERTER(source, out)(source, out, n)
#define CONVERTER(source, out) _Generic((source), default: convert_none, \
    float const *: TO(out, convert_none, doubles_of_floats, words_of_floats, longs_of_floats), \
    double const *: TO(out, floats_of_doubles, convert_none, convert_none, longs_of_doubles), \
    int32_t const *: TO(out, floats_of_words, convert_none, convert_none, longs_of_words), \
    int64_t const *: TO(out, floats_of_longs, convert_none, words_of_longs, convert_none), \
    uint8_t const *: TO(out, floats_of_bytes, convert_none, convert_none, longs_of_bytes))

/* Processors with AVX2 convert eight halves by one instruction. */
#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>

__attribute__((target("avx2,f16c"))) static int64_t eights_of_halves(const half_t *source, float *out, int64_t n) {
    for (int64_t i = 0; i < n / 8; i++)
        _mm256_storeu_ps(out + 8 * i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)source + i)));
    return n / 8 * 8;
}

__attribute__((target("avx2,f16c"))) static int64_t eights_of_floats(const float *source, half_t *out, int64_t n) {
    for (int64_t i = 0; i < n / 8; i++)
        _mm_storeu_si128((__m128i *)out + i,
                         _mm256_cvtps_ph(_mm256_loadu_ps(source + 8 * i), _MM_FROUND_TO_NEAREST_INT));
    return n / 8 * 8;
}

#define EIGHTS(convert) (n >= 8 && __builtin_cpu_supports("avx2") ? convert(source, out, n) : 0)
#else
#define EIGHTS(convert) 0
#endif

static void floats_of_halves(const half_t *source, float *out, int64_t n) {
    const int64_t done = EIGHTS(eights_of_halves);
    rest_of_halves(source + done, out + done, n - done);
}

static void halves_of_floats(const float *source, half_t *out, int64_t n) {
    const int64_t done = EIGHTS(eights_of_floats);
    rest_of_floats(source + done, out + done, n - done);
}

#endif
