/* Every warp primitive of heddle.h; the threads of a warp come to each one after another. Bit k of a thread's word: what k is about is right. */
#include "heddle.h"

HEDDLE_BUFFER(uint32_t, right, 4096);

static const uint32_t ODD = 0xaaaaaaaa;

/* Later on higher lanes. */
static void later(void) {
  for (volatile uint32_t turns = 3 * heddle_lane(); turns > 0; turns--) {
  }
}

int main(void) {
  uint32_t lane = heddle_lane(), lanes = heddle_lanes(), last = lanes - 1, ok = 0;
  uint64_t all = heddle_first_lanes(lanes);
  uint32_t value = 100 + lane;
  later();
  ok |= (heddle_ballot_sync(0, all, lane & 1 ? UINT64_C(1) << 32 : 1) == (uint32_t)all) << 0;
  later();
  ok |= (heddle_ballot_sync(0, all, lane & 1) == (ODD & (uint32_t)all)) << 1;
  later();
  ok |= (heddle_ballot_upper_sync(1, all, lane & 1) == (ODD & (uint32_t)(all >> 32))) << 2;
  later();
  ok |= (heddle_shuffle_sync(1, all, value, 0) == 100) << 3;
  later();
  ok |= (heddle_shuffle_xor_sync(0, all, value, 1) == (lanes > 1 ? 100 + (lane ^ 1) : value)) << 4;
  later();
  ok |= (heddle_shuffle_up_sync(0, all, value, 1) == (lane > 0 ? value - 1 : value)) << 5;
  later();
  ok |= (heddle_shuffle_down_sync(0, all, value, 1) == (lane < last ? value + 1 : value)) << 6;
  later();
  uint64_t names[2] = {all, 0}, *next = names;
  HEDDLE_SYNC(1, *next++);
  uint32_t ballot = heddle_ballot(lane & 1), upper = heddle_ballot_upper(lane & 1), any = heddle_any(lane == last),
           every = heddle_all(lane != last), first = heddle_shuffle(value, 0), other = heddle_shuffle_xor(value, 1),
           left = heddle_shuffle_up(value, 1), right_one = heddle_shuffle_down(value, 1);
  ok |= (next == names + 1 && any == 1 && every == 0 && first == 100) << 7;
  ok |= (ballot == (ODD & (uint32_t)all) && upper == (ODD & (uint32_t)(all >> 32))) << 8;
  ok |= (other == (lanes > 1 ? 100 + (lane ^ 1) : value) && left == (lane > 0 ? value - 1 : value)) << 9;
  ok |= (right_one == (lane < last ? value + 1 : value)) << 10;
  ok |= (heddle_first_lanes(0) == 0 && heddle_first_lanes(64) == ~UINT64_C(0) && heddle_first_lanes(70) == ~UINT64_C(0)) << 11;
  right[heddle_thread()] = ok;
  return 0;
}
