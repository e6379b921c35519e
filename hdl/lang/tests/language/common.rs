//! What the tests of refused descriptions share.

use heddle_hdl::prelude::*;

/// Ports for descriptions that make one mistake.
#[derive(Bundle, Clone, Copy)]
pub struct Ports<T> {
    /// 8 bits.
    pub a: T,
    /// 4 bits.
    pub b: T,
    /// 8 bits.
    pub c: T,
    /// 1 bit.
    pub on: T,
    /// 4096 bits.
    pub huge: T,
}

pub const PORTS: Ports<Width> = Ports { a: 8, b: 4, c: 8, on: 1, huge: 4096 };

/// Checks that `body` is refused with this message and no other, on the line that it returns (`line!()`). Places in
/// the message, `(file.rs:12)`, are left out of the comparison.
#[track_caller]
pub fn refused<R: Signals>(message: &str, body: impl FnOnce(Builder, Ports<Signal>) -> (R, u32)) {
    let here = std::panic::Location::caller().file();
    let mut line = 0;
    let top = module("top", PORTS, |m, i| {
        let (result, at) = body(m, i);
        line = at;
        result
    });
    let errors = top.check().err().unwrap_or_else(|| panic!("accepted, but wanted: {message}"));
    assert_eq!(errors.0.len(), 1, "{errors}");
    assert_eq!(without_places(&errors.0[0].message), message);
    let loc = errors.0[0].loc.expect("a place");
    assert_eq!((loc.file(), loc.line()), (here, line), "{errors}");
}

/// The message without its ` (file.rs:12)`.
pub fn without_places(message: &str) -> String {
    let mut out = String::new();
    let mut rest = message;
    while let Some((before, after)) = rest.split_once(" (") {
        out.push_str(before);
        match after.split_once(')') {
            Some((place, after)) if place.contains(".rs:") => rest = after,
            _ => {
                out.push_str(" (");
                rest = after;
            }
        }
    }
    out + rest
}
