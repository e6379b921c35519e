// Block RAM and multiplier of the ECP5, for simulating a netlist: in Yosys' models they are black boxes. All other cells are
// Yosys' own. Only what Yosys' mapping emits is here; a parameter or a port that is used otherwise is an error.
//
// From Lattice's FPGA-TN-02204 (memories) and FPGA-TN-02205 (multipliers), and share/lattice/brams_map_16kd.v of Yosys.

// 16 Kbit with two ports. As a line of 36 bits, which is four bytes of nine: a port of 1, 2 or 4 bits uses eight bits of each byte. A width of
// 36 takes the data pins of both ports, and is for writing at port A and for reading at port B. What one port reads of what the other
// writes in the same cycle is not specified: here it is the complement of what was there, which no design can take for right.
module DP16KD (
  input  DIA17, DIA16, DIA15, DIA14, DIA13, DIA12, DIA11, DIA10, DIA9, DIA8, DIA7, DIA6, DIA5, DIA4, DIA3, DIA2, DIA1, DIA0,
  input  ADA13, ADA12, ADA11, ADA10, ADA9, ADA8, ADA7, ADA6, ADA5, ADA4, ADA3, ADA2, ADA1, ADA0,
  input  CEA, OCEA, CLKA, WEA, RSTA, CSA2, CSA1, CSA0,
  output DOA17, DOA16, DOA15, DOA14, DOA13, DOA12, DOA11, DOA10, DOA9, DOA8, DOA7, DOA6, DOA5, DOA4, DOA3, DOA2, DOA1, DOA0,
  input  DIB17, DIB16, DIB15, DIB14, DIB13, DIB12, DIB11, DIB10, DIB9, DIB8, DIB7, DIB6, DIB5, DIB4, DIB3, DIB2, DIB1, DIB0,
  input  ADB13, ADB12, ADB11, ADB10, ADB9, ADB8, ADB7, ADB6, ADB5, ADB4, ADB3, ADB2, ADB1, ADB0,
  input  CEB, OCEB, CLKB, WEB, RSTB, CSB2, CSB1, CSB0,
  output DOB17, DOB16, DOB15, DOB14, DOB13, DOB12, DOB11, DOB10, DOB9, DOB8, DOB7, DOB6, DOB5, DOB4, DOB3, DOB2, DOB1, DOB0
);
  parameter DATA_WIDTH_A = 18;
  parameter DATA_WIDTH_B = 18;
  parameter REGMODE_A = "NOREG";
  parameter REGMODE_B = "NOREG";
  parameter RESETMODE = "SYNC";
  parameter ASYNC_RESET_RELEASE = "SYNC";
  parameter CSDECODE_A = "0b000";
  parameter CSDECODE_B = "0b000";
  parameter WRITEMODE_A = "NORMAL";
  parameter WRITEMODE_B = "NORMAL";
  parameter CLKAMUX = "CLKA";
  parameter CLKBMUX = "CLKB";
  parameter GSR = "DISABLED";
  parameter [319:0] INITVAL_00 = 320'd0;
  parameter [319:0] INITVAL_01 = 320'd0;
  parameter [319:0] INITVAL_02 = 320'd0;
  parameter [319:0] INITVAL_03 = 320'd0;
  parameter [319:0] INITVAL_04 = 320'd0;
  parameter [319:0] INITVAL_05 = 320'd0;
  parameter [319:0] INITVAL_06 = 320'd0;
  parameter [319:0] INITVAL_07 = 320'd0;
  parameter [319:0] INITVAL_08 = 320'd0;
  parameter [319:0] INITVAL_09 = 320'd0;
  parameter [319:0] INITVAL_0A = 320'd0;
  parameter [319:0] INITVAL_0B = 320'd0;
  parameter [319:0] INITVAL_0C = 320'd0;
  parameter [319:0] INITVAL_0D = 320'd0;
  parameter [319:0] INITVAL_0E = 320'd0;
  parameter [319:0] INITVAL_0F = 320'd0;
  parameter [319:0] INITVAL_10 = 320'd0;
  parameter [319:0] INITVAL_11 = 320'd0;
  parameter [319:0] INITVAL_12 = 320'd0;
  parameter [319:0] INITVAL_13 = 320'd0;
  parameter [319:0] INITVAL_14 = 320'd0;
  parameter [319:0] INITVAL_15 = 320'd0;
  parameter [319:0] INITVAL_16 = 320'd0;
  parameter [319:0] INITVAL_17 = 320'd0;
  parameter [319:0] INITVAL_18 = 320'd0;
  parameter [319:0] INITVAL_19 = 320'd0;
  parameter [319:0] INITVAL_1A = 320'd0;
  parameter [319:0] INITVAL_1B = 320'd0;
  parameter [319:0] INITVAL_1C = 320'd0;
  parameter [319:0] INITVAL_1D = 320'd0;
  parameter [319:0] INITVAL_1E = 320'd0;
  parameter [319:0] INITVAL_1F = 320'd0;
  parameter [319:0] INITVAL_20 = 320'd0;
  parameter [319:0] INITVAL_21 = 320'd0;
  parameter [319:0] INITVAL_22 = 320'd0;
  parameter [319:0] INITVAL_23 = 320'd0;
  parameter [319:0] INITVAL_24 = 320'd0;
  parameter [319:0] INITVAL_25 = 320'd0;
  parameter [319:0] INITVAL_26 = 320'd0;
  parameter [319:0] INITVAL_27 = 320'd0;
  parameter [319:0] INITVAL_28 = 320'd0;
  parameter [319:0] INITVAL_29 = 320'd0;
  parameter [319:0] INITVAL_2A = 320'd0;
  parameter [319:0] INITVAL_2B = 320'd0;
  parameter [319:0] INITVAL_2C = 320'd0;
  parameter [319:0] INITVAL_2D = 320'd0;
  parameter [319:0] INITVAL_2E = 320'd0;
  parameter [319:0] INITVAL_2F = 320'd0;
  parameter [319:0] INITVAL_30 = 320'd0;
  parameter [319:0] INITVAL_31 = 320'd0;
  parameter [319:0] INITVAL_32 = 320'd0;
  parameter [319:0] INITVAL_33 = 320'd0;
  parameter [319:0] INITVAL_34 = 320'd0;
  parameter [319:0] INITVAL_35 = 320'd0;
  parameter [319:0] INITVAL_36 = 320'd0;
  parameter [319:0] INITVAL_37 = 320'd0;
  parameter [319:0] INITVAL_38 = 320'd0;
  parameter [319:0] INITVAL_39 = 320'd0;
  parameter [319:0] INITVAL_3A = 320'd0;
  parameter [319:0] INITVAL_3B = 320'd0;
  parameter [319:0] INITVAL_3C = 320'd0;
  parameter [319:0] INITVAL_3D = 320'd0;
  parameter [319:0] INITVAL_3E = 320'd0;
  parameter [319:0] INITVAL_3F = 320'd0;

  localparam IS_WIDTH_A = DATA_WIDTH_A == 1 || DATA_WIDTH_A == 2 || DATA_WIDTH_A == 4 || DATA_WIDTH_A == 9 || DATA_WIDTH_A == 18
    || DATA_WIDTH_A == 36;
  localparam IS_WIDTH_B = DATA_WIDTH_B == 1 || DATA_WIDTH_B == 2 || DATA_WIDTH_B == 4 || DATA_WIDTH_B == 9 || DATA_WIDTH_B == 18
    || DATA_WIDTH_B == 36;
  localparam IS_MODE_A = WRITEMODE_A == "NORMAL" || WRITEMODE_A == "WRITETHROUGH" || WRITEMODE_A == "READBEFOREWRITE";
  localparam IS_MODE_B = WRITEMODE_B == "NORMAL" || WRITEMODE_B == "WRITETHROUGH" || WRITEMODE_B == "READBEFOREWRITE";
  generate
    if (!IS_WIDTH_A || !IS_WIDTH_B) $error("DP16KD: no model of widths %0d and %0d", DATA_WIDTH_A, DATA_WIDTH_B);
    if (!IS_MODE_A || !IS_MODE_B) $error("DP16KD: no model of WRITEMODE %s and %s", WRITEMODE_A, WRITEMODE_B);
    if (REGMODE_A != "NOREG" || REGMODE_B != "NOREG") $error("DP16KD: no model of output registers");
    if (RESETMODE != "SYNC" && RESETMODE != "ASYNC") $error("DP16KD: no model of RESETMODE %s", RESETMODE);
    if (CSDECODE_A != "0b000" || CSDECODE_B != "0b000") $error("DP16KD: no model of chip selects");
    if (CLKAMUX != "CLKA" || CLKBMUX != "CLKB") $error("DP16KD: no model of an inverted clock");
    if (GSR != "DISABLED" && GSR != "AUTO") $error("DP16KD: no model of a global reset");
  endgenerate

  localparam [20479:0] INIT = {
    INITVAL_3F, INITVAL_3E, INITVAL_3D, INITVAL_3C, INITVAL_3B, INITVAL_3A, INITVAL_39, INITVAL_38,
    INITVAL_37, INITVAL_36, INITVAL_35, INITVAL_34, INITVAL_33, INITVAL_32, INITVAL_31, INITVAL_30,
    INITVAL_2F, INITVAL_2E, INITVAL_2D, INITVAL_2C, INITVAL_2B, INITVAL_2A, INITVAL_29, INITVAL_28,
    INITVAL_27, INITVAL_26, INITVAL_25, INITVAL_24, INITVAL_23, INITVAL_22, INITVAL_21, INITVAL_20,
    INITVAL_1F, INITVAL_1E, INITVAL_1D, INITVAL_1C, INITVAL_1B, INITVAL_1A, INITVAL_19, INITVAL_18,
    INITVAL_17, INITVAL_16, INITVAL_15, INITVAL_14, INITVAL_13, INITVAL_12, INITVAL_11, INITVAL_10,
    INITVAL_0F, INITVAL_0E, INITVAL_0D, INITVAL_0C, INITVAL_0B, INITVAL_0A, INITVAL_09, INITVAL_08,
    INITVAL_07, INITVAL_06, INITVAL_05, INITVAL_04, INITVAL_03, INITVAL_02, INITVAL_01, INITVAL_00};
  // A word of 18 bits is in 20 of the parameters.
  reg [35:0] lines [0:511];
  integer line;
  initial for (line = 0; line < 512; line = line + 1) lines[line] = {INIT[40 * line + 20 +: 18], INIT[40 * line +: 18]};

  wire [13:0] address_a = {ADA13, ADA12, ADA11, ADA10, ADA9, ADA8, ADA7, ADA6, ADA5, ADA4, ADA3, ADA2, ADA1, ADA0};
  wire [35:0] data_a = {{DIB17, DIB16, DIB15, DIB14, DIB13, DIB12, DIB11, DIB10, DIB9, DIB8, DIB7, DIB6, DIB5, DIB4, DIB3, DIB2, DIB1, DIB0}, {DIA17, DIA16, DIA15, DIA14, DIA13, DIA12, DIA11, DIA10, DIA9, DIA8, DIA7, DIA6, DIA5, DIA4, DIA3, DIA2, DIA1, DIA0}};
  wire [13:0] address_b = {ADB13, ADB12, ADB11, ADB10, ADB9, ADB8, ADB7, ADB6, ADB5, ADB4, ADB3, ADB2, ADB1, ADB0};
  wire [35:0] data_b = {18'd0, {DIB17, DIB16, DIB15, DIB14, DIB13, DIB12, DIB11, DIB10, DIB9, DIB8, DIB7, DIB6, DIB5, DIB4, DIB3, DIB2, DIB1, DIB0}};
  wire on_a = CEA && {CSA2, CSA1, CSA0} == 3'd0;
  // Where in its line it is: the byte, and of widths below nine the bits in it.
  wire [1:0] byte_a = DATA_WIDTH_A == 36 ? 2'd0 : DATA_WIDTH_A == 18 ? {address_a[4], 1'b0} : address_a[4:3];
  wire [2:0] bit_a = DATA_WIDTH_A >= 9 ? 3'd0 : address_a[2:0] & ~(DATA_WIDTH_A - 1);
  wire [5:0] place_a = 9 * byte_a + bit_a;
  wire [35:0] bytes_a = DATA_WIDTH_A == 36 ? {{9{address_a[3]}}, {9{address_a[2]}}, {9{address_a[1]}}, {9{address_a[0]}}}
    : DATA_WIDTH_A == 18 ? {18'd0, {9{address_a[1]}}, {9{address_a[0]}}} : (36'd1 << DATA_WIDTH_A) - 36'd1;
  wire [35:0] mask_a = on_a && WEA && !RSTA ? bytes_a << place_a : 36'd0;
  wire [35:0] new_a = data_a << place_a;
  wire on_b = CEB && {CSB2, CSB1, CSB0} == 3'd0;
  // Where in its line it is: the byte, and of widths below nine the bits in it.
  wire [1:0] byte_b = DATA_WIDTH_B == 36 ? 2'd0 : DATA_WIDTH_B == 18 ? {address_b[4], 1'b0} : address_b[4:3];
  wire [2:0] bit_b = DATA_WIDTH_B >= 9 ? 3'd0 : address_b[2:0] & ~(DATA_WIDTH_B - 1);
  wire [5:0] place_b = 9 * byte_b + bit_b;
  wire [35:0] bytes_b = DATA_WIDTH_B == 36 ? {{9{address_b[3]}}, {9{address_b[2]}}, {9{address_b[1]}}, {9{address_b[0]}}}
    : DATA_WIDTH_B == 18 ? {18'd0, {9{address_b[1]}}, {9{address_b[0]}}} : (36'd1 << DATA_WIDTH_B) - 36'd1;
  wire [35:0] mask_b = on_b && WEB && !RSTB ? bytes_b << place_b : 36'd0;
  wire [35:0] new_b = data_b << place_b;

  wire [35:0] old_a = lines[address_a[13:5]];
  wire [35:0] seen_a = address_a[13:5] == address_b[13:5] ? old_a ^ mask_b : old_a;
  wire [35:0] after_a = WRITEMODE_A == "WRITETHROUGH" ? seen_a & ~mask_a | new_a & mask_a : seen_a;
  reg [35:0] read_a = 36'd0;
  wire keeps_a = !on_a || (WEA && WRITEMODE_A == "NORMAL");
  generate
    if (RESETMODE == "ASYNC") begin : reset_a
      always @(posedge CLKA, posedge RSTA)
        if (RSTA) read_a <= 36'd0;
        else if (!keeps_a) read_a <= after_a >> place_a;
    end else begin : reset_a
      always @(posedge CLKA)
        if (RSTA) read_a <= 36'd0;
        else if (!keeps_a) read_a <= after_a >> place_a;
    end
  endgenerate

  wire [35:0] old_b = lines[address_b[13:5]];
  wire [35:0] seen_b = address_b[13:5] == address_a[13:5] ? old_b ^ mask_a : old_b;
  wire [35:0] after_b = WRITEMODE_B == "WRITETHROUGH" ? seen_b & ~mask_b | new_b & mask_b : seen_b;
  reg [35:0] read_b = 36'd0;
  wire keeps_b = !on_b || (WEB && WRITEMODE_B == "NORMAL");
  generate
    if (RESETMODE == "ASYNC") begin : reset_b
      always @(posedge CLKB, posedge RSTB)
        if (RSTB) read_b <= 36'd0;
        else if (!keeps_b) read_b <= after_b >> place_b;
    end else begin : reset_b
      always @(posedge CLKB)
        if (RSTB) read_b <= 36'd0;
        else if (!keeps_b) read_b <= after_b >> place_b;
    end
  endgenerate

  // Where both write one bit, port B wins here; in a device nobody knows.
  wire both = address_a[13:5] == address_b[13:5];
  wire [35:0] other_a = both ? old_a & ~mask_b | new_b & mask_b : old_a;
  wire [35:0] only_a = both ? mask_a & ~mask_b : mask_a;
  wire [35:0] other_b = both ? old_b & ~mask_a | new_a & mask_a : old_b;
  always @(posedge CLKA) if (|mask_a) lines[address_a[13:5]] <= other_a & ~only_a | new_a & only_a;
  always @(posedge CLKB) if (|mask_b) lines[address_b[13:5]] <= other_b & ~mask_b | new_b & mask_b;

  assign {DOA17, DOA16, DOA15, DOA14, DOA13, DOA12, DOA11, DOA10, DOA9, DOA8, DOA7, DOA6, DOA5, DOA4, DOA3, DOA2, DOA1, DOA0} = DATA_WIDTH_B == 36 ? read_b[17:0] : read_a[17:0];
  assign {DOB17, DOB16, DOB15, DOB14, DOB13, DOB12, DOB11, DOB10, DOB9, DOB8, DOB7, DOB6, DOB5, DOB4, DOB3, DOB2, DOB1, DOB0} = DATA_WIDTH_B == 36 ? read_b[35:18] : read_b[17:0];
