/* Thread coarsening: each thread takes several pieces of work, one after another, those whose numbers are its own plus a multiple of
 * the threads of the grid. */
#ifndef COARSE_H
#define COARSE_H

#include "heddle.h"

/* Number of this thread in the grid, and the threads of the grid. */
static inline uint32_t worker(void) { return heddle_block() * heddle_block_threads() + heddle_block_thread(); }
static inline uint32_t workers(void) { return heddle_blocks() * heddle_block_threads(); }

#endif
