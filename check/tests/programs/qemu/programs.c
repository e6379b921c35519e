/* Programs that run on QEMU and on the instruction-set simulator: each appends what it computes to `results`, and the end
 * writes that to standard output in one system call, at which the simulator stops. */
#include <stdint.h>

enum { CAPACITY = 4096 };
uint32_t results[CAPACITY];
uint32_t count;

static void result(uint32_t value) { results[count++ % CAPACITY] = value; }

static uint32_t state = 1;
static uint32_t random32(void) {
  state ^= state << 13;
  state ^= state >> 17;
  state ^= state << 5;
  return state;
}

/* What the compiler may call; volatile so that it does not make calls of these themselves out of them. */
void *memcpy(void *to, const void *from, __SIZE_TYPE__ n) {
  volatile char *t = to;
  for (const char *f = from; n--;) *t++ = *f++;
  return to;
}
void *memset(void *to, int value, __SIZE_TYPE__ n) {
  for (volatile char *t = to; n--;) *t++ = value;
  return to;
}

/* Signed compares, swaps, recursion with two calls. */
static void quick_sort(int32_t *a, int low, int high) {
  if (low >= high) return;
  int32_t pivot = a[(low + high) / 2];
  int i = low, j = high;
  while (i <= j) {
    while (a[i] < pivot) i++;
    while (a[j] > pivot) j--;
    if (i <= j) {
      int32_t t = a[i];
      a[i++] = a[j];
      a[j--] = t;
    }
  }
  quick_sort(a, low, j);
  quick_sort(a, i, high);
}
static void sorting(void) {
  static int32_t a[300];
  for (int i = 0; i < 300; i++) a[i] = (int32_t)random32() >> (i % 32);
  quick_sort(a, 0, 299);
  for (int i = 0; i < 300; i++) result(a[i]);
}

/* Deep and mutual recursion. */
__attribute__((noinline)) static uint32_t ackermann(uint32_t m, uint32_t n) {
  return m == 0 ? n + 1 : ackermann(m - 1, n == 0 ? 1 : ackermann(m, n - 1));
}
__attribute__((noinline)) static int odd(uint32_t n);
__attribute__((noinline)) static int even(uint32_t n) { return n == 0 || odd(n - 1); }
__attribute__((noinline)) static int odd(uint32_t n) { return n != 0 && even(n - 1); }
static uint32_t moves;
static void hanoi(int n, int from, int to) {
  if (n == 0) return;
  hanoi(n - 1, from, 6 - from - to);
  moves = moves * 31 + from * 4 + to;
  hanoi(n - 1, 6 - from - to, to);
}
static void recursion(void) {
  for (uint32_t n = 0; n < 6; n++) result(ackermann(2, n));
  result(even(77) * 2 + odd(77));
  hanoi(8, 1, 3);
  result(moves);
}

static void matrices(void) {
  static int16_t a[12][12], b[12][12];
  for (int i = 0; i < 144; i++) a[i / 12][i % 12] = random32(), b[i % 12][i / 12] = random32();
  for (int i = 0; i < 12; i++)
    for (int j = 0; j < 12; j++) {
      int64_t sum = 0;
      for (int k = 0; k < 12; k++) sum += (int64_t)a[i][k] * b[k][j] * 70000;
      result(sum), result(sum >> 32);
    }
}

/* Bytes: lengths, compares, reversal, search, numbers as text. */
static unsigned length(const char *s) {
  unsigned n = 0;
  while (s[n]) n++;
  return n;
}
static int compare(const char *s, const char *t) {
  while (*s && *s == *t) s++, t++;
  return (unsigned char)*s - (unsigned char)*t;
}
static int find(const char *text, const char *word) {
  for (int at = 0; text[at]; at++) {
    int k = 0;
    while (word[k] && text[at + k] == word[k]) k++;
    if (!word[k]) return at;
  }
  return -1;
}
static char *decimal(int32_t value, char *end) {
  uint32_t left = value < 0 ? -(uint32_t)value : (uint32_t)value;
  *--end = 0;
  do *--end = '0' + left % 10;
  while (left /= 10);
  if (value < 0) *--end = '-';
  return end;
}
static void strings(void) {
  static const char *const words[] = {"warp", "weft", "heddle", "shed", "heddl", "\xff\x80", ""};
  for (int i = 0; i < 7; i++)
    for (int j = 0; j < 7; j++) result(compare(words[i], words[j])), result(find(words[i], words[j]));
  for (int i = 0; i < 32; i++) {
    char buffer[16], *s = decimal((int32_t)(0x80000000u + (i & 1) - (i >> 1)) >> i, buffer + sizeof buffer);
    uint32_t hash = length(s);
    while (*s) hash = hash * 33 ^ (signed char)*s++;
    result(hash);
  }
}

/* Division of all kinds; 64 bits are libgcc's. */
static uint32_t gcd(uint32_t a, uint32_t b) {
  while (b) {
    uint32_t t = a % b;
    a = b, b = t;
  }
  return a;
}
static void division(void) {
  for (int i = 0; i < 40; i++) {
    uint32_t a = random32() >> (i % 29), b = random32() >> (31 - i % 31);
    int64_t wide = (int64_t)((uint64_t)a << 32 | b) >> (i % 40);
    result(gcd(a, b | 1));
    result((int32_t)a / ((int32_t)b | 1)), result((int32_t)a % -(int32_t)(b | 1));
    result(a / 7), result((int32_t)a / -10), result(a % 1000), result((int32_t)~a % 641);
    result(wide / ((int32_t)b | 1)), result(wide % ((int32_t)a | 1)), result((uint64_t)wide / (b | 1) >> 32);
  }
  volatile uint32_t zero = 0, least = 0x80000000, minus = -1;
  uint32_t q, r;
  __asm__("div %0, %2, %3\n rem %1, %2, %3" : "=&r"(q), "=&r"(r) : "r"(least), "r"(zero));
  result(q), result(r);
  __asm__("div %0, %2, %3\n rem %1, %2, %3" : "=&r"(q), "=&r"(r) : "r"(least), "r"(minus));
  result(q), result(r);
}

