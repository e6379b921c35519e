//! Runs of a sweep, several at a time: those of one machine after each other, so that it is built once.

use super::child;
use super::file::Value;
use super::plan::{How, Plan};
use super::simulate::Held;
use super::store::{Record, SCHEMA, Store};
use crate::interrupt::{Interrupt, is_interruption};
use anyhow::{Error, Result};
use heddle_hdl::netlist::Module;
use heddle_testbench::compile::quoted;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::Value as Json;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::thread::{self, sleep};
use std::time::Duration;

/// What there is in the end, by job; none of what was interrupted.
pub struct Done {
    pub records: Vec<Option<Record>>,
    /// So many were run now; others were known, or found by another process meanwhile.
    pub computed: usize,
    /// Why it ended before its end.
    pub stopped: Option<Error>,
}

/// Between two looks at what another process computes.
const LOOK: Duration = Duration::from_millis(50);

/// Finds the results of these jobs that are not known, with so many threads. Results that say that a run failed are
/// found again if asked for.
pub fn work(plan: &Plan, jobs: &[usize], store: &Store, threads: usize, again: bool, interrupt: &Interrupt) -> Done {
    let mut records: Vec<Option<Record>> = plan.jobs.iter().map(|_| None).collect();
    let mut queue = Queue {
        batches: vec![VecDeque::new(); plan.batches.len()],
        held: vec![0; plan.batches.len()],
        ..Queue::default()
    };
    for &at in jobs {
        match store.read(&plan.jobs[at].key).filter(|record| record.ok || !again) {
            Some(record) => records[at] = Some(record),
            None => queue.batches[plan.combinations[plan.jobs[at].combination].batch].push_back(at),
        }
    }
    let count: usize = queue.batches.iter().map(VecDeque::len).sum();
    let progress = ProgressBar::new(count as u64);
    let style = ProgressStyle::with_template("{wide_bar} {pos}/{len} runs, {msg}, {eta} left");
    progress.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    let designs = plan.batches.iter().map(|_| Mutex::new(Weak::new())).collect();
    let floor = Floor { plan, store, interrupt, again, designs, queue: Mutex::new(queue), progress };
    let found: Vec<(usize, Record, bool)> = thread::scope(|scope| {
        let workers: Vec<_> = (0..threads.min(count)).map(|_| scope.spawn(|| floor.work())).collect();
        workers
            .into_iter()
            .flat_map(|worker| worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    });
    floor.progress.finish_and_clear();
    let mut computed = 0;
    for (at, record, now) in found {
        records[at] = Some(record);
        computed += usize::from(now);
    }
    let stopped = floor.queue.into_inner().expect("no thread panics").stopped;
    Done { records, computed, stopped: interrupt.or(stopped.map_or(Ok(()), Err)).err() }
}

/// Jobs that nobody has taken.
#[derive(Default)]
struct Queue {
    batches: Vec<VecDeque<usize>>,
    /// How many workers have a machine of each.
    held: Vec<usize>,
    /// Those that another process computes.
    waiting: VecDeque<usize>,
    stopped: Option<Error>,
}

impl Queue {
    /// One for the machine that the worker has; else for one that nobody has; else where most are left.
    fn next(&mut self, has: &mut Option<usize>) -> Option<usize> {
        if self.stopped.is_some() {
            return None;
        }
        let of_its_own = has.filter(|batch| !self.batches[*batch].is_empty());
        let left = |batch: &usize| self.batches[*batch].len();
        let any = || {
            (0..self.batches.len())
                .rev()
                .filter(|batch| left(batch) > 0)
                .max_by_key(|batch| (self.held[*batch] == 0, left(batch)))
        };
        let Some(batch) = of_its_own.or_else(any) else { return self.waiting.pop_front() };
        if *has != Some(batch) {
            if let Some(before) = has.replace(batch) {
                self.held[before] -= 1;
            }
            self.held[batch] += 1;
        }
        self.batches[batch].pop_front()
    }
}

/// What workers share.
struct Floor<'a> {
    plan: &'a Plan,
    store: &'a Store,
    interrupt: &'a Interrupt,
    again: bool,
    /// As long as a machine is one of it.
    designs: Vec<Mutex<Weak<Module>>>,
    queue: Mutex<Queue>,
    progress: ProgressBar,
}

