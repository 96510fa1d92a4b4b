//! Cancelling jobs.

use std::time::Duration;

use crate::{
    Call, Failure, JobName, ParseError, RawOutput, RemoteCommand, SlurmJobId, answer::Answer, failure,
    feed::Feed,
};

const PROGRAM: &str = concat!(include_str!("../programs/preamble.sh"), include_str!("../programs/cancel.sh"));

/// 60 s after which nothing new is begun, and 35 s for one scancel.
const DEADLINE: Duration = Duration::from_secs(110);

/// What scancel says of a job there is nothing left to cancel of (`slurm_errno.c`).
const ALREADY_OVER: &[&str] = &["Invalid job id specified", "Job/step already completing or completed"];

/// Cancels jobs by id, 500 at a time, and by name for those whose id is not known for certain.
#[derive(Debug, Clone, Default)]
pub struct Cancel {
    /// Which jobs. One that is unknown or has ended counts as cancelled.
    pub ids: Vec<SlurmJobId>,
    /// Which names, among our own jobs.
    pub names: Vec<JobName>,
}

/// What scancel said. That it took the request does not mean that the jobs have ended: watch them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cancelled {
    /// Why some of the jobs may not have been cancelled; the first reason if there are several.
    pub refused: Option<Failure>,
}

impl RemoteCommand for Cancel {
    type Output = Cancelled;

    fn render(&self) -> Call {
        let mut feed = Feed::new();
        feed.field(self.ids.len()).field(self.names.len()).end_line();
        for id in &self.ids {
            feed.field(id).end_line();
        }
        for name in &self.names {
            feed.field(name).end_line();
        }
        let calls = self.ids.len() / 500 + 1 + self.names.len();
        Call {
            program: PROGRAM.to_owned(),
            stdin: feed.into_bytes(),
            deadline: DEADLINE,
            stdout_limit: super::STDOUT_BASE + calls * super::encoded(60_000),
        }
    }

    fn parse(&self, raw: &RawOutput) -> Result<Self::Output, ParseError> {
        let mut refused = None;
        for mut line in Answer::read("cancel", raw)?.lines() {
            if line.tag != b"REFUSED" {
                return Err(line.malformed("an unknown kind of line"));
            }
            let code = line.value()?;
            let stderr = line.blob_text()?;
            let serious: Vec<&str> =
                stderr.lines().filter(|line| !ALREADY_OVER.iter().any(|text| line.contains(text))).collect();
            // A non-zero code with nothing but such lines is a success that looks like none.
            let harmless = serious.is_empty() && !stderr.is_empty();
            if refused.is_none() && !harmless {
                refused = Some(failure::of_exit(code, &serious.join("\n")));
            }
        }
        Ok(Cancelled { refused })
    }
}
