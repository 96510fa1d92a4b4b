//! The life of a Slurm job, from the queue until Slurm deletes its record.

use std::collections::BTreeMap;

use chrono::TimeDelta;
use domain::Timestamp;
use remote::{
    ExitRecord, StartedMarker, label,
    script::{EXIT_CLAIMED, EXIT_NOT_NEEDED},
};
use slurm::{ExitCode, JobName, SlurmJobId, SlurmState};
use uuid::Uuid;

use super::{
    Site,
    disk::Write,
    plan::{Ending, Run, Word, draw},
};

/// What the text of a batch script makes it do.
#[derive(Debug, Clone, Copy)]
pub(super) struct Script {
    /// Exits if another job holds the attempt.
    pub(super) claims: bool,
    /// Exits if its attempt's directory is not there any more, or holds only what shuts others out.
    pub(super) looks: bool,
    /// Notes how far the status files go when it begins.
    pub(super) notes: bool,
    /// Queues the next attempt when it begins.
    pub(super) chain: Option<Chain>,
}

/// When an attempt that was queued ahead runs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Chain {
    /// It looks at the end of the attempt before.
    pub(super) decides: bool,
    pub(super) after_timeout: bool,
    pub(super) after_preemption: bool,
}

#[derive(Debug, Clone)]
pub(super) struct SlurmJob {
    pub(super) id: SlurmJobId,
    pub(super) name: JobName,
    pub(super) owner: Option<Uuid>,
    pub(super) script: Script,
    /// It was queued ahead by this one.
    pub(super) after: Option<u32>,
    /// Its index, if it is a task of the array `id`.
    pub(super) index: Option<u32>,
    /// The number of its task in its job.
    pub(super) task: u32,
    /// Where the fences of its attempt are.
    pub(super) attempt_dir: String,
    pub(super) state_dir: String,
    /// Where it writes; for a conversion, the image that it makes.
    pub(super) results: Option<String>,
    pub(super) image: Option<String>,
    pub(super) state: SlurmState,
    pub(super) submit: i64,
    pub(super) start: Option<i64>,
    pub(super) end: Option<i64>,
    pub(super) node: String,
    pub(super) restarts: u32,
    pub(super) run: Run,
    /// Runs of its job before this one.
    pub(super) runs_before: u32,
    /// What was planned for an earlier state of it happens no more.
    pub(super) era: u32,
    pub(super) executing: bool,
    pub(super) exit: Option<ExitCode>,
    pub(super) word: Option<Word>,
    pub(super) log: &'static str,
    /// Whether squeue shows it.
    pub(super) queued: bool,
    /// What accounting shows, and from when on.
    pub(super) records: Vec<(Timestamp, Record)>,
    pub(super) ended_runs: Vec<(Timestamp, SlurmState, String)>,
}

/// A line of accounting.
#[derive(Debug, Clone)]
pub(super) struct Record {
    pub(super) state: SlurmState,
    pub(super) exit: Option<ExitCode>,
    pub(super) start: Option<i64>,
    pub(super) end: Option<i64>,
}

/// Something that happens by itself.
#[derive(Debug, Clone)]
pub(super) enum Turn {
    Start { id: u32, era: u32 },
    Script { id: u32, era: u32 },
    Line { id: u32, era: u32, word: Word, first: bool },
    Ending { id: u32, era: u32 },
    Killed { id: u32, era: u32 },
    Limit { id: u32, era: u32 },
    Waits { id: u32, era: u32 },
    Forget { id: u32 },
    Show(Write),
}

impl SlurmJob {
    pub(super) fn is_active(&self) -> bool {
        !self.state.is_final()
    }

    /// Whether it waits in the row of its array.
    pub(super) fn waits_together(&self) -> bool {
        self.index.is_some() && self.state == SlurmState::Pending && self.restarts == 0
    }

    /// Whether it was canceled in the row of its array.
    pub(super) fn never_began(&self) -> bool {
        self.index.is_some()
            && self.state == SlurmState::Cancelled
            && self.restarts == 0
            && self.start.is_none()
    }

