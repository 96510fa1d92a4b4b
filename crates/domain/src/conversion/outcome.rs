//! From what a poll saw of a conversion to its end.

use chrono::TimeDelta;
use remote::{
    ImageFile, Markers,
    script::{EXIT_BEGUN, EXIT_CLAIMED, EXIT_NO_MARKS, EXIT_NODE_FAILED},
};
use slurm::{QueueRow, SlurmState};

use super::{Abandoned, Conversion, ConversionState, ConversionTransition, Demand, LOOK_ROUND};
use crate::{
    clock::Timestamp,
    cluster::target::Cluster,
    run::{
        conclude::NOTICED,
        diagnosis::ENDED_BY_TERM,
        observe::{Graces, Observation, Records, at, is_awaited, is_marked, is_of_this_end},
    },
};

/// A conversion that has waited for a node for so long is given up: the jobs that wait for it go on without.
const QUEUE_PATIENCE: TimeDelta = TimeDelta::hours(1);
/// Times of the cluster and ours that differ by less may be the same.
const SAME_TIME: TimeDelta = TimeDelta::minutes(2);
/// A run that the infrastructure ended is made again, so often in a row.
const MOST_MISHAPS: u32 = 3;
/// After a look at last words that were not all there.
const LOOK_AGAIN: TimeDelta = TimeDelta::seconds(3);
/// What the script returns of itself, and then it leaves no mark: the import did not run, or was broken off. A program that
/// returns one of these is followed by the mark of its end.
const UNMARKED: [u8; 4] = [EXIT_NODE_FAILED, EXIT_NO_MARKS, EXIT_CLAIMED, EXIT_BEGUN];
/// The longest text of enroot's that goes into a message, in characters.
const LONGEST_ERROR: usize = 600;

/// The conversion after a observation; nothing when it saw nothing new. `ahead` is how far the cluster's clock is ahead of
/// ours.
pub fn conversion_seen(
    conversion: &Conversion,
    seen: &Observation<'_>,
    ahead: TimeDelta,
    graces: &Graces,
    now: Timestamp,
) -> Option<Conversion> {
    if !matches!(conversion.state, ConversionState::InQueue | ConversionState::Running) {
        return None;
    }
    let mut next = conversion.clone();
    let token = conversion.run.as_ref().map(|run| run.token.as_str());
    let accounting = seen.accounting.filter(|record| Some(record.name.as_str()) == token);
    let seen = &Observation { accounting, ..*seen };
    match seen.queue.filter(|row| Some(row.name.as_str()) == token) {
        Some(row) => next.in_queue(row, seen, ahead, now),
        None if seen.queue_answered => next.vanished(seen, ahead, graces, now),
        None => {}
    }
    let face = |c: &Conversion| {
        let run = c
            .run
            .as_ref()
            .map(|run| (run.slurm_state.clone(), run.queued_since, run.began_at, run.missing_since));
        (c.state, c.message.clone(), c.abandoned, run)
    };
    (face(conversion) != face(&next)).then_some(next)
}

impl Conversion {
    fn in_queue(&mut self, row: &QueueRow, seen: &Observation<'_>, ahead: TimeDelta, now: Timestamp) {
        let QueueRow { state, reason, nodes, .. } = row;
        let start = at(row.start).map(|at| at - ahead);
        // A word we do not know, or that says nothing about the run's life, changes nothing.
        if matches!(state, SlurmState::UpdateDb | SlurmState::Unknown(_)) {
            return;
        }
        // The queue does not tell codes. One that comes with a mark is told by that, and without it says nothing about the
        // image. Accounting that is behind has the end of an earlier run.
        let told = seen.accounting.filter(|record| is_of_this_end(record, row));
        if *state == SlurmState::Failed
            && told.is_none()
            && !is_marked(row, seen)
            && is_awaited(row, seen, now + ahead)
        {
            return;
        }
        let Some(run) = &mut self.run else { return };
        run.missing_since = None;
        run.slurm_state = Some(state.clone());
        let id = run.slurm_id.map(|id| id.to_string()).unwrap_or_default();
        let image = &self.image;
        if state.is_final() {
            let code = told.and_then(|record| record.exit_code);
            run.exit = code.filter(|exit| UNMARKED.contains(&exit.code)).or(run.exit);
            run.began_at = start.filter(|_| !nodes.is_empty()).map(|at| at.min(now)).or(run.began_at);
            self.finish(now);
        } else if matches!(
            state,
            SlurmState::Running
                | SlurmState::Completing
                | SlurmState::Resizing
                | SlurmState::Signaling
                | SlurmState::StageOut
        ) {
            // After a requeue it begins anew, so the latest start counts.
            run.began_at = start.map(|at| at.min(now)).or(run.began_at).or(Some(now));
            run.queued_since = None;
            self.state = ConversionState::Running;
            let since = run.began_at.unwrap_or(now).format("%H:%M:%S UTC");
            self.message =
                format!("Converting the image {image}: Slurm job {id} runs on {nodes} since {since}.");
        } else {
            run.began_at = None;
            // Slurm gives a job that it puts back a new time of submission; a run between two polls shows in nothing else.
            let submitted = at(row.submit).map(|at| (at - ahead).min(now));
            let since = run.queued_since.unwrap_or(now);
            let since = submitted.filter(|at| *at - since > SAME_TIME).unwrap_or(since);
            run.queued_since = Some(since);
            if matches!(state, SlurmState::Suspended | SlurmState::Stopped) {
                // It has its node, and is kept from using it.
                run.queued_since = None;
            } else if now - since >= QUEUE_PATIENCE {
                self.abandoned.get_or_insert(Abandoned::NeverStarted);
            }
            self.state = ConversionState::InQueue;
            self.message = if reason.is_empty() || reason == "None" {
                format!("Converting the image {image}: Slurm job {id} waits for a node.")
            } else {
                format!("Converting the image {image}: Slurm job {id} waits for a node ({reason}).")
            };
        }
    }