impl Floor<'_> {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().expect("no thread panics while it has it")
    }

    /// A worker's jobs: their records, and whether it computed them.
    fn work(&self) -> Vec<(usize, Record, bool)> {
        let (mut done, mut held, mut has) = (Vec::new(), None, None);
        while self.interrupt.poll().is_continue() {
            let Some(at) = self.queue().next(&mut has) else { break };
            let job = &self.plan.jobs[at];
            let Some(claim) = self.store.claim(&job.key) else {
                self.queue().waiting.push_back(at);
                sleep(LOOK);
                continue;
            };
            let found = match self.store.read(&job.key).filter(|record| record.ok || !self.again) {
                Some(record) => Ok((record, false)),
                None => self.compute(at, &mut held).map(|record| (record, true)),
            };
            drop(claim);
            match found {
                Ok((record, now)) => done.push((at, record, now)),
                Err(error) => {
                    let stopped = &mut self.queue().stopped;
                    if stopped.is_none() || !is_interruption(&error) {
                        *stopped = Some(error);
                    }
                }
            }
            self.progress.inc(1);
        }
        done
    }

    /// Runs it, and keeps what it came to.
    fn compute(&self, at: usize, held: &mut Option<Held>) -> Result<Record> {
        let job = &self.plan.jobs[at];
        let planned = &self.plan.combinations[job.combination];
        self.progress.set_message(planned.combination.to_string());
        let (result, error) = match (&planned.how, job.draw) {
            (How::Here(ready), draw) => {
                let design = self.design(planned.batch)?;
                ready.run(planned.batch, &design, held, draw.unwrap_or(1), self.interrupt)?
            }
            (How::Child, _) => child::run(self.plan.command, &planned.words, self.store, self.interrupt)?,
        };
        let record = Record {
            schema: SCHEMA,
            command: line(self.plan, at),
            options: planned.combination.0.iter().map(|(key, value)| (key.clone(), json(value))).collect(),
            draw: job.draw,
            design: self.plan.batches[planned.batch].design.clone(),
            ok: error.is_none(),
            error,
            result,
        };
        self.store.write(&job.key, &record)?;
        Ok(record)
    }

    fn design(&self, batch: usize) -> Result<Arc<Module>> {
        let mut design = self.designs[batch].lock().expect("no thread panics while it has it");
        if let Some(module) = design.upgrade() {
            return Ok(module);
        }
        let module = self.plan.batches[batch].module(self.plan.command)?;
        *design = Arc::downgrade(&module);
        Ok(module)
    }
}

/// The command line that does the same alone.
fn line(plan: &Plan, at: usize) -> String {
    let job = &plan.jobs[at];
    let seed = job.draw.map(|draw| format!("--seed={draw}"));
    let words = plan.combinations[job.combination].words.iter().cloned().chain(seed);
    let words = words.map(|word| quoted(&word));
    ["heddle".to_string(), plan.command.name().into()].into_iter().chain(words).collect::<Vec<_>>().join(" ")
}

fn json(value: &Value) -> Json {
    match value {
        Value::Flag(flag) => Json::from(*flag),
        Value::Words(words) if words.len() == 1 => {
            words[0].parse::<i64>().map_or_else(|_| words[0].clone().into(), Json::from)
        }
        Value::Words(words) => words.clone().into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_keep_their_machine_and_share_what_is_left() {
        let batches = vec![VecDeque::from([0, 1]), VecDeque::from([2, 3, 4]), VecDeque::from([5])];
        let mut queue = Queue { held: vec![0; 3], batches, ..Queue::default() };
        let (mut first, mut second) = (None, None);
        // The longest; then another that nobody has.
        assert_eq!((queue.next(&mut first), queue.next(&mut second)), (Some(2), Some(0)));
        assert_eq!((queue.next(&mut first), queue.next(&mut second)), (Some(3), Some(1)));
        assert_eq!((queue.next(&mut second), second), (Some(5), Some(2)));
        assert_eq!((queue.next(&mut second), second), (Some(4), Some(1)));
        assert_eq!((queue.held.clone(), queue.next(&mut first)), (vec![0, 2, 0], None));
        queue.waiting.push_back(7);
        assert_eq!((queue.next(&mut first), queue.next(&mut first)), (Some(7), None));
        queue.waiting.push_back(7);
        queue.stopped = Some(anyhow::anyhow!("disk full"));
        assert_eq!(queue.next(&mut first), None);
    }

    #[test]
    fn values_are_json_of_their_kind() {
        let words = |words: &[&str]| json(&Value::Words(words.iter().map(|word| word.to_string()).collect()));
        assert_eq!((words(&["8"]), words(&["4K"])), (Json::from(8), Json::from("4K")));
        assert_eq!((words(&["a", "b"]), json(&Value::Flag(true))), (serde_json::json!(["a", "b"]), Json::from(true)));
    }
}
