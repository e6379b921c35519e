//! The ports of a model, as the header says that Verilator writes for it.

use crate::error::BuildError;

/// Where a port goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// Into the module.
    Input,
    /// Out of the module.
    Output,
}

/// A port of the top module.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Port {
    /// As in the Verilog, without the backslash of an escaped name.
    pub name: String,
    /// Where it goes.
    pub direction: Direction,
    /// In bits.
    pub width: u32,
    /// The member of the model's class.
    pub(crate) member: String,
}

/// The ports that a model's header declares, as `VL_IN8(&clk,0,0);`, in its order.
pub(crate) fn of_header(header: &str) -> Result<Vec<Port>, BuildError> {
    header.lines().filter_map(|line| port(line.trim())).collect()
}

/// The port that the line declares, if it does.
fn port(line: &str) -> Option<Result<Port, BuildError>> {
    let (kind, rest) = line.strip_prefix("VL_")?.split_once('(')?;
    let fields: Vec<&str> = rest.strip_suffix(");")?.split(',').collect();
    let member = fields.first()?.trim_start_matches('&');
    let name = verilog_name(member.trim_start_matches("(&").split([')', '[']).next()?);
    let refused = |what: &str| Some(Err(BuildError::Port(format!("port `{name}` is {what}, which is not supported"))));
    let direction = match kind.trim_end_matches(|c: char| c.is_ascii_digit()).trim_end_matches('W') {
        "IN" => Direction::Input,
        "OUT" => Direction::Output,
        "INOUT" => return refused("an inout"),
        _ => return None,
    };
    if member.contains('[') {
        return refused("an array");
    }
    let bound = |k: usize| fields.get(k)?.parse::<u32>().ok();
    let width = bound(1)?.abs_diff(bound(2)?) + 1;
    Some(Ok(Port { name, direction, width, member: member.to_string() }))
}

/// A name of Verilog from that of a member: Verilator writes a character that C++ has not as `__0` and two digits.
fn verilog_name(member: &str) -> String {
    let mut rest = member.strip_prefix("__SYM__").unwrap_or(member);
    let mut name = String::new();
    while let Some(first) = rest.chars().next() {
        let code = rest.strip_prefix("__0").and_then(|code| code.get(..2));
        match code.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                name.push(char::from(byte));
                rest = &rest[5..];
            }
            None => {
                name.push(first);
                rest = &rest[first.len_utf8()..];
            }
        }
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ports(header: &str) -> Vec<(String, Direction, u32)> {
        let ports = of_header(header).unwrap();
        ports.into_iter().map(|p| (p.name, p.direction, p.width)).collect()
    }

    #[test]
    fn every_form_of_a_port_is_read() {
        let header = "class Vmodel {\n    VL_IN8(&clk,0,0);\n    VL_OUT16(&q,11,0);\n    VL_IN64(x,40,1);\n    \
                      VL_OUTW(&y,99,0,4);\n    VL_IN(&data,31,0);\n    VL_UNCOPYABLE(Vmodel);\n";
        use Direction::{Input, Output};
        let want = [("clk", Input, 1), ("q", Output, 12), ("x", Input, 40), ("y", Output, 100), ("data", Input, 32)];
        assert_eq!(ports(header), want.map(|(name, direction, width)| (name.to_string(), direction, width)));
    }

    #[test]
    fn names_are_those_of_the_verilog() {
        let names = [("a___05Fb", "a__b"), ("a__02eb", "a.b"), ("__SYM__new", "new"), ("_x__y", "_x__y")];
        for (member, name) in names {
            assert_eq!(verilog_name(member), name);
        }
    }

    #[test]
    fn what_is_not_supported_is_named() {
        let error = |header| of_header(header).unwrap_err().to_string();
        assert_eq!(error("VL_INOUT8(&pad,0,0);"), "port `pad` is an inout, which is not supported");
        assert_eq!(error("VL_IN8((&x)[4],7,0);"), "port `x` is an array, which is not supported");
    }
}
