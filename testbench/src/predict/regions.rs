//! Which points of reconvergence belong to which regions.
//!
//! A region begins at `HEDDLE_PREDICT` and has the points of its name that can be reached from there, without passing
//! the beginning of another of that name. Compilers copy code: points of which one can be reached from the other and
//! back, without leaving the region, are in one copy, others in copies of their own. Each copy has a barrier of its
//! own. Of several points in one copy, that which dominates the others stays.

use super::PredictError;
use super::body::Body;
use super::directives::{Directive, Kind};
use super::linked::Linked;
use std::collections::{BTreeMap, BTreeSet};

/// A region with one point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Region {
    pub name: String,
    /// Entry of the function.
    pub function: u32,
    /// Where it begins.
    pub joins: Vec<u32>,
    /// Where its threads wait.
    pub point: u32,
    pub threshold: u32,
}

/// All regions with points, and what should be said of them.
pub fn find(
    linked: &Linked,
    bodies: &[Body],
    directives: &[Directive],
) -> Result<(Vec<Region>, Vec<String>), PredictError> {
    let (mut regions, mut notes) = (Vec::new(), Vec::new());
    let names: BTreeSet<&str> =
        directives.iter().filter(|d| d.kind != Kind::PredictFunction).map(|d| d.name.as_str()).collect();
    for name in names {
        let of = |kind: Kind| directives.iter().filter(move |d| d.kind == kind && d.name == name);
        let (mut begun, mut reached) = (BTreeSet::new(), BTreeSet::new());
        let mut seen: BTreeSet<u32> = BTreeSet::new();
        for body in bodies {
            // Functions may share code.
            let inside = |directive: &&Directive| body.node(directive.pc).is_some() && !seen.contains(&directive.pc);
            let starts: Vec<&Directive> = of(Kind::Predict).filter(inside).collect();
            let points: Vec<usize> = of(Kind::Reconverge).filter_map(|d| body.node(d.pc)).collect();
            let is_start = |node: usize| starts.iter().any(|d| d.pc == body.pcs[node]);
            let mut of_point: BTreeMap<usize, Vec<&Directive>> = BTreeMap::new();
            for start in &starts {
                let at = body.node(start.pc).expect("it is inside");
                let mut seen = vec![false; body.pcs.len()];
                seen[at] = true;
                for &next in &body.graph.next[at] {
                    let ahead = body.graph.reachable(next, |node| !is_start(node));
                    seen.iter_mut().zip(ahead).for_each(|(seen, ahead)| *seen |= ahead);
                }
                for &point in points.iter().filter(|&&point| seen[point]) {
                    of_point.entry(point).or_default().push(start);
                    begun.insert(start.pc);
                }
            }
            reached.extend(of_point.keys().map(|&node| body.pcs[node]));
            regions.extend(copies(linked, body, name, &of_point, &is_start)?);
            seen.extend(starts.iter().map(|start| start.pc));
        }
        let text = |directive: &Directive| format!("{} at {}", directive.text(), linked.place(directive.pc));
        for kind in [Kind::Predict, Kind::Reconverge] {
            let done = if kind == Kind::Predict { &begun } else { &reached };
            let why = match kind {
                Kind::Predict => format!("leads to no HEDDLE_RECONVERGE({name})"),
                _ => format!("is reached from no HEDDLE_PREDICT({name})"),
            };
            for lost in of(kind).filter(|d| !done.contains(&d.pc)) {
                let line = format!("{} {why}", text(lost));
                if done.is_empty() {
                    return Err(PredictError::Directive { line });
                }
                notes.push(format!("{line}: nothing is placed for this copy"));
            }
        }
    }
    Ok((regions, notes))
}

/// A region for each copy.
fn copies(
    linked: &Linked,
    body: &Body,
    name: &str,
    of_point: &BTreeMap<usize, Vec<&Directive>>,
    is_start: &impl Fn(usize) -> bool,
) -> Result<Vec<Region>, PredictError> {
    let mut left: BTreeSet<usize> = of_point.keys().copied().collect();
    let mut regions = Vec::new();
    while let Some(point) = left.pop_first() {
        let cycle = body.graph.cycle(point, |node| !is_start(node));
        let mut copy = vec![point];
        copy.extend(left.iter().copied().filter(|&other| cycle[other]));
        left.retain(|other| !copy.contains(other));
        let stays = copy.iter().copied().find(|&by| copy.iter().all(|&other| body.dominates(by, other)));
        let Some(stays) = stays else {
            let places: Vec<String> = copy.iter().map(|&node| linked.place(body.pcs[node])).collect();
            let line = format!(
                "HEDDLE_RECONVERGE({name}) stands at {} of one region, and every thread passes none of them first: name one place",
                places.join(" and ")
            );
            return Err(PredictError::Directive { line });
        };
        let starts: BTreeSet<&Directive> = copy.iter().flat_map(|point| of_point[point].iter().copied()).collect();
        regions.push(Region {
            name: name.to_string(),
            function: body.entry,
            joins: starts.iter().map(|start| start.pc).collect(),
            point: body.pcs[stays],
            threshold: starts.iter().map(|start| start.threshold).max().unwrap_or(0),
        });
    }
    Ok(regions)
}
