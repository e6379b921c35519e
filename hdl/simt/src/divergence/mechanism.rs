//! What a mechanism for divergence is to the rest of the project.

use super::interface::{UnitIn, UnitOut};
use crate::shape::Shape;
use heddle_hdl::*;
use std::fmt;

/// A mechanism for divergence: a value of a type of its own, in the list [`Divergence::ALL`].
pub trait Mechanism: Sync {
    /// Its name on the command line.
    fn name(&self) -> &'static str;

    /// What the rest of the core must do for it, and what it offers.
    fn capabilities(&self) -> Capabilities {
        Capabilities::NONE
    }

    /// The divergence unit of a shape that has this mechanism.
    fn unit(&self, s: &Shape) -> TypedModule<UnitIn<Width>, UnitOut<Signal>>;
}

/// What a mechanism can do beyond the plain interface, and needs for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Capabilities {
    /// It runs one side of a branch to where [`crate::reconvergence`] says that both meet, and the other after it.
    /// Then threads that wait for others of their warp, at a barrier or for a lock, may wait for ever. It may refuse to go on.
    pub reconverges: bool,
    /// It reconverges at likely-convergence points, too: [`Shape::likely`] is a choice.
    pub likely_points: bool,
    /// Two paths of a warp may issue: each is a slot, a side of its warp.
    pub two_paths: bool,
    /// It forms warps of threads of several: a slot's lanes may have different static warps.
    pub mixes_warps: bool,
    /// It has convergence barriers: [`Shape::convergence_barriers`] is a choice.
    pub convergence_barriers: bool,
    /// It must know a cycle before who may have an outcome.
    pub announced: bool,
    /// A path may be split by a memory access: [`crate::shape::Replay::Split`] is a choice.
    pub splits: bool,
}

impl Capabilities {
    /// A list of paths per warp, and no more: threads that an access leaves unserved are a path of their own.
    pub const NONE: Capabilities = Capabilities {
        reconverges: false,
        likely_points: false,
        two_paths: false,
        mixes_warps: false,
        convergence_barriers: false,
        announced: false,
        splits: true,
    };
}

/// One of the mechanisms.
#[derive(Clone, Copy)]
pub struct Divergence(pub &'static dyn Mechanism);

impl Divergence {
    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        self.0.name()
    }

    pub fn capabilities(self) -> Capabilities {
        self.0.capabilities()
    }
}

/// Names are unique.
impl PartialEq for Divergence {
    fn eq(&self, other: &Divergence) -> bool {
        self.name() == other.name()
    }
}

impl Eq for Divergence {}

impl fmt::Debug for Divergence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