    /// As for jobs: accounting says how it ended, else its own exit marker, else nobody, and then only time can tell.
    fn vanished(&mut self, seen: &Observation<'_>, ahead: TimeDelta, graces: &Graces, now: Timestamp) {
        let Some(run) = &mut self.run else { return };
        let row = seen.accounting;
        let exit =
            seen.markers.and_then(|marks| marks.exit).filter(|exit| Some(exit.slurm_id) == run.slurm_id);
        if let Some(row) = row.filter(|row| row.state.is_final()) {
            run.slurm_state = Some(row.state.clone());
            run.exit = row.exit_code.or(run.exit);
            run.began_at = at(row.start).map(|at| (at - ahead).min(now)).or(run.began_at);
            self.finish(now);
        } else if exit.is_some() {
            run.slurm_state = None;
            self.finish(now);
        } else if seen.records != Records::Unknown && row.is_none() {
            let since = *run.missing_since.get_or_insert(now);
            if now - since >= graces.missing {
                run.slurm_state = None;
                self.finish(now);
            }
        }
    }

    fn finish(&mut self, now: Timestamp) {
        self.state = ConversionState::Finishing;
        self.message =
            format!("Converting the image {}: looking at what the conversion has made.", self.image);
        if let Some(run) = &mut self.run {
            run.finishing_since = Some(now);
        }
    }
}

/// What was found beside a conversion that Slurm is through with.
#[derive(Debug, Clone, Copy)]
pub struct ConversionFindings<'a> {
    pub markers: &'a Markers,
    /// The end of what enroot wrote on standard error.
    pub err_tail: &'a [u8],
    /// What is at its target, as the login host sees it.
    pub file: ImageFile,
}

/// The verdict on a conversion that Slurm is through with.
pub fn conversion_concluded(
    conversion: &Conversion,
    found: &ConversionFindings<'_>,
    demand: &Demand,
    cluster: &Cluster,
    graces: &Graces,
    now: Timestamp,
) -> ConversionTransition {
    let mut next = conversion.clone();
    let due_at = next.conclude(found, demand, cluster, graces, now);
    ConversionTransition { conversion: next, due_at }
}

