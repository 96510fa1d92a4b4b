//! `wait`: until jobs have ended.

use std::{
    process::ExitCode,
    time::{Duration, Instant},
};

use domain::JobId;

use super::{
    change, chosen, failed, follow, interrupt,
    output::{Output, note},
};
use crate::{
    cli::WaitArgs,
    client::{Client, StatusDocument},
};

/// The exit code of timeout(1) when the time is over.
const EXIT_TIMEOUT: u8 = 124;

pub(super) fn run(args: &WaitArgs) -> anyhow::Result<ExitCode> {
    let client = Client::new(&args.jobs.server)?;
    let ids =
        args.jobs.jobs.iter().map(|job| chosen::job(&client, job)).collect::<anyhow::Result<Vec<JobId>>>()?;
    let again: Vec<_> = ids.iter().map(JobId::to_string).collect();
    let again = again.join(" ");
    interrupt::say(format!("The jobs go on. Come back with `tao-slurm wait {again}`."));
    let end =
        args.timeout.and_then(|hours| Instant::now().checked_add(Duration::from_secs_f64(hours * 3600.0)));
    let mut codes = Vec::new();
    for id in ids {
        let Some(code) = one(&client, id, args, end)? else {
            note(&format!("The time is over, and the jobs go on: `tao-slurm wait {again}`."));
            return Ok(ExitCode::from(EXIT_TIMEOUT));
        };
        codes.push(code);
    }
    Ok(ExitCode::from(change::worst(&codes)))
}

/// Prints how the job ended; none if the time is over before.
fn one(client: &Client, id: JobId, args: &WaitArgs, end: Option<Instant>) -> anyhow::Result<Option<u8>> {
    let format = args.jobs.server.output;
    follow::until(client, &format!("/jobs/{id}/status"), "the job is not affected", end, |answer| {
        let job: StatusDocument = answer.document()?;
        let code = job.exit_code();
        if code.is_some() {
            let mut output = Output::new();
            output.show(&args.jobs.server, answer, |job: StatusDocument| {
                format!("{id} {}\n", job.colored_line())
            })?;
            if code == Some(1) && !format.is_document() {
                output.text(&failed::why(client, id))?;
            }
        }
        Ok(code)
    })
}