    /// Its name, with the index of a task.
    pub(super) fn label(&self) -> String {
        label(self.name.as_str(), self.index)
    }
}

impl Site {
    pub(super) fn take(&mut self, turn: Turn) {
        match turn {
            Turn::Start { id, era } if self.is_in(id, era) => self.start(id),
            Turn::Script { id, era } if self.is_in(id, era) => self.begin_script(id),
            Turn::Line { id, era, word, first } if self.is_in(id, era) => self.say(id, word, first),
            Turn::Ending { id, era } if self.is_in(id, era) => self.end_run(id),
            Turn::Killed { id, era } if self.is_in(id, era) => {
                self.end(id, &SlurmState::Cancelled, Some(ExitCode { code: 0, signal: 15 }));
            }
            Turn::Limit { id, era } if self.is_in(id, era) => self.end(id, &SlurmState::Timeout, None),
            Turn::Waits { id, era } if self.is_in(id, era) => self.wait_again(id),
            Turn::Forget { id } => {
                if let Some(job) = self.jobs.get_mut(&id) {
                    job.queued = false;
                }
            }
            Turn::Show(write) => self.login_disk.apply(write),
            // It is not what it was when this was planned.
            Turn::Start { .. }
            | Turn::Script { .. }
            | Turn::Line { .. }
            | Turn::Ending { .. }
            | Turn::Killed { .. }
            | Turn::Limit { .. }
            | Turn::Waits { .. } => {}
        }
    }

    fn is_in(&self, id: u32, era: u32) -> bool {
        self.jobs.get(&id).is_some_and(|job| job.era == era && job.is_active())
    }

    fn start(&mut self, id: u32) {
        let (now, node) = (self.seconds(), self.dice.between(1, 9));
        let late = self.dice.millis(0, 1500);
        let Some(job) = self.jobs.get_mut(&id) else { return };
        job.state = SlurmState::Running;
        job.start = Some(now);
        job.end = Some(now + 4 * 3600);
        job.node = format!("node{node:02}");
        let era = job.era;
        self.account(id);
        self.plan(late, Turn::Script { id, era });
    }

    fn begin_script(&mut self, id: u32) {
        let Some(job) = self.jobs.get_mut(&id) else { return };
        let (dir, attempt_dir) = (job.state_dir.clone(), job.attempt_dir.clone());
        let (slurm_id, script, results) = (job.id, job.script, job.results.clone());
        let (restart, hostname, era) = (job.restarts, job.node.clone(), job.era);
        let (run, owner) = (job.run.clone(), job.owner);
        let holder = self.nodes_disk.states.get(&dir).and_then(|state| state.run);
        // The fences, and the link that closes an attempt, are of the whole attempt.
        let attempt = self.nodes_disk.states.get(&attempt_dir);
        let is_closed = attempt.is_some_and(|state| state.closed);
        // The first task of an array claims the attempt for all of them.
        let others = attempt.and_then(|state| state.run).is_some_and(|holder| holder != slurm_id);
        let claims_attempt = dir != attempt_dir && attempt.is_none_or(|state| state.run.is_none());
        let is_gone = script.looks && !attempt.is_some_and(super::disk::StateDir::is_staged);
        let is_told = self.login_disk.states.get(&dir).and_then(|state| state.over) == Some(slurm_id);
        if let Some(chain) = script.chain.filter(|chain| chain.decides)
            && let Some(before) = self.jobs.get(&id).and_then(|job| job.after)
            && !self.goes_on(chain, before)
        {
            self.end(id, &SlurmState::Failed, Some(ExitCode { code: EXIT_NOT_NEEDED, signal: 0 }));
            return;
        }
        let is_taken = is_told || is_closed || others || holder.is_some_and(|holder| holder != slurm_id);
        if is_gone || script.claims && is_taken {
            self.end(id, &SlurmState::Failed, Some(ExitCode { code: EXIT_CLAIMED, signal: 0 }));
            return;
        }
        let before = self.nodes_disk.states.get(&dir).filter(|_| script.claims);
        if let Some(code) = before.and_then(|state| state.code_of_earlier_run(slurm_id, restart)) {
            let state = if code == 0 { SlurmState::Completed } else { SlurmState::Failed };
            self.end(id, &state, Some(ExitCode { code, signal: 0 }));
            return;
        }
        if claims_attempt {
            self.write(Write::Run { dir: attempt_dir, id: slurm_id });
        }
        if holder.is_none() {
            self.write(Write::Run { dir: dir.clone(), id: slurm_id });
        }
        let is_over = owner.is_some_and(|owner| (self.is_over)(owner));
        self.truth.begins(id, is_over);
        let found = results.as_ref().and_then(|results| self.nodes_disk.status.get(results));
        let sizes: BTreeMap<u64, u64> =
            found.iter().map(|file| (file.inode, file.bytes.len() as u64)).collect();
        let (at, seconds) = (self.micros(), self.seconds());
        let started = StartedMarker { slurm_id, restart, at: seconds, hostname };
        let note = script.notes.then_some((at, sizes));
        self.write(Write::Begin { dir, started, note });
        if let Some(job) = self.jobs.get_mut(&id) {
            job.executing = true;
            job.word = None;
        }
        if script.chain.is_some() {
            self.queue_next(id);
        }
        for (index, (time, word)) in run.lines.iter().enumerate() {
            self.plan(*time, Turn::Line { id, era, word: *word, first: index == 0 });
        }
        self.plan(run.length, Turn::Ending { id, era });
    }

