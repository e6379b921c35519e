//! Which names a description may use: legal in Verilog, SystemVerilog and C++, and free of what tools reserve.

use crate::reset::LOCAL_RESET;
use std::collections::HashSet;
use std::sync::LazyLock;

/// An error text if a description cannot use `name`.
pub fn check(name: &str) -> Result<(), String> {
    let first = name.chars().next().unwrap_or(' ');
    if !(first.is_ascii_alphabetic() || first == '_') || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
        return Err(format!("`{name}` is no identifier: letters, digits and `_`, not starting with a digit"));
    }
    if name.contains("__") {
        return Err(format!("`{name}` has `__`, which Verilator reserves"));
    }
    if name == "clk" || name == "rst" || name == LOCAL_RESET {
        return Err(format!("`{name}` is the name of the implicit port"));
    }
    if is_keyword(name) {
        return Err(format!("`{name}` is a keyword of Verilog, SystemVerilog or C++"));
    }
    Ok(())
}

/// An error text if Verilog can have no such name, not even escaped.
pub fn check_foreign(name: &str) -> Result<(), String> {
    if name.is_empty() || !name.chars().all(|c| c.is_ascii_graphic()) {
        return Err(format!("`{}` is no name in Verilog: printable ASCII without spaces", name.escape_debug()));
    }
    Ok(())
}

/// A name of foreign Verilog as Verilog writes it: escaped unless it is a plain identifier.
pub fn verilog(name: &str) -> String {
    let start = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    let plain = start && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '$');
    if plain && !is_keyword(name) { name.to_string() } else { format!("\\{name} ") }
}

fn is_keyword(name: &str) -> bool {
    static SET: LazyLock<HashSet<&str>> = LazyLock::new(|| KEYWORDS.split_whitespace().collect());
    SET.contains(name)
}

const KEYWORDS: &str = "
always and assign automatic begin buf bufif0 bufif1 case casex casez cell cmos config deassign default defparam design
disable edge else end endcase endconfig endfunction endgenerate endmodule endprimitive endspecify endtable endtask
event for force forever fork function generate genvar highz0 highz1 if ifnone incdir include initial inout input
instance integer join large liblist library localparam macromodule medium module nand negedge nmos nor
noshowcancelled not notif0 notif1 or output parameter pmos posedge primitive pull0 pull1 pulldown pullup
pulsestyle_ondetect pulsestyle_onevent rcmos real realtime reg release repeat rnmos rpmos rtran rtranif0 rtranif1
scalared showcancelled signed small specify specparam strong0 strong1 supply0 supply1 table task time tran tranif0
tranif1 tri tri0 tri1 triand trior trireg unsigned use vectored wait wand weak0 weak1 while wire wor xnor xor
accept_on alias always_comb always_ff always_latch assert assume before bind bins binsof bit break byte chandle checker
class clocking const constraint context continue cover covergroup coverpoint cross dist do endchecker endclass
endclocking endgroup endinterface endpackage endprogram endproperty endsequence enum eventually expect export extends
extern final first_match foreach forkjoin global iff ignore_bins illegal_bins implements implies import inside int
interconnect interface intersect join_any join_none let local logic longint matches modport nettype new nexttime null
package packed priority program property protected pure rand randc randcase randsequence ref reject_on restrict return
s_always s_eventually s_nexttime s_until s_until_with sequence shortint shortreal soft solve static string strong
struct super sync_accept_on sync_reject_on tagged this throughout timeprecision timeunit type typedef union unique
unique0 until until_with untyped uvm_warn var virtual void wait_order weak wildcard with within
alignas alignof asm auto bool catch char concept consteval constexpr constinit const_cast decltype delete double
dynamic_cast explicit false float friend goto inline long mutable namespace noexcept nullptr operator private public
register reinterpret_cast requires short sizeof static_assert static_cast switch template thread_local throw true try
typeid typename using volatile wchar_t";

#[cfg(test)]
mod tests {
    use super::{check, check_foreign, verilog};

    #[test]
    fn names() {
        assert!(check("pc_0").is_ok() && check("_x").is_ok());
        for bad in ["", "0a", "a-b", "a__b", "wire", "logic", "template", "clk", "local_rst"] {
            assert!(check(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn names_of_foreign_verilog_are_escaped_where_they_must_be() {
        for plain in ["CLKI", "a__b", "clk", "_x$1"] {
            assert_eq!(verilog(plain), plain);
        }
        for odd in ["0a", "a-b", "a[0]", "$and", "wire", "do"] {
            assert_eq!(verilog(odd), format!("\\{odd} "));
            assert!(check_foreign(odd).is_ok());
        }
        for bad in ["", "a b", "a\n", "\u{e4}"] {
            assert!(check_foreign(bad).is_err(), "{bad}");
        }
    }
}
