/* Memory from the operating system: the one place for mappings, huge pages and aligned blocks.
 *
 * Systems without mmap get aligned blocks of the C library instead of mappings; systems without huge pages, ordinary
 * pages. */
#ifndef CYGRAD_SYSTEM_MEMORY_H
#define CYGRAD_SYSTEM_MEMORY_H

#include <stddef.h>
#include <stdlib.h>

#define HUGE_PAGE ((size_t)2 << 20)
#if defined(__x86_64__) || defined(__i386__)
#define LARGEST_PAGE ((size_t)4096)
#else
#define LARGEST_PAGE ((size_t)65536)        /* of the ordinary pages that a system may be configured with */
#endif

/* A block at a multiple of 64 bytes, for free(). */
static inline void *take_aligned(size_t nbytes) {
    void *block = NULL;
    return posix_memalign(&block, 64, nbytes ? nbytes : 1) ? NULL : block;
}

#if defined(__unix__) || defined(__APPLE__)
#include <sys/mman.h>
#ifndef MAP_ANONYMOUS
#define MAP_ANONYMOUS MAP_ANON
#endif

/* Zeroed memory, whole pages, at a multiple of a power of two if `alignment` is larger than a page. */
static void *map_memory(size_t nbytes, size_t alignment) {
    const size_t extra = alignment > LARGEST_PAGE ? alignment : 0;
    char *raw = (char *)mmap(NULL, nbytes + extra, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (raw == (char *)MAP_FAILED)
        return NULL;
    if (extra) {            /* cut off what lies outside of the aligned part */
        const size_t before = (alignment - ((size_t)raw & (alignment - 1))) & (alignment - 1);
        if (before) munmap(raw, before);
        raw += before;
        if (extra > before) munmap(raw + nbytes, extra - before);
    }
#ifdef MADV_HUGEPAGE
    if (alignment >= HUGE_PAGE) madvise(raw, nbytes / HUGE_PAGE * HUGE_PAGE, MADV_HUGEPAGE);
#endif
    return raw;
}
static void unmap_memory(void *memory, size_t nbytes) { munmap(memory, nbytes); }
#else
#include <string.h>

static void *map_memory(size_t nbytes, size_t alignment) {
    void *memory = NULL;
    if (posix_memalign(&memory, alignment > LARGEST_PAGE ? alignment : LARGEST_PAGE, nbytes))
        return NULL;
    return memset(memory, 0, nbytes);
}
static void unmap_memory(void *memory, size_t nbytes) {
    (void)nbytes;
    free(memory);
}
#endif

#endif