    fn say(&mut self, id: u32, word: Word, first: bool) {
        let Some(job) = self.jobs.get_mut(&id) else { return };
        let (Some(results), Some(owner)) = (job.results.clone(), job.owner) else { return };
        job.word = Some(word);
        let anew = first && job.run.rewrites;
        let number = self.truth.lines.entry(owner).or_default();
        *number += 1;
        let text = format!("{{\"status\":\"{}\",\"n\":{number},\"by\":{id}}}\n", word.as_str());
        if anew {
            self.truth.overwritten.insert(owner);
            self.inodes += 1;
        }
        let known = self.nodes_disk.status.get(&results).filter(|_| !anew).map(|file| file.inode);
        if known.is_none() {
            self.inodes += 1;
        }
        let inode = known.unwrap_or(self.inodes);
        let at = self.micros();
        self.write(Write::Line { results, text, at, inode, anew });
    }

    fn end_run(&mut self, id: u32) {
        let Some(job) = self.jobs.get(&id) else { return };
        let (ending, image, era) = (job.run.ending.clone(), job.image.clone(), job.era);
        match ending {
            Ending::Exit { code, log } => {
                if let Some(path) = image.filter(|_| code == 0) {
                    self.write(Write::Image { path });
                }
                if let Some(job) = self.jobs.get_mut(&id) {
                    job.log = log;
                }
                self.mark_exit(id, code);
                let state = if code == 0 { SlurmState::Completed } else { SlurmState::Failed };
                self.end(id, &state, Some(ExitCode { code, signal: 0 }));
            }
            Ending::Ended { state, requeue: true } => self.requeue(id, &state),
            Ending::Ended { state, requeue: false } => {
                let others = matches!(state, SlurmState::Cancelled | SlurmState::Preempted);
                if let Some(truth) = self.truth.jobs.get_mut(&id) {
                    truth.ended_by_others = others;
                }
                let signal = if state == SlurmState::OutOfMemory { 125 } else { 0 };
                self.end(id, &state, Some(ExitCode { code: 0, signal }));
            }
            // A conversion reports no final status, so it ends at its time limit; the tasks of arrays are not released early.
            Ending::Hangs if image.is_some() || job.index.is_some() || job.script.chain.is_some() => {
                self.plan(TimeDelta::minutes(30), Turn::Limit { id, era });
            }
            Ending::Hangs => {}
            Ending::Lost { marked } => {
                let code = u8::from(self.jobs.get(&id).is_some_and(|job| job.word != Some(Word::Success)));
                if marked {
                    self.mark_exit(id, code);
                }
                let state = if code == 0 { SlurmState::Completed } else { SlurmState::Failed };
                self.end(id, &state, Some(ExitCode { code, signal: 0 }));
                if let Some(job) = self.jobs.get_mut(&id) {
                    job.queued = false;
                    job.records.clear();
                }
                if let Some(truth) = self.truth.jobs.get_mut(&id) {
                    truth.lost = !marked;
                }
            }
        }
    }