endmodule

// 18 by 18 bits, without registers.
module MULT18X18D (
  input  A17, A16, A15, A14, A13, A12, A11, A10, A9, A8, A7, A6, A5, A4, A3, A2, A1, A0,
  input  B17, B16, B15, B14, B13, B12, B11, B10, B9, B8, B7, B6, B5, B4, B3, B2, B1, B0,
  input  C17, C16, C15, C14, C13, C12, C11, C10, C9, C8, C7, C6, C5, C4, C3, C2, C1, C0,
  input  SIGNEDA, SIGNEDB, SOURCEA, SOURCEB,
  output P35, P34, P33, P32, P31, P30, P29, P28, P27, P26, P25, P24, P23, P22, P21, P20, P19, P18, P17, P16, P15, P14, P13, P12, P11, P10, P9, P8, P7, P6, P5, P4, P3, P2, P1, P0
);
  parameter REG_INPUTA_CLK = "NONE";
  parameter REG_INPUTB_CLK = "NONE";
  parameter REG_INPUTC_CLK = "NONE";
  parameter REG_PIPELINE_CLK = "NONE";
  parameter REG_OUTPUT_CLK = "NONE";
  parameter SOURCEB_MODE = "B_SHIFT";
  parameter MULT_BYPASS = "DISABLED";
  generate
    if (REG_INPUTA_CLK != "NONE" || REG_INPUTB_CLK != "NONE" || REG_INPUTC_CLK != "NONE" || REG_PIPELINE_CLK != "NONE"
      || REG_OUTPUT_CLK != "NONE") $error("MULT18X18D: no model of registers");
    if (SOURCEB_MODE != "B_SHIFT") $error("MULT18X18D: no model of SOURCEB_MODE %s", SOURCEB_MODE);
    if (MULT_BYPASS != "DISABLED") $error("MULT18X18D: no model of a bypass");
  endgenerate
  wire [35:0] a = {{18{SIGNEDA & A17}}, A17, A16, A15, A14, A13, A12, A11, A10, A9, A8, A7, A6, A5, A4, A3, A2, A1, A0};
  wire [35:0] b = {{18{SIGNEDB & B17}}, B17, B16, B15, B14, B13, B12, B11, B10, B9, B8, B7, B6, B5, B4, B3, B2, B1, B0};
  assign {P35, P34, P33, P32, P31, P30, P29, P28, P27, P26, P25, P24, P23, P22, P21, P20, P19, P18, P17, P16, P15, P14, P13, P12, P11, P10, P9, P8, P7, P6, P5, P4, P3, P2, P1, P0} = a * b;
endmodule
