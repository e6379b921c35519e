//! What simulations look at: the commit check reads each issue and each write, the host what starts and ends, traces of
//! the pipeline the front end's stages.

use super::{BackEnd, CoreIn, FrontEnd};
use crate::divergence::interface::warp_of;
use crate::shape::Shape;
use heddle_hdl::prelude::*;

/// Builds them; no hardware comes of it.
pub fn probes(s: &Shape, m: Builder, i: &CoreIn<Signal>, front: &FrontEnd, back: &BackEnd) {
    let FrontEnd { unit, started, steered, fetched, issued, mask, .. } = front;
    let BackEnd { resolved, written, .. } = back;
    let mixed = unit.more.mixed;
    m.probe("issue_valid", issued.issued.valid);
    m.probe("issue_slot", warp_of(s, issued.issued.slot));
    m.probe("issue_pc", issued.issued.pc);
    m.probe("issue_mask", *mask);
    if let Some(homes) = mixed.and_then(|mixed| mixed.homes) {
        m.probe("issue_homes", homes);
    }
    m.probe("issue_replay", issued.replay);
    m.probe("write_lanes", written.write.lanes);
    m.probe("write_slot", written.write.warp);
    if let Some(homes) = mixed.and_then(|mixed| mixed.written_homes) {
        m.probe("write_homes", homes);
    }
    m.probe("write_rd", written.write.rd);
    m.probe("write_data", written.write.data);
    m.probe("start_taken", started.valid);
    m.probe("start_slot", i.start.slot);
    m.probe("start_pc", i.start.pc);
    m.probe("start_mask", i.start.mask);
    m.probe("start_block", i.block);
    m.probe("exit", resolved.exit);
    m.probe("live", unit.live);
    m.probe("waiting", unit.waiting);
    m.probe("running", steered.running);
    // By slot, where the above is by warp. `chosen` is in stage 1, `decoding` in stage 3, `reading` in stage 5.
    m.probe("chosen", steered.chosen);
    m.probe("decoding", fetched.fetched);
    m.probe("issued", issued.issued);
    m.probe("reading", issued.reading);
    m.probe("heads", issued.idle);
    if let Some(two) = unit.more.two_paths {
        m.probe("flush_valid", two.flush);
        m.probe("flush_slot", two.flushed);
    }
}
