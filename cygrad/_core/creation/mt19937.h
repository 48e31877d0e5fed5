/* The Mersenne Twister with 32-bit words, and the random numbers that PyTorch derives from it on CPUs. Where
 * PyTorch's compiler contracts a product and a sum, this code calls fma, so that results are bit-identical. */

#include <math.h>
#include <stdint.h>
#include <string.h>

enum { MT_WORDS = 624, MT_SHIFT = 397 };

typedef struct {
    uint32_t words[MT_WORDS];
    uint32_t next;                /* words of this round that were used */
    uint32_t has_normal;          /* the second of a pair of normal numbers is cached */
    double normal;
} mt19937_t;

static void mt_seed(mt19937_t *mt, uint64_t seed) {
    mt->words[0] = (uint32_t)seed;
    for (uint32_t i = 1; i < MT_WORDS; i++)
        mt->words[i] = 1812433253u * (mt->words[i - 1] ^ (mt->words[i - 1] >> 30)) + i;
    mt->next = MT_WORDS;
    mt->has_normal = 0;
    mt->normal = 0;
}

static inline uint32_t mt_twist(uint32_t high, uint32_t low) {
    return (((high & 0x80000000u) | (low & 0x7fffffffu)) >> 1) ^ ((low & 1u) ? 0x9908b0dfu : 0u);
}

static void mt_round(mt19937_t *mt) {
    uint32_t *w = mt->words;
    int i;
    for (i = 0; i < MT_WORDS - MT_SHIFT; i++)
        w[i] = w[i + MT_SHIFT] ^ mt_twist(w[i], w[i + 1]);
    for (; i < MT_WORDS - 1; i++)
        w[i] = w[i + MT_SHIFT - MT_WORDS] ^ mt_twist(w[i], w[i + 1]);
    w[i] = w[MT_SHIFT - 1] ^ mt_twist(w[i], w[0]);
    mt->next = 0;
}

static inline uint32_t mt_32(mt19937_t *mt) {
    if (mt->next >= MT_WORDS)
        mt_round(mt);
    uint32_t y = mt->words[mt->next++];
    y ^= y >> 11;
    y ^= (y << 7) & 0x9d2c5680u;
    y ^= (y << 15) & 0xefc60000u;
    return y ^ (y >> 18);
}

static inline uint64_t mt_64(mt19937_t *mt) {
    uint64_t high = mt_32(mt);
    return high << 32 | mt_32(mt);
}

static inline float mt_float(mt19937_t *mt) { return (float)(mt_32(mt) & 0xffffffu) * 0x1p-24f; }
static inline double mt_double(mt19937_t *mt) { return (double)(mt_64(mt) & 0x1fffffffffffffull) * 0x1p-53; }

/* ---- uniform */

static void mt_uniform_float(mt19937_t *mt, float *out, int64_t n, float low, float high) {
    for (int64_t i = 0; i < n; i++)
        out[i] = fmaf(mt_float(mt), high - low, low);
}

static void mt_uniform_double(mt19937_t *mt, double *out, int64_t n, double low, double high) {
    for (int64_t i = 0; i < n; i++)
        out[i] = fma(mt_double(mt), high - low, low);
}

/* base + an integer below `range`; 0 stands for 2**64. */
static void mt_integers(mt19937_t *mt, int64_t *out, int64_t n, uint64_t range, int64_t base, int wide) {
    for (int64_t i = 0; i < n; i++) {
        uint64_t drawn = wide ? mt_64(mt) : mt_32(mt);
        out[i] = (int64_t)((range ? drawn % range : drawn) + (uint64_t)base);
    }
}

static void mt_permutation(mt19937_t *mt, int64_t *out, int64_t n, int wide) {
    for (int64_t i = 0; i < n; i++)
        out[i] = i;
    for (int64_t i = 0; i < n - 1; i++) {
        int64_t other = i + (int64_t)((wide ? mt_64(mt) : mt_32(mt)) % (uint64_t)(n - i)), value = out[i];
        out[i] = out[other];
        out[other] = value;
    }
}

static void mt_exponential(mt19937_t *mt, double *out, int64_t n, double rate) {
    for (int64_t i = 0; i < n; i++) {
        out[i] = -1.0 / rate * log1p(-mt_double(mt));
    }
}

/* ---- counts: transformed rejection (PTRS and BTRS of Hoermann, 1993), products or waiting times for small means */

