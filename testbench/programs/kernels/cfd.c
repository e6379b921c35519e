/* A step of a gas that flows around a body, in two dimensions (Euler's equations, in fixed point) on an unstructured mesh of triangles,
 * a thread an element: one launch derives velocity and pressure, another adds what flows through the three sides (Rusanov's flux).
 * Coherent, as the paper's CFD: only sides of the body go another way. What is far away is an element, too. */
#include "heddle.h"

enum { MOST_ELEMENTS = HEDDLE_SIZE(2040, 192), MOST_STATES = MOST_ELEMENTS + 1, SIDES = 3, WALL = -1, FRACTION_BITS = 12, ONE = 1 << FRACTION_BITS };
enum { DERIVE, FLOW };
/* Two fifths; and the speed of the fastest wave. */
enum { PRESSURE = 1638, FASTEST = 2 * ONE };

HEDDLE_ARG(uint32_t, phase, DERIVE);
HEDDLE_ARG(uint32_t, elements, 0);
/* The element beyond side 0 of each element, then beyond side 1; the last state is that of what is far away. */
HEDDLE_BUFFER(int32_t, neighbours, SIDES * MOST_ELEMENTS);
/* Outwards, as long as the side; and how long that is. In units of 2^-FRACTION_BITS, as all numbers. */
HEDDLE_BUFFER(int32_t, normals_x, SIDES * MOST_ELEMENTS);
HEDDLE_BUFFER(int32_t, normals_y, SIDES * MOST_ELEMENTS);
HEDDLE_BUFFER(int32_t, lengths, SIDES * MOST_ELEMENTS);
/* The duration of the step, over the element's area. */
HEDDLE_BUFFER(int32_t, durations, MOST_ELEMENTS);
/* Of each unit of area. */
HEDDLE_BUFFER(int32_t, density, MOST_STATES);
HEDDLE_BUFFER(int32_t, momentum_x, MOST_STATES);
HEDDLE_BUFFER(int32_t, momentum_y, MOST_STATES);
HEDDLE_BUFFER(int32_t, energy, MOST_STATES);
HEDDLE_BUFFER(int32_t, velocity_x, MOST_STATES);
HEDDLE_BUFFER(int32_t, velocity_y, MOST_STATES);
HEDDLE_BUFFER(int32_t, pressure, MOST_STATES);
/* After the step: densities, momenta, energies. */
HEDDLE_BUFFER(int32_t, after, 4 * MOST_ELEMENTS);

static int32_t times(int32_t a, int32_t b) { return (a * b) >> FRACTION_BITS; }

static void derive(uint32_t i) {
  int32_t inverse = (ONE << FRACTION_BITS) / density[i];
  int32_t x = times(momentum_x[i], inverse), y = times(momentum_y[i], inverse);
  int32_t motion = (times(momentum_x[i], x) + times(momentum_y[i], y)) >> 1;
  velocity_x[i] = x;
  velocity_y[i] = y;
  pressure[i] = times(PRESSURE, energy[i] - motion);
}

/* What is carried with the speeds of both elements, less what the jump between them evens out. */
static int32_t carried(int32_t here, int32_t speed_here, int32_t there, int32_t speed_there, int32_t wave) {
  return times(here, speed_here) + times(there, speed_there) - times(wave, there - here);
}

static void flow(uint32_t i) {
  int32_t d = density[i], m_x = momentum_x[i], m_y = momentum_y[i], e = energy[i];
  int32_t v_x = velocity_x[i], v_y = velocity_y[i], p = pressure[i];
  /* Twice what leaves. */
  int32_t out_d = 0, out_x = 0, out_y = 0, out_e = 0;
  for (uint32_t side = i; side < SIDES * MOST_ELEMENTS; side += MOST_ELEMENTS) {
    int32_t n = neighbours[side], n_x = normals_x[side], n_y = normals_y[side];
    int32_t push = 2 * p;
    if (n != WALL) {
      int32_t here = times(v_x, n_x) + times(v_y, n_y), there = times(velocity_x[n], n_x) + times(velocity_y[n], n_y);
      int32_t wave = times(FASTEST, lengths[side]);
      out_d += carried(d, here, density[n], there, wave);
      out_x += carried(m_x, here, momentum_x[n], there, wave);
      out_y += carried(m_y, here, momentum_y[n], there, wave);
      out_e += carried(e, here, energy[n], there, wave) + times(p, here) + times(pressure[n], there);
      push = p + pressure[n];
    }
    heddle_converge();
    out_x += times(push, n_x);
    out_y += times(push, n_y);
  }
  int32_t duration = durations[i];
  after[i] = d - (times(out_d, duration) >> 1);
  after[MOST_ELEMENTS + i] = m_x - (times(out_x, duration) >> 1);
  after[2 * MOST_ELEMENTS + i] = m_y - (times(out_y, duration) >> 1);
  after[3 * MOST_ELEMENTS + i] = e - (times(out_e, duration) >> 1);
}

int main(void) {
  uint32_t i = heddle_block() * heddle_block_threads() + heddle_block_thread();
  if (phase == DERIVE) {
    if (i <= elements) derive(i);
  } else {
    if (i < elements) flow(i);
  }
  heddle_converge();
  return 0;
}
