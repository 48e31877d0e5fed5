/* SHUFFLE(first, second, positions): a vector of the elements at constant positions of two vectors, counted through
 * both. */
#ifndef CYGRAD_SHUFFLE_H
#define CYGRAD_SHUFFLE_H

#if defined(__has_builtin)
#if __has_builtin(__builtin_shufflevector)
#define SHUFFLE __builtin_shufflevector
#endif
#endif

/* GCC before 12 needs the positions as a vector of integers of the elements' width, as comparisons are. */
#if !defined(SHUFFLE) && defined(__GNUC__)
#define SHUFFLE(first, second, ...) \
    __builtin_shuffle(first, second, (__typeof__((first) == (second))){__VA_ARGS__})
#endif

#endif
