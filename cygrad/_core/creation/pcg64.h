/* NumPy's PCG64 and the numbers that `numpy.random.Generator` makes of it, bit for bit: words are made in blocks, by
   four generators that each skip the words of the others. */

#include <math.h>
#include <stdint.h>

#ifdef __SIZEOF_INT128__
#define HAS_PCG 1
typedef unsigned __int128 uint128_t;

enum { PCG_BLOCK = 1024 };            /* half words made at a time */

/* The memory to which numpy.random.PCG64.ctypes.state_address points. */
typedef struct { uint128_t state, increment; } pcg_state_t;
typedef struct {
    pcg_state_t *pcg;
    int has_half;
    uint32_t half;
} pcg64_t;

typedef struct {
    pcg64_t *source;
    uint128_t start;                  /* the state before the block */
    int64_t expected;                 /* how many half words may still be asked for */
    int next, count;
    union { uint64_t whole[PCG_BLOCK / 2]; uint32_t half[PCG_BLOCK]; } words;
} pcg_reader_t;

static const uint128_t PCG_FACTOR = (uint128_t)2549297995355413924ull << 64 | 4865540595714422341ull;

static inline uint64_t pcg_output(uint128_t state) {
    const uint64_t mixed = (uint64_t)(state >> 64) ^ (uint64_t)state;
    const int rotation = (int)(state >> 122);
    return mixed >> rotation | mixed << (-rotation & 63);
}

static uint128_t pcg_advanced(uint128_t state, uint128_t increment, int64_t steps) {
    uint128_t factor = PCG_FACTOR;
    for (; steps; steps >>= 1) {
        if (steps & 1)
            state = state * factor + increment;
        increment *= factor + 1;
        factor *= factor;
    }
    return state;
}

/* The next words; `count` is a multiple of 4. */
static uint128_t pcg_fill(uint64_t *words, int count, uint128_t state, uint128_t increment) {
    const uint128_t square = PCG_FACTOR * PCG_FACTOR, factor = square * square;
    const uint128_t step = increment * (1 + PCG_FACTOR) * (1 + square);
    uint128_t lanes[4];
    for (int k = 0; k < 4; k++)
        lanes[k] = state = state * PCG_FACTOR + increment;
    for (int i = 0; i < count; i += 4)
        for (int k = 0; k < 4; k++) {
            words[i + k] = pcg_output(lanes[k]);
            state = k == 3 ? lanes[k] : state;
            lanes[k] = lanes[k] * factor + step;
        }
    return state;
}

static void pcg_refill(pcg_reader_t *reader) {
    pcg64_t *source = reader->source;
    reader->expected = reader->expected > 16 ? reader->expected : 16;
    reader->count = reader->expected < PCG_BLOCK ? (int)(reader->expected + 7) & ~7 : PCG_BLOCK;
    reader->next = 0;
    reader->expected -= reader->count;
    reader->start = source->pcg->state;
    source->pcg->state = pcg_fill(reader->words.whole, reader->count / 2, reader->start, source->pcg->increment);
}

static inline uint32_t pcg_next(pcg_reader_t *reader) {
    if (reader->next == reader->count)
        pcg_refill(reader);
    return reader->words.half[reader->next++];
}

static void pcg_open(pcg_reader_t *reader, pcg64_t *source, int64_t expected) {
    reader->source = source;
    reader->expected = expected;
    reader->next = reader->count = 2;
    if (source->has_half) {
        reader->words.half[1] = source->half;
        reader->next = 1;
    }
}

/* Give back the words that were not read. */
static void pcg_close(pcg_reader_t *reader) {
    pcg64_t *source = reader->source;
    if (reader->next < reader->count)
        source->pcg->state = pcg_advanced(reader->start, source->pcg->increment, (reader->next + 1) / 2);
    source->has_half = reader->next & 1;
    source->half = reader->words.half[(reader->next - 1) | 1];
}

/* State and increment as two words each, and whether half a word is left. */
static void pcg_state(const pcg64_t *source, uint64_t *words) {
    words[0] = (uint64_t)source->pcg->state, words[1] = (uint64_t)(source->pcg->state >> 64);
    words[2] = (uint64_t)source->pcg->increment, words[3] = (uint64_t)(source->pcg->increment >> 64);
    words[4] = (uint64_t)source->has_half;
}

/* Numbers [begin, end) of the next uniform ones, float64 if `wide`, else float32; the source stays as it is. */
static void pcg_uniform(const pcg64_t *source, void *out, int64_t begin, int64_t end, int wide) {
    union { uint64_t whole[PCG_BLOCK / 2]; uint32_t half[PCG_BLOCK]; } words;
    const uint128_t increment = source->pcg->increment;
    const int first = !wide && source->has_half, per_word = wide ? 1 : 2;
    if (first && begin == 0)
        ((float *)out)[begin++] = (float)(int32_t)(source->half >> 8) * 0x1p-24f;
    uint128_t state = pcg_advanced(source->pcg->state, increment, (begin - first) / per_word);
    int64_t next = (begin - first) % per_word;
    while (begin < end) {
        const int64_t left = (end - begin + next + per_word - 1) / per_word;
        const int count = left < PCG_BLOCK / 2 ? (int)(left + 3) & ~3 : PCG_BLOCK / 2;
        const int64_t drawn = begin + count * per_word - next, stop = drawn < end ? drawn : end;
        state = pcg_fill(words.whole, count, state, increment);
        if (wide)
            for (; begin < stop; begin++, next++)
                ((double *)out)[begin] = (double)(int64_t)(words.whole[next] >> 11) * 0x1p-53;
        else
            for (; begin < stop; begin++, next++)
                ((float *)out)[begin] = (float)(int32_t)(words.half[next] >> 8) * 0x1p-24f;
        next = 0;
    }
}

