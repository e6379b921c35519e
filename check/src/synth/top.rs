//! The top of a board: the clock, a reset, and pins around `heddle_uart`, which is what simulations have.

use super::boards::{Board, Lamp, Wiring};
use super::pll::Step;
use std::fmt::Write;

/// Its name.
pub(super) const TOP: &str = "board";

/// The instance of `heddle_uart` in it.
pub(super) const INSTANCE: &str = "top";

/// How the pins of a top are told to nextpnr.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Constraints {
    Lpf,
    Pcf,
    Cst,
}

/// A pin of the top.
struct Port {
    name: &'static str,
    site: &'static str,
    is_input: bool,
    /// What pulls it while nobody drives it.
    pull: Option<bool>,
    volts: &'static str,
}

/// The pins, in the order of the top's ports.
fn ports(board: &Board) -> Vec<Port> {
    let Wiring { rx, tx, done, fault, reset, .. } = &board.wiring;
    let input = |name, site, pull| Port { name, site, is_input: true, pull, volts: "33" };
    let output = |name, site| Port { name, site, is_input: false, pull: None, volts: "33" };
    let lamp = |name, lamp: &Option<Lamp>| lamp.map(|Lamp { site, volts, .. }| Port { volts, ..output(name, site) });
    let mut all = vec![input("clk_pin", board.oscillator.pin, None)];
    // Without a cable, the line is idle.
    all.push(input("rx_pin", rx, Some(true)));
    all.push(output("tx_pin", tx));
    all.extend(lamp("done_pin", done));
    all.extend(lamp("fault_pin", fault));
    all.extend(reset.map(|button| input("reset_pin", button.site, Some(!button.pressed))));
    all
}

/// The top's Verilog, with this clock.
pub(super) fn top(board: &Board, step: Step) -> String {
    let all = ports(board);
    let declared: Vec<String> = all
        .iter()
        .map(|port| format!("  {} wire {}", if port.is_input { "input " } else { "output" }, port.name))
        .collect();
    let Wiring { done, fault, reset, .. } = &board.wiring;
    let not = |inverted: bool| if inverted { "~" } else { "" };
    let pressed = reset.map_or("1'b0".to_string(), |button| format!("{}reset_pin", not(!button.pressed)));
    let mut text = format!(
        "// {}: clock of {} kHz, reset, and pins.\nmodule {TOP} (\n{}\n);\n  wire clk, locked, done, fault;\n",
        board.name,
        step.khz,
        declared.join(",\n")
    );
    text.push_str(&board.family.pll.verilog(board.oscillator.khz, step));
    let _ = write!(
        text,
        "  // Reset from power-on, or the button, until the clock has been steady for 255 cycles.
  reg  [1:0] steady = 2'd0;
  reg  [7:0] count = 8'd0;
  reg  rst = 1'b1;
  always @(posedge clk) begin
    steady <= {{locked & ~({pressed}), steady[1]}};
    count <= steady[0] ? count + {{7'd0, ~(&count)}} : 8'd0;
    rst <= ~(&count);
  end
  heddle_uart {INSTANCE} (.clk(clk), .rst(rst), .rx(rx_pin), .tx(tx_pin), .done(done), .fault(fault));
"
    );
    for (pin, lamp, shows) in [("done_pin", done, "done"), ("fault_pin", fault, "fault")] {
        if let Some(lamp) = lamp {
            let _ = writeln!(text, "  assign {pin} = {}{shows};", not(!lamp.lit));
        }
    }
    if done.is_none() || fault.is_none() {
        let unread = if done.is_none() { "done" } else { "fault" };
        let _ = writeln!(text, "  wire unused = &{{1'b0, {unread}}};");
    }
    text.push_str("endmodule\n");
    text
}

/// Where the pins are, in the form that nextpnr reads for the board's family.
pub(super) fn constraints(board: &Board) -> String {
    let line = |port: Port| {
        let Port { name, site, pull, volts, .. } = port;
        match board.family.constraints {
            Constraints::Lpf => {
                let pull = pull.map_or("NONE", |up| if up { "UP" } else { "DOWN" });
                format!(
                    "LOCATE COMP \"{name}\" SITE \"{site}\";\nIOBUF PORT \"{name}\" IO_TYPE=LVCMOS{volts} PULLMODE={pull};\n"
                )
            }
            Constraints::Pcf => {
                let pull = if pull == Some(true) { "-pullup yes " } else { "" };
                format!("set_io {pull}{name} {site}\n")
            }
            Constraints::Cst => {
                let pull = pull.map_or("NONE", |up| if up { "UP" } else { "DOWN" });
                format!("IO_LOC \"{name}\" {site};\nIO_PORT \"{name}\" IO_TYPE=LVCMOS{volts} PULL_MODE={pull};\n")
            }
        }
    };
    ports(board).into_iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every port of the top has a place, once, and no two have the same.
    #[test]
    fn all_pins_have_their_places() {
        for board in Board::ALL {
            let text = top(board, board.step(board.oscillator.khz).unwrap());
            let places = constraints(board);
            let mut sites: Vec<&str> = ports(board).iter().map(|port| port.site).collect();
            for port in ports(board) {
                assert_eq!(text.matches(&format!(" wire {}", port.name)).count(), 1, "{text}");
                let line = places.lines().find(|line| line.contains(port.name) && line.contains(port.site));
                assert!(line.is_some(), "{}: {places}", port.name);
            }
            sites.sort_unstable();
            sites.dedup();
            assert_eq!(sites.len(), ports(board).len(), "{}", board.name);
        }
    }

    #[test]
    fn lamps_and_buttons_have_their_levels() {
        let text = |name: &str| {
            let board = Board::find(name).unwrap();
            top(board, board.step(board.oscillator.khz).unwrap())
        };
        let icebreaker = text("icebreaker");
        for line in
            ["assign done_pin = ~done;", "assign fault_pin = ~fault;", "locked & ~(~reset_pin)", "clk = clk_pin"]
        {
            assert!(icebreaker.contains(line), "{line}: {icebreaker}");
        }
        assert!(text("ulx3s-85f").contains("assign done_pin = done;"));
        assert!(text("colorlight-i5").contains("wire unused = &{1'b0, fault};"));
    }
}
