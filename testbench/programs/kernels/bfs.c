/* Breadth-first search of a graph, a thread a node, two launches a level, as in the BFS of Rodinia (BFS2): nodes of the frontier mark
 * their neighbours, then the marked nodes become the frontier.
 *
 * Threads diverge as in the paper's BFS (Figure 8): a node of the frontier or not, a neighbour seen before or not, and how many
 * neighbours. No branch has an else, so one of its two paths is empty: none is interleavable. */
#include "heddle.h"

enum { MOST_NODES = HEDDLE_SIZE(4096, 512), MOST_EDGES = 8 * MOST_NODES };
enum { EXPAND, ADVANCE };

HEDDLE_ARG(uint32_t, phase, EXPAND);
HEDDLE_ARG(uint32_t, nodes, 0);
/* Set by a launch that finds a new node. */
HEDDLE_BUFFER(uint32_t, found, 1);
/* Neighbours of node n are target[first[n]] to target[first[n + 1] - 1]. */
HEDDLE_BUFFER(uint32_t, first, MOST_NODES + 1);
HEDDLE_BUFFER(uint32_t, target, MOST_EDGES);
HEDDLE_BUFFER(uint8_t, frontier, MOST_NODES);
HEDDLE_BUFFER(uint8_t, marked, MOST_NODES);
HEDDLE_BUFFER(uint8_t, visited, MOST_NODES);
/* Edges between a node and the source. */
HEDDLE_BUFFER(uint32_t, distance, MOST_NODES);

static void expand(uint32_t node) {
  if (frontier[node]) {
    frontier[node] = 0;
    uint32_t next = distance[node] + 1, end = first[node + 1];
    for (uint32_t edge = first[node]; edge < end; edge++) {
      uint32_t neighbour = target[edge];
      if (!visited[neighbour]) {
        distance[neighbour] = next;
        marked[neighbour] = 1;
      }
      heddle_converge();
    }
  }
}

static void advance(uint32_t node) {
  if (marked[node]) {
    frontier[node] = 1;
    visited[node] = 1;
    found[0] = 1;
    marked[node] = 0;
  }
}

int main(void) {
  uint32_t node = heddle_block() * heddle_block_threads() + heddle_block_thread();
  if (node < nodes) {
    if (phase == EXPAND) expand(node);
    else advance(node);
  }
  return 0;
}
