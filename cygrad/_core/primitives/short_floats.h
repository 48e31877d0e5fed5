/* Conversion of float16 and bfloat16, as bits, to float and back, rounded to nearest even; float16 keeps subnormal
 * numbers. Branch-free, so that compilers vectorize the loops. */

INLINE uint32_t bits_of_float(float value) {
    uint32_t bits;
    memcpy(&bits, &value, 4);
    return bits;
}

INLINE float float_of_bits(uint32_t bits) {
    float value;
    memcpy(&value, &bits, 4);
    return value;
}

INLINE float widened(half_t half) {
    const uint32_t magnitude = (uint32_t)(half.bits & 0x7fff) << 13, sign = (uint32_t)(half.bits & 0x8000) << 16;
    /* The exponent is 112 less than that of a float: a product corrects it, for subnormal numbers as well. */
    const uint32_t scaled = bits_of_float(float_of_bits(magnitude) * 0x1p112f);
    return float_of_bits(scaled | (magnitude >= 0x0f800000 ? 0x7f800000 : 0) | sign);
}

INLINE half_t half_of_float(float value) {
    const uint32_t bits = bits_of_float(value), sign = bits & 0x80000000, magnitude = bits ^ sign;
    /* Below 2^-14 the sum with 1/2 has its last bit where float16 has its own, so the processor rounds. */
    const uint32_t small = bits_of_float(float_of_bits(magnitude) + 0.5f) - 0x3f000000;
    const uint32_t normal = (magnitude + (magnitude >> 13 & 1) - 0x37fff001) >> 13;
    const uint32_t beyond = magnitude > 0x7f800000 ? 0x7e00 : 0x7c00;
    /* Masks, because compilers would move the sum, which may raise a flag, under a condition. */
    const uint32_t is_small = -(uint32_t)(magnitude < 0x38800000), is_beyond = -(uint32_t)(magnitude >= 0x47800000);
    const uint32_t rounded = (small & is_small) | (beyond & is_beyond) | (normal & ~(is_small | is_beyond));
    return half_t{(uint16_t)(rounded | sign >> 16)};
}

INLINE float widened(bfloat_t bfloat) { return float_of_bits((uint32_t)bfloat.bits << 16); }

INLINE bfloat_t bfloat_of_float(float value) {
    const uint32_t bits = bits_of_float(value);
    const uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    return bfloat_t{(uint16_t)((bits & 0x7fffffff) > 0x7f800000 ? 0x7fc0 | (bits >> 16 & 0x8000) : rounded)};
}

INLINE complex64_t widened(complex_half_t z) { return complex_number(widened(z.real), widened(z.imag)); }
