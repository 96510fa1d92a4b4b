//! `logs`: the bytes as the job wrote them, except for control characters on a terminal.

use std::process::ExitCode;

use domain::JobId;

use super::{chosen, failed, follow, interrupt, log_lines::Printer, output::Output};
use crate::{
    cli::{Format, LogsArgs, Stream},
    client::{Client, StatusDocument, with_query},
};

pub(super) fn run(args: &LogsArgs) -> anyhow::Result<ExitCode> {
    let format = args.job.server.output;
    let client = Client::new(&args.job.server)?;
    let id = chosen::job(&client, &args.job.job)?;
    let path = path(id, args);
    if args.follow {
        interrupt::say(format!(
            "The job goes on. Come back with `tao-slurm logs -f {id}`; end it with `tao-slurm cancel {id}`."
        ));
        let mut printer = Printer::new(format.is_document(), is_single(args));
        follow::events(&client, &path, |event| printer.print(event))?;
        return Ok(ExitCode::SUCCESS);
    }
    let answer = client.get(&path)?;
    let mut output = Output::new();
    if format.is_document() {
        let stream = <&str>::from(args.stream.unwrap_or(Stream::All));
        let document = serde_json::json!({ "stream": stream, "text": String::from_utf8_lossy(&answer.body) });
        output.document(format, &document)?;
    } else {
        output.foreign(&answer.body)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints all of a job's log until the job ends, then how it ended.
pub(super) fn follow_to_the_end(client: &Client, id: JobId, format: Format) -> anyhow::Result<ExitCode> {
    let path = with_query(&format!("/jobs/{id}/logs"), [("follow", Some("true".to_owned()))]);
    {
        let mut printer = Printer::new(format.is_document(), false);
        follow::events(client, &path, |event| printer.print(event))?;
    }
    let mut output = Output::new();
    // The log may end before the service has concluded the job.
    follow::until_final(client, &format!("/jobs/{id}/status"), "the job is not affected", |answer| {
        let job: StatusDocument = answer.document()?;
        let code = job.exit_code();
        if code.is_some() && format.is_document() {
            output.document(format, &answer.document()?)?;
        } else if code.is_some() {
            output.line(&job.colored_line())?;
        }
        if code == Some(1) && !format.is_document() {
            output.text(&failed::why(client, id))?;
        }
        Ok(code)
    })
}

/// The query has only the given options: the service applies the defaults and rejects contradictions.
fn path(id: JobId, args: &LogsArgs) -> String {
    let query = [
        ("stream", args.stream.map(|stream| <&str>::from(stream).to_owned())),
        ("role", args.role.clone()),
        ("task", args.task.map(|task| task.to_string())),
        ("attempt", args.attempt.map(|attempt| attempt.to_string())),
        ("tail", args.tail.map(|lines| lines.to_string())),
        ("offset", args.offset.map(|offset| offset.to_string())),
        ("limit", args.limit.map(|limit| limit.to_string())),
        ("follow", args.follow.then(|| "true".to_owned())),
    ];
    with_query(&format!("/jobs/{id}/logs"), query)
}

/// Whether the options select a single log.
fn is_single(args: &LogsArgs) -> bool {
    let one_stream = match args.stream {
        Some(Stream::Out | Stream::Err) => true,
        Some(Stream::All | Stream::Controller | Stream::Policy | Stream::Rollout) => false,
        None => args.offset.is_some(),
    };
    one_stream && (args.role.is_none() || args.task.is_some() || args.offset.is_some())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::{Cli, Command};

    const ID: &str = "0f8fad5b-d9cb-469f-a165-70867728950e";

    fn args(line: &str) -> LogsArgs {
        let words = ["tao-slurm", "logs", ID].into_iter().chain(line.split_whitespace());
        match Cli::parse_from(words).command {
            Command::Logs(args) => args,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn only_given_options_are_in_the_query() {
        assert_eq!(path(ID.parse().unwrap(), &args("")), format!("/jobs/{ID}/logs"));
        assert_eq!(
            path(ID.parse().unwrap(), &args("-f --stream err --role po/licy --task 3 --attempt 2 --tail 5")),
            format!("/jobs/{ID}/logs?stream=err&role=po%2Flicy&task=3&attempt=2&tail=5&follow=true")
        );
        assert_eq!(
            path(ID.parse().unwrap(), &args("--offset 5 --limit 6")),
            format!("/jobs/{ID}/logs?offset=5&limit=6")
        );
    }

    #[test]
    fn options_that_select_a_single_log_are_recognized() {
        for (line, single) in [
            ("", false),
            ("--stream out", true),
            ("--stream out --role policy", false),
            ("--stream out --role policy --task 0", true),
            ("--stream policy", false),
            ("--offset 0", true),
        ] {
            assert_eq!(is_single(&args(line)), single, "{line}");
        }
    }
}