static double mt_poisson_count(mt19937_t *mt, double rate) {
    if (rate == 0)                    /* draws nothing, as there */
        return 0;
    if (rate < 10) {
        double end = exp(-rate), product = mt_double(mt), count = 0;
        for (; product > end; product *= mt_double(mt))
            count++;
        return count;
    }
    double root = sqrt(rate), b = 0.931 + 2.53 * root, a = -0.059 + 0.02483 * b;
    double scale = 1.1239 + 1.1328 / (b - 3.4), accepted = 0.9277 - 3.6224 / (b - 2);
    for (;;) {
        double u = mt_double(mt) - 0.5, v = mt_double(mt), us = 0.5 - fabs(u);
        double k = floor((2 * a / us + b) * u + rate + 0.43);
        if (us >= 0.07 && v <= accepted)
            return k;
        if (k < 0 || (us < 0.013 && v > us))
            continue;
        if (log(v) + log(scale) - log(a / (us * us) + b) <= -rate + k * log(rate) - lgamma(k + 1))
            return k;
    }
}

static void mt_poisson(mt19937_t *mt, double *out, int64_t n, const double *rates) {
    for (int64_t i = 0; i < n; i++)
        out[i] = mt_poisson_count(mt, rates[i]);
}

/* What Stirling's formula for log k! leaves. */
static double mt_stirling_rest(double k) {
    static const double rest[] = {
        0.0810614667953272, 0.0413406959554092, 0.0276779256849983, 0.02079067210376509, 0.0166446911898211,
        0.0138761288230707, 0.0118967099458917, 0.0104112652619720, 0.00925546218271273, 0.00833056343336287};
    if (k < 10)
        return rest[k > 0 ? (int)k : 0];
    double square = (k + 1) * (k + 1);
    return (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / square) / square) / (k + 1);
}

/* With `mean`, n p as the dtype of the tensor rounds it, and p at most 1/2. */
static double mt_successes(mt19937_t *mt, double n, double p, double mean) {
    if (mean < 10) {
        double waited = 0, count = -1;
        do {
            waited += ceil(log(mt_double(mt)) / log1p(-p));
            count++;
        } while (waited <= n);
        return count;
    }
    double std = sqrt(n * p * (1 - p)), b = 1.15 + 2.53 * std, a = -0.0873 + 0.0248 * b + 0.01 * p;
    double accepted = 0.92 - 4.2 / b, odds = p / (1 - p), scale = (2.83 + 5.1 / b) * std, m = floor((n + 1) * p);
    for (;;) {
        double u = mt_double(mt) - 0.5, v = mt_double(mt), us = 0.5 - fabs(u);
        double k = floor((2 * a / us + b) * u + (mean + 0.5));
        if (us >= 0.07 && v <= accepted)
            return k;
        if (k < 0 || k > n)
            continue;
        if (log(v * scale / (a / (us * us) + b))
                <= (m + 0.5) * log((m + 1) / (odds * (n - m + 1))) + (n + 1) * log((n - m + 1) / (n - k + 1))
                + (k + 0.5) * log(odds * (n - k + 1) / (k + 1)) + mt_stirling_rest(m) + mt_stirling_rest(n - m)
                - mt_stirling_rest(k) - mt_stirling_rest(n - k))
            return k;
    }
}

static double mt_binomial_count(mt19937_t *mt, double n, double p, int single) {
    if (!(n > 0 && p > 0))
        return isnan(p) ? p : 0;
    if (p >= 1)
        return n;
    double small = p <= 0.5 ? p : single ? (double)(1.0f - (float)p) : 1 - p;
    double mean = single ? (double)((float)n * (float)small) : n * small;
    double count = mt_successes(mt, n, small, mean);
    return p <= 0.5 ? count : n - count;
}

static void mt_binomial(mt19937_t *mt, double *out, int64_t n, const double *counts, const double *p, int single) {
    for (int64_t i = 0; i < n; i++)
        out[i] = mt_binomial_count(mt, counts[i], p[i], single);
}

/* ---- normal */

/* One at a time, in double precision: for few numbers. */
static inline double mt_normal(mt19937_t *mt, double mean, double std) {
    if (mt->has_normal) {
        mt->has_normal = 0;
        return fma(mt->normal, std, mean);
    }
    double u1 = mt_double(mt), u2 = mt_double(mt);
    double radius = sqrt(-2.0 * log1p(-u2)), angle = 2.0 * M_PI * u1;
    mt->normal = radius * sin(angle);
    mt->has_normal = 1;
    return fma(radius * cos(angle), std, mean);
}

static void mt_normal_16_double(double *data, double mean, double std) {
    for (int j = 0; j < 8; j++) {
        double u1 = 1 - data[j], u2 = data[j + 8];
        double radius = sqrt(-2 * log(u1)), angle = 2.0 * M_PI * u2;
        data[j] = fma(radius * cos(angle), std, mean);
        data[j + 8] = fma(radius * sin(angle), std, mean);
    }
}

