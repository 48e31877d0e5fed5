/* EXPORTED: a C++ function or constant that Cython modules, which are C, declare, too. */
#pragma once

#ifdef __cplusplus
#define EXPORTED extern "C"
#else
#define EXPORTED extern
#endif
