/* CSR addresses. Generated from hdl/simt/src/csr.rs by `cargo run -p heddle-testbench --example csr_text`. */
#ifndef HEDDLE_CSR_H
#define HEDDLE_CSR_H

#define HEDDLE_CSR_MCYCLE 0xb00 /* clock cycles since the launch, bits 31..0 */
#define HEDDLE_CSR_MINSTRET 0xb02 /* thread instructions committed since the launch, one for each lane a warp instruction serves, bits 31..0 */
#define HEDDLE_CSR_MCYCLEH 0xb80 /* clock cycles since the launch, bits 63..32 */
#define HEDDLE_CSR_MINSTRETH 0xb82 /* thread instructions committed since the launch, bits 63..32 */
#define HEDDLE_CSR_CYCLE 0xc00 /* same as mcycle */
#define HEDDLE_CSR_INSTRET 0xc02 /* same as minstret */
#define HEDDLE_CSR_CYCLEH 0xc80 /* same as mcycleh */
#define HEDDLE_CSR_INSTRETH 0xc82 /* same as minstreth */
#define HEDDLE_CSR_MHARTID 0xf14 /* number of the hardware thread: warp slot * lanes + lane */
#define HEDDLE_CSR_LANES 0xfc0 /* lanes of a warp */
#define HEDDLE_CSR_WARPS 0xfc1 /* warps of the core */
#define HEDDLE_CSR_WARP 0xfc2 /* number of this thread's warp slot */
#define HEDDLE_CSR_LANE 0xfc3 /* lane of this thread */
#define HEDDLE_CSR_BLOCK 0xfc4 /* number of this thread's block in the grid */
#define HEDDLE_CSR_THREAD 0xfc5 /* number of this thread in its block: warp in the block * lanes + lane */
#define HEDDLE_CSR_THREADS 0xfc6 /* threads of the core: lanes * warps */
#define HEDDLE_CSR_MEMORY 0xfc7 /* bytes of memory */
#define HEDDLE_CSR_LOG2STACK 0xfc8 /* base-2 logarithm of the stack bytes of a thread */
#define HEDDLE_CSR_BLOCKS 0xfc9 /* blocks of the grid */
#define HEDDLE_CSR_BLOCKTHREADS 0xfca /* threads of a block */

#endif
