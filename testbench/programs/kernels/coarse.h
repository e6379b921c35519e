/* Thread coarsening: each thread takes several pieces of work, one after another, those whose numbers are its own plus a multiple of
 * the threads of the grid. */
#ifndef COARSE_H
#define COARSE_H

#include "heddle.h"

/* Directives for the compiler: where a region begins, and where in it the threads that are in the region should reconverge; or the
 * function at whose start they should. They cost no instruction. */
#ifndef HEDDLE_PREDICT
#define HEDDLE_PREDICT(name)
#define HEDDLE_RECONVERGE(name)
#define HEDDLE_PREDICT_FUNCTION(function)
#endif

/* Number of this thread in the grid, and the threads of the grid. */
static inline uint32_t worker(void) { return heddle_block() * heddle_block_threads() + heddle_block_thread(); }
static inline uint32_t workers(void) { return heddle_blocks() * heddle_block_threads(); }

#endif
