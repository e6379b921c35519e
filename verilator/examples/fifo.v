// A queue of 2 ** BITS words. It is full or empty where both pointers name one word.
module fifo #(parameter WIDTH = 8, parameter BITS = 2) (
    input clk,
    input rst,
    input push,
    input [WIDTH-1:0] in,
    input pop,
    output [WIDTH-1:0] out,
    output empty,
    output full
);
  reg [WIDTH-1:0] words[0:(1 << BITS) - 1];
  reg [BITS:0] first, free;
  assign empty = first == free;
  assign full = first[BITS-1:0] == free[BITS-1:0] && first[BITS] != free[BITS];
  assign out = words[first[BITS-1:0]];
  always @(posedge clk) begin
    if (push && !full) words[free[BITS-1:0]] <= in;
    first <= rst ? 0 : first + {{BITS{1'b0}}, pop && !empty};
    free <= rst ? 0 : free + {{BITS{1'b0}}, push && !full};
  end
endmodule
