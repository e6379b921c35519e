/* Transfers between accounts, each with a lock of its own: both are taken, the lower one first. */
#include "heddle.h"

enum { TURNS = 4, ACCOUNTS = 16 };

HEDDLE_BUFFER(uint32_t, locks, ACCOUNTS);
HEDDLE_BUFFER(uint32_t, balances, ACCOUNTS);

static void take(uint32_t account) {
  while (__atomic_exchange_n(locks + account, 1, __ATOMIC_ACQUIRE)) {
  }
}

static void give(uint32_t account) { __atomic_store_n(locks + account, 0, __ATOMIC_RELEASE); }

int main(void) {
  uint32_t thread = heddle_thread();
  volatile uint32_t *all = balances;
  for (uint32_t turn = 0; turn < TURNS; turn++) {
    uint32_t from = (5 * thread + 3 * turn) % ACCOUNTS, to = (7 * thread + 11 * turn + 1) % ACCOUNTS, amount = thread % 9 + 1;
    if (from == to) continue;
    uint32_t first = from < to ? from : to;
    take(first);
    take(from + to - first);
    all[from] = all[from] - amount;
    all[to] = all[to] + amount;
    give(from + to - first);
    give(first);
  }
  return 0;
}
