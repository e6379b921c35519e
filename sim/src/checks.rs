//! Which properties of a design a simulation looks at.

use heddle_hdl::netlist::PropertyKind;

/// Which properties a compiled engine looks at.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Checks {
    /// None: nothing ever fails, and no cover is hit.
    None,
    /// No cover is hit.
    Assertions,
    /// Assertions and assumptions can fail, and covers are counted.
    #[default]
    All,
}

impl Checks {
    /// Whether it looks at such a property.
    pub fn look_at(self, kind: PropertyKind) -> bool {
        match self {
            Checks::None => false,
            Checks::Assertions => kind != PropertyKind::Cover,
            Checks::All => true,
        }
    }
}
