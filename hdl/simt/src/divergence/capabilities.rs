//! What the pipeline knows of a mechanism for divergence: what it is capable of.

/// What a mechanism can do beyond the plain interface, and needs for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Capabilities {
    /// It runs one side of a branch to where [`crate::reconvergence`] says that both meet, and the other after it.
    /// Then threads that wait for others of their warp, at a barrier or for a lock, may wait for ever. It may refuse to go on.
    pub reconverges: bool,
    /// It reconverges at likely-convergence points, too: [`Shape::likely`](crate::Shape::likely) is a choice.
    pub likely_points: bool,
    /// Two paths of a warp may issue: each is a slot, a side of its warp.
    pub two_paths: bool,
    /// It forms warps of threads of several: a slot's lanes may have different static warps.
    pub mixes_warps: bool,
    /// It has convergence barriers: [`Shape::convergence_barriers`](crate::Shape::convergence_barriers) is a choice.
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