/* Advance the source past n of these numbers. */
static void pcg_skip(pcg64_t *source, int64_t n, int wide) {
    const int64_t halves = n - source->has_half, words = wide ? n : (halves + 1) / 2;
    if (n == 0)
        return;
    source->pcg->state = pcg_advanced(source->pcg->state, source->pcg->increment, words);
    if (wide)
        return;
    source->has_half = halves & 1;
    if (halves)
        source->half = (uint32_t)(pcg_output(source->pcg->state) >> 32);
}

/* Marsaglia and Tsang's ziggurat of 256 layers, for numbers of 23 bits. */
static const double ZIGGURAT_END = 3.6541528853610087963519472518;
static float ziggurat_width[256], ziggurat_height[256];
static uint32_t ziggurat_inner[256];

static void pcg_prepare(void) {
    const double tail = exp(-0.5 * ZIGGURAT_END * ZIGGURAT_END);
    const double area = ZIGGURAT_END * tail + sqrt(M_PI_2) * erfc(ZIGGURAT_END * M_SQRT1_2);
    double x = ZIGGURAT_END, height = tail, wider;
    ziggurat_inner[0] = (uint32_t)round(x * tail / area * 0x1p23);
    ziggurat_width[0] = (float)(area / tail * 0x1p-23);
    ziggurat_height[0] = 1;
    for (int i = 255; i > 0; i--) {
        ziggurat_width[i] = (float)(x * 0x1p-23);
        ziggurat_height[i] = (float)height;
        wider = x;
        height += area / x;
        x = sqrt(-2 * log(height));
        height = exp(-0.5 * x * x);
        ziggurat_inner[i] = i == 1 ? 0 : (uint32_t)round(x / wider * 0x1p23);
    }
}

static inline float pcg_fraction(pcg_reader_t *reader) { return (float)(int32_t)(pcg_next(reader) >> 8) * 0x1p-24f; }

static void pcg_normal(pcg64_t *source, float *out, int64_t n) {
    pcg_reader_t reader;
    pcg_open(&reader, source, n + n / 64);
    for (int64_t i = 0; i < n;) {
        /* What most words give, without a branch on the sign and with the place in the block in a register. */
        int at = reader.next;
        const int end = reader.count - at < n - i ? reader.count : at + (int)(n - i);
        uint32_t word = 0, layer = 0, size = 0;
        float x = 0;
        for (; at < end; at++, i++) {
            word = reader.words.half[at], layer = word & 255, size = word >> 9;
            x = (float)(int32_t)size * ziggurat_width[layer] * (float)(1 - (int)(word >> 7 & 2));
            if (size >= ziggurat_inner[layer])
                break;
            out[i] = x;
        }
        reader.next = at;
        if (at == end) {
            if (i < n)
                pcg_refill(&reader);
            continue;
        }
        reader.next++;
        if (layer) {
            const float below = ziggurat_height[layer], above = ziggurat_height[layer - 1];
            if ((above - below) * pcg_fraction(&reader) + below < exp(-0.5 * x * x))
                out[i++] = x;
        } else {
            float beyond, y;
            do {
                beyond = (float)(-1 / ZIGGURAT_END) * log1pf(-pcg_fraction(&reader));
                y = -log1pf(-pcg_fraction(&reader));
            } while (!(y + y > beyond * beyond));
            out[i++] = size & 256 ? -((float)ZIGGURAT_END + beyond) : (float)ZIGGURAT_END + beyond;
        }
    }
    if (n)
        pcg_close(&reader);
}

/* The integers below n < 2**32 in random order: without a branch on whether a word was too large. */
static void pcg_permutation(pcg64_t *source, int64_t *out, int64_t n) {
    pcg_reader_t reader;
    pcg_open(&reader, source, n + n / 2);
    for (int64_t i = 0; i < n; i++)
        out[i] = i;
    for (int64_t i = n - 1; i > 0;) {
        const uint32_t mask = 0xffffffffu >> __builtin_clz((uint32_t)i);
        for (const int64_t last = mask >> 1; i > last;) {
            const int64_t drawn = pcg_next(&reader) & mask, fits = drawn <= i, other = fits ? drawn : i, value = out[i];
            out[i] = out[other];
            out[other] = value;
            i -= fits;
        }
    }
    if (n > 1)
        pcg_close(&reader);
}
#else
#define HAS_PCG 0
typedef void pcg64_t;
static void pcg_prepare(void) {}
static void pcg_state(const pcg64_t *source, uint64_t *words) {}
static void pcg_uniform(const pcg64_t *source, void *out, int64_t begin, int64_t end, int wide) {}
static void pcg_skip(pcg64_t *source, int64_t n, int wide) {}
static void pcg_normal(pcg64_t *source, float *out, int64_t n) {}
static void pcg_permutation(pcg64_t *source, int64_t *out, int64_t n) {}
#endif