    fn mark_exit(&mut self, id: u32, code: u8) {
        let at = self.seconds();
        let Some(job) = self.jobs.get(&id) else { return };
        let exit = ExitRecord { slurm_id: job.id, restart: job.restarts, code, at };
        let dir = job.state_dir.clone();
        self.write(Write::Exit { dir, exit });
    }

    /// Slurm puts a job back into its queue, because its run ended so.
    fn requeue(&mut self, id: u32, because: &SlurmState) {
        self.truth.stops(id);
        let (now, shown) = (self.seconds(), self.now + self.weather.accounting_lag);
        let Some(job) = self.jobs.get_mut(&id) else { return };
        job.ended_runs.push((shown, because.clone(), job.node.clone()));
        let record = Record { state: because.clone(), exit: None, start: job.start, end: Some(now) };
        job.records.push((shown, record));
        job.restarts += 1;
        job.era += 1;
        // As Slurm shows it until its node is free: its start is the time of the requeue.
        job.state = SlurmState::Completing;
        (job.start, job.end, job.executing, job.word) = (Some(now), None, false, None);
        let era = job.era;
        *self.truth.endings.entry(format!("{because}, requeued")).or_default() += 1;
        let completing = self.dice.millis(0, 6000);
        self.plan(completing, Turn::Waits { id, era });
    }

    fn wait_again(&mut self, id: u32) {
        let Some(job) = self.jobs.get_mut(&id) else { return };
        job.state = SlurmState::Pending;
        job.submit = job.start.take().unwrap_or(job.submit);
        job.node.clear();
        job.run = draw(&mut self.dice, job.runs_before + job.restarts);
        let (wait, era) = (job.run.wait + TimeDelta::seconds(3), job.era);
        self.plan(wait, Turn::Start { id, era });
    }

    pub(super) fn end(&mut self, id: u32, state: &SlurmState, exit: Option<ExitCode>) {
        let now = self.seconds();
        let remembered = self.dice.seconds(20, 300);
        self.truth.stops(id);
        let Some(job) = self.jobs.get_mut(&id) else { return };
        job.era += 1;
        job.executing = false;
        job.state = state.clone();
        job.end = Some(now);
        job.exit = exit;
        if let Some(truth) = self.truth.jobs.get_mut(&id) {
            (truth.state, truth.exit, truth.word) = (Some(state.clone()), exit, job.word);
        }
        *self.truth.endings.entry(state.to_string()).or_default() += 1;
        self.account(id);
        self.plan(remembered, Turn::Forget { id });
        self.release_next(id, state);
    }

    /// Accounting learns of the job as it is.
    pub(super) fn account(&mut self, id: u32) {
        let shown = self.now + self.weather.accounting_lag;
        let Some(job) = self.jobs.get_mut(&id) else { return };
        let ended = job.state.is_final();
        let record = Record {
            state: job.state.clone(),
            exit: if ended { job.exit } else { Some(ExitCode { code: 0, signal: 0 }) },
            start: job.start,
            end: job.end.filter(|_| ended),
        };
        job.records.push((shown, record));
    }

    /// Somebody asks for its end.
    pub(super) fn cancel(&mut self, id: u32) {
        let slow = self.dice.millis(0, 30_000);
        let forgets = self.dice.chance(500);
        let Some(job) = self.jobs.get_mut(&id).filter(|job| job.is_active()) else { return };
        if job.state == SlurmState::Pending {
            // Of a task that never began Slurm may keep nothing.
            let is_gone = job.waits_together() && forgets;
            self.end(id, &SlurmState::Cancelled, Some(ExitCode { code: 0, signal: 0 }));
            if let Some(job) = self.jobs.get_mut(&id).filter(|_| is_gone) {
                job.queued = false;
                job.records.clear();
            }
            return;
        }
        let era = job.era;
        self.plan(slow, Turn::Killed { id, era });
    }
}
