/* THREAD_VARIABLE: a static thread-local variable, addressed like a local one. glibc reserves little static TLS for
 * libraries that are loaded late, so use it for a few bytes that every operation needs; elsewhere an address costs a
 * call. */
#ifndef CYGRAD_THREAD_VARIABLE_H
#define CYGRAD_THREAD_VARIABLE_H

#if defined(__GLIBC__) && defined(__ELF__)
#define THREAD_VARIABLE static __thread __attribute__((tls_model("initial-exec")))
#else
#define THREAD_VARIABLE static __thread
#endif

#endif