/* A jump table: a machine with a stack. */
static int32_t interpret(const uint8_t *code) {
  int32_t stack[16], *top = stack;
  for (;;) switch (*code++) {
      case 0: return top[-1];
      case 1: *top++ = (int8_t)*code++; break;
      case 2: top--, top[-1] += top[0]; break;
      case 3: top--, top[-1] -= top[0]; break;
      case 4: top--, top[-1] *= top[0]; break;
      case 5: top--, top[-1] = top[-1] < top[0]; break;
      case 6: *top = top[-1], top++; break;
      case 7: { int32_t t = top[-1]; top[-1] = top[-2], top[-2] = t; } break;
      case 8: top--, code += top[0] ? (int8_t)*code : 1; break;
      case 9: top--, top[-1] ^= top[0]; break;
      case 10: top[-1] = top[-1] << (*code & 31) | (uint32_t)top[-1] >> (-*code & 31), code++; break;
      default: return -1;
    }
}
static void switches(void) {
  /* A hash of the numbers from n down to 1. */
  uint8_t code[] = {1, 0, 1, 90, /* loop: */ 7, 10, 5, 1, 77, 4, 7, 6, 1, 3, 4, 7, 1, 1, 3, 7, 2, 7, /* */ 1, 0, 9, 7, 0};
  result(interpret(code));
  for (int n = 0; n < 60; n++) {
    uint8_t sum[] = {1, n, 6, 1, 13, 4, 9, 10, n, 1, -n, 3, 6, 1, 40, 5, 8, 3, 1, 9, 4, 0};
    result(interpret(sum));
  }
}

/* Calls through pointers. */
static uint32_t rotate(uint32_t a, uint32_t b) { return a << (b & 31) | a >> (-b & 31); }
static uint32_t high(uint32_t a, uint32_t b) { return (uint64_t)a * b >> 32; }
static uint32_t high_signed(uint32_t a, uint32_t b) { return (int64_t)(int32_t)a * (int32_t)b >> 32; }
static uint32_t least(uint32_t a, uint32_t b) { return (int32_t)a < (int32_t)b ? a : b; }
static void pointers(void) {
  uint32_t (*volatile const functions[])(uint32_t, uint32_t) = {rotate, high, high_signed, least, gcd};
  uint32_t a = 0x12345678;
  for (int i = 0; i < 200; i++) result(a = functions[random32() % 5](a, random32()) + i);
}

/* Checksums: shifts, masks, halfwords. */
static void checksums(void) {
  uint32_t crc = ~0u, adler = 1;
  uint16_t fletcher[2] = {0, 0};
  for (int i = 0; i < 500; i++) {
    uint8_t byte = random32() >> 7;
    crc ^= byte;
    for (int k = 0; k < 8; k++) crc = crc >> 1 ^ (0xedb88320 & -(crc & 1));
    adler = ((adler >> 16) + (adler & 0xffff) + byte) % 65521 << 16 | ((adler & 0xffff) + byte) % 65521;
    fletcher[0] += byte, fletcher[1] += fletcher[0];
  }
  result(crc), result(adler), result(fletcher[0] << 16 | fletcher[1]);
}

/* What the compiler makes of atomic operations without a loop: their old values and their new ones. */
static void atomics(void) {
  uint32_t word = 0x80000001;
  for (int i = 0; i < 100; i++) {
    uint32_t x = random32() >> (i % 32);
    result(__atomic_fetch_add(&word, x, __ATOMIC_RELAXED)), result(__atomic_fetch_xor(&word, x, __ATOMIC_ACQUIRE));
    result(__atomic_fetch_or(&word, x >> 3, __ATOMIC_RELEASE)), result(__atomic_fetch_and(&word, ~x, __ATOMIC_ACQ_REL));
    result(__atomic_sub_fetch(&word, 3 * x, __ATOMIC_SEQ_CST));
    if (i % 8 == 0) result(__atomic_exchange_n(&word, x, __ATOMIC_RELAXED));
  }
  result(word);
}

__attribute__((noreturn, used)) void run(void) {
  sorting(), recursion(), matrices(), strings(), division(), switches(), pointers(), checksums(), atomics();
  register uint32_t a0 __asm__("a0") = 1, a1 __asm__("a1") = (uint32_t)results, a2 __asm__("a2") = 4 * count;
  register uint32_t a7 __asm__("a7") = 64;
  __asm__ volatile("ecall\n li a0, 0\n li a7, 93\n ecall" : "+r"(a0), "+r"(a7) : "r"(a1), "r"(a2) : "memory");
  __builtin_unreachable();
}

static uint32_t stack[4096] __attribute__((used, aligned(16)));
__asm__(".globl _start\n_start:\n .option push\n .option norelax\n la gp, __global_pointer$\n .option pop\n"
        " la sp, stack + 16384\n call run");
