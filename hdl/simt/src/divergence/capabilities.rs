//! What the pipeline knows of a mechanism for divergence: what it is capable of, and the options that come with it.

use crate::isa::convergence;
use crate::shape::{
    BankAddress, Capt, Compaction, Merge, Order, PathScheduler, Replay, Scoreboard, Shape, ShapeError, power, range,
};

/// What a mechanism can do beyond the plain interface, and needs for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Capabilities {
    /// It runs one side of a branch to where [`crate::reconvergence`] says that both meet, and the other after it. Then
    /// threads that wait for others of their warp, at a barrier or for a lock, may wait for ever. It may refuse to go
    /// on.
    pub reconverges: bool,
    /// It reconverges at likely-convergence points, too: [`Shape::likely`](crate::Shape::likely) is a choice.
    pub likely_points: bool,
    /// Two paths of a warp may issue: each is a slot, a side of its warp.
    pub two_paths: bool,
    /// It forms warps of threads of several: a slot's lanes may have different static warps.
    pub mixes_warps: bool,
    /// It has convergence barriers: [`Shape::convergence_barriers`](crate::Shape::convergence_barriers) is a choice.
    pub convergence_barriers: bool,
    /// Its paths can give way to each other: [`Shape::fair`](crate::Shape::fair) is a choice.
    pub fair: bool,
    /// Its paths can be traversed in other orders than the usual one: [`Shape::order`](crate::Shape::order) is a choice.
    pub orders: bool,
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
        fair: false,
        orders: false,
        announced: false,
        splits: true,
    };

    /// Refuses options that a core without one of these capabilities has not, and values outside the limits of those it
    /// has.
    pub(crate) fn check(self, s: &Shape) -> Result<(), ShapeError> {
        let refused = |field, value: String, why: &str| {
            Err(ShapeError::new(field, value, format!("divergence = {} {why}", s.divergence.name())))
        };
        range("convergence_barriers", s.convergence_barriers, 0, convergence::BARRIERS)?;
        power("patience", s.patience, 2, 65536)?;
        if s.fair && !self.fair {
            return refused("fair", "on".into(), "cannot have paths give way to each other");
        }
        if s.convergence_barriers > 0 && !self.convergence_barriers {
            return refused("convergence_barriers", s.convergence_barriers.to_string(), "has no convergence barriers");
        }
        if s.merge != Merge::Pc && !self.convergence_barriers {
            return refused("merge", s.merge.name().into(), "has no convergence barriers");
        }
        if s.order != Order::DepthPc && !self.orders {
            return refused("order", s.order.name().into(), "has an order of its own");
        }
        if s.order.takes_turns() && !s.fair {
            return Err(ShapeError::new("order", s.order.name(), "needs fair = on"));
        }
        if let Some(levels) = s.levels {
            let together = if self.mixes_warps { s.threads() } else { s.lanes };
            range("levels", levels, 1, (together - 1).max(1))?;
            if !self.reconverges {
                return refused("levels", levels.to_string(), "has no stack");
            }
        }
        if s.path_scheduler != PathScheduler::Full && !self.two_paths {
            return refused("path_scheduler", s.path_scheduler.name().into(), "has one path of a warp to consider");
        }
        if s.tells_misses() && (s.cache.is_none() || s.replay == Replay::Split) {
            let allowed = "needs a cache, and replay = serialise";
            return Err(ShapeError::new("path_scheduler", s.path_scheduler.name(), allowed));
        }
        range("unresolved", s.unresolved, 1, 2)?;
        if s.overlaps_control() {
            let unresolved = s.unresolved.to_string();
            if !self.two_paths {
                return refused("unresolved", unresolved, "has one path of a warp that may issue");
            }
            if s.path_forwarding || s.replay == Replay::Split {
                return Err(ShapeError::new("unresolved", 2, "needs replay = serialise, path_forwarding = off"));
            }
        }
        if s.path_forwarding && !self.two_paths {
            return refused("path_forwarding", "on".into(), "has no paths to forward");
        }
        if s.scoreboard != Scoreboard::Shadows {
            let name = s.scoreboard.name();
            if !self.two_paths {
                return refused("scoreboard", name.into(), "has one path of a warp that may issue");
            }
            if s.replay == Replay::Split {
                return Err(ShapeError::new("scoreboard", name, "needs replay = serialise"));
            }
        }
        if s.likely && !self.likely_points {
            return refused("likely", "on".into(), "has no likely-convergence points");
        }
        if s.replay == Replay::Split && !self.splits {
            return refused("replay", s.replay.name().into(), "needs replay = serialise");
        }
        if s.bank_address == BankAddress::Shared && self.mixes_warps {
            return refused("bank_address", s.bank_address.name().into(), "needs bank_address = per-lane");
        }
        if s.compaction != Compaction::SkipUniform && !self.mixes_warps {
            return refused("compaction", s.compaction.name().into(), "forms no warps");
        }
        if s.capt != Capt::DEFAULT && !self.mixes_warps {
            return refused("capt", s.capt.text(), "forms no warps");
        }
        if s.slack != 1 && !self.mixes_warps {
            return refused("slack", s.slack.to_string(), "forms no warps");
        }
        Ok(())
    }
}