/* The same in single precision, as in PyTorch on processors without AVX2. */
static void mt_normal_16_plain(float *data, float mean, float std) {
    for (int j = 0; j < 8; j++) {
        float u1 = 1 - data[j], u2 = data[j + 8];
        float radius = sqrtf(-2 * logf(u1)), angle = (float)(2.0 * M_PI * u2);
        data[j] = radius * cosf(angle) * std + mean;
        data[j + 8] = radius * sinf(angle) * std + mean;
    }
}

/* ... and with AVX2: the polynomials of the Cephes library, for eight numbers at once. */
#if defined(__x86_64__)
__attribute__((target("avx2,fma")))
static void mt_normal_16_vector(float *data, float mean, float std) {
    for (int j = 0; j < 8; j++) {
        /* The logarithm of u1 = fraction * 2**exponent, which is never 0. */
        float u1 = 1.0f - data[j];
        uint32_t bits;
        memcpy(&bits, &u1, 4);
        float exponent = (float)((int32_t)(bits >> 23) - 126), x;
        bits = (bits & 0x007fffffu) | 0x3f000000u;
        memcpy(&x, &bits, 4);
        int small = x < 0.707106781186547524f;
        exponent -= small ? 1.0f : 0.0f;
        x = (x - 1.0f) + (small ? x : 0.0f);
        float z = x * x;
        float y = 7.0376836292E-2f;
        y = fmaf(y, x, -1.1514610310E-1f);
        y = fmaf(y, x, 1.1676998740E-1f);
        y = fmaf(y, x, -1.2420140846E-1f);
        y = fmaf(y, x, 1.4249322787E-1f);
        y = fmaf(y, x, -1.6668057665E-1f);
        y = fmaf(y, x, 2.0000714765E-1f);
        y = fmaf(y, x, -2.4999993993E-1f);
        y = fmaf(y, x, 3.3333331174E-1f);
        y = fmaf(y * x, z, exponent * -2.12194440E-4f);
        y = fmaf(-z, 0.5f, y);
        float radius = sqrtf(-2.0f * fmaf(exponent, 0.693359375f, x + y));

        /* Sine and cosine, with the argument reduced by multiples of pi / 4 in three steps. */
        float angle = 6.2831853071795864769f * data[j + 8];
        int32_t octant = ((int32_t)(angle * 1.27323954473516f) + 1) & ~1;
        float octants = (float)octant;
        float a = fmaf(octants, -0.78515625f, angle);
        a = fmaf(octants, -2.4187564849853515625E-4f, a);
        a = fmaf(octants, -3.77489497744594108E-8f, a);
        z = a * a;
        float even = fmaf(2.443315711809948E-5f, z, -1.388731625493765E-3f);
        even = fmaf(even, z, 4.166664568298827E-2f) * z;
        even = fmaf(even, z, -(z * 0.5f)) + 1.0f;
        float odd = fmaf(-1.9515295891E-4f, z, 8.3321608736E-3f);
        odd = fmaf(odd, z, -1.6666654611E-1f) * z;
        odd = fmaf(odd, a, a);
        int swapped = octant & 2;
        float sine = swapped ? even : odd, cosine = swapped ? odd : even;
        sine = octant & 4 ? -sine : sine;
        cosine = (octant - 2) & 4 ? cosine : -cosine;
        data[j] = fmaf(radius * cosine, std, mean);
        data[j + 8] = fmaf(radius * sine, std, mean);
    }
}
#endif

static void mt_normal_16(float *data, float mean, float std) {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        mt_normal_16_vector(data, mean, std);
        return;
    }
#endif
    mt_normal_16_plain(data, mean, std);
}

static void mt_normal_float(mt19937_t *mt, float *out, int64_t n, float mean, float std) {
    for (int64_t i = 0; i < n; i++)
        out[i] = mt_float(mt);
    for (int64_t i = 0; i < n - 15; i += 16)
        mt_normal_16(out + i, mean, std);
    if (n % 16) {                  /* the last 16, drawn again */
        for (int64_t i = n - 16; i < n; i++)
            out[i] = mt_float(mt);
        mt_normal_16(out + n - 16, mean, std);
    }
}

static void mt_normal_double(mt19937_t *mt, double *out, int64_t n, double mean, double std) {
    for (int64_t i = 0; i < n; i++)
        out[i] = mt_double(mt);
    for (int64_t i = 0; i < n - 15; i += 16)
        mt_normal_16_double(out + i, mean, std);
    if (n % 16) {
        for (int64_t i = n - 16; i < n; i++)
            out[i] = mt_double(mt);
        mt_normal_16_double(out + n - 16, mean, std);
    }
}