impl Conversion {
    fn conclude(
        &mut self,
        found: &ConversionFindings<'_>,
        demand: &Demand,
        cluster: &Cluster,
        graces: &Graces,
        now: Timestamp,
    ) -> Option<Timestamp> {
        let Some(run) = self.run.clone() else {
            self.state = ConversionState::Wanted;
            return Some(now);
        };
        if found.file == ImageFile::Whole {
            self.ready(run.target, run.began_at.or(run.submitted_at), now);
            return None;
        }
        let marked =
            found.markers.exit.filter(|exit| Some(exit.slurm_id) == run.slurm_id).map(|exit| exit.code);
        // Another holds the run: ours did nothing, whether it found that out or was ended before it could look.
        let claimed = found.markers.run_claim.filter(|claim| Some(*claim) != run.slurm_id);
        if let (None, Some(claim)) = (marked, claimed) {
            if let Some(run) = &mut self.run {
                (run.slurm_id, run.slurm_state, run.exit) = (Some(claim), None, None);
                (run.missing_since, run.finishing_since, run.queued_since) = (None, None, None);
            }
            self.state = ConversionState::InQueue;
            return Some(now + LOOK_ROUND);
        }
        let returned = run.exit.filter(|exit| exit.signal == 0).map(|exit| exit.code);
        let code = marked.or(returned.filter(|code| !UNMARKED.contains(code)));
        // Its last words, or the file itself, may still be on their way through the shared file system.
        let awaited = code.is_none() || code == Some(0) || found.file == ImageFile::Unread;
        // Whoever holds the run may still be at it: a second import would replace the file that the first has made.
        let taken = match returned {
            Some(EXIT_CLAIMED) => found.markers.run_claim.is_none(),
            code => code == Some(EXIT_BEGUN),
        };
        let grace = if taken && marked.is_none() { graces.finish.max(NOTICED) } else { graces.finish };
        let until = run.finishing_since.unwrap_or(now) + grace;
        let tells = matches!(run.slurm_state, Some(SlurmState::Completed | SlurmState::Failed) | None);
        if awaited && tells && now < until {
            return Some((now + LOOK_AGAIN).min(until));
        }
        self.judge(run.slurm_state.as_ref(), code, found, demand, cluster, now)
    }

    fn judge(
        &mut self,
        state: Option<&SlurmState>,
        code: Option<u8>,
        found: &ConversionFindings<'_>,
        demand: &Demand,
        cluster: &Cluster,
        now: Timestamp,
    ) -> Option<Timestamp> {
        let settings = &cluster.images;
        let why = match (self.abandoned, state) {
            (Some(Abandoned::Unneeded), _) if demand.waiters == 0 => {
                *self = self.shelved().conversion;
                return None;
            }
            (Some(Abandoned::Unneeded), _) => {
                self.again();
                return Some(now);
            }
            (Some(Abandoned::NeverStarted), _) => "its job found no node to run on for an hour".to_owned(),
            (None, Some(SlurmState::Timeout | SlurmState::Deadline)) => format!(
                "it took longer than the {} minutes it has (conversion_minutes)",
                settings.conversion_minutes
            ),
            (None, Some(SlurmState::OutOfMemory)) => {
                format!(
                    "it needed more than the {} GiB it has (conversion_memory_gb)",
                    settings.conversion_memory_gb
                )
            }
            (None, Some(SlurmState::Cancelled)) => "its job was canceled on the cluster".to_owned(),
            (None, Some(SlurmState::Completed | SlurmState::Failed) | None) if code == Some(0) => format!(
                "its job ended well, but {} is no whole image on the login host; is the cache directory on a file \
                 system that all nodes share?",
                self.run.as_ref().map_or("the file", |run| run.target.as_str())
            ),
            (None, Some(SlurmState::Completed | SlurmState::Failed) | None)
                if code.is_some_and(|code| code != ENDED_BY_TERM) =>
            {
                enroot_error(found.err_tail, code.unwrap_or_default())
            }
            // A node died, the job was preempted, its script was ended, could not do its work, or nobody knows: nothing that the
            // image is guilty of.
            (None, state) => {
                if self.mishaps < MOST_MISHAPS {
                    self.mishaps += 1;
                    self.again();
                    return Some(now);
                }
                format!("its job was ended by the cluster {} times", self.mishaps + 1)
                    + &state.map_or(String::new(), |state| format!(" ({state})"))
                    + &format!("; the last time: {}", last_words(found.err_tail))
            }
        };
        self.failed(why, now);
        None
    }

    /// From the beginning: whether somebody else has made it meanwhile is looked up first.
    fn again(&mut self) {
        *self = Self { abandoned: None, ..self.reopened() };
        self.message = format!(
            "Converting the image {}: the cluster has ended the conversion; trying again.",
            self.image
        );
    }
}

fn enroot_error(err_tail: &[u8], code: u8) -> String {
    format!("enroot import ended with code {code}: {}", last_words(err_tail))
}

/// What was against it: the last line that says so, or else the last line of all.
fn last_words(err_tail: &[u8]) -> String {
    let text = String::from_utf8_lossy(err_tail);
    let lines = || text.lines().map(str::trim).filter(|line| !line.is_empty());
    let tells = |line: &&str| ["[ERROR]", "curl: (", "tao-slurm:"].iter().any(|word| line.contains(word));
    let line = lines().rfind(tells).or_else(|| lines().next_back());
    line.unwrap_or("it said nothing")
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .take(LONGEST_ERROR)
        .collect()
}
