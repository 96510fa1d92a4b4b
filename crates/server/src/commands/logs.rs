//! `logs`: the bytes as the job wrote them, except for control characters on a terminal.

use std::process::ExitCode;

use super::{follow, log_lines::Printer, output::Output};
use crate::{
    cli::{JobArgs, LogsArgs, Stream},
    client::{Client, with_query},
};

pub(super) fn run(args: &LogsArgs) -> anyhow::Result<ExitCode> {
    let server = &args.job.server;
    let (client, path) = (Client::new(server), path(args));
    if args.follow {
        let mut printer = Printer::new(server.json, is_single(args));
        follow::events(&client, &path, |event| printer.print(event))?;
        return Ok(ExitCode::SUCCESS);
    }
    let answer = client.get(&path)?;
    let mut output = Output::new();
    if server.json {
        let stream = <&str>::from(args.stream.unwrap_or(Stream::All));
        let document = serde_json::json!({ "stream": stream, "text": String::from_utf8_lossy(&answer.body) });
        output.line(&document.to_string())?;
    } else {
        output.foreign(&answer.body)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The query has only the given options: the service applies the defaults and rejects contradictions.
fn path(args: &LogsArgs) -> String {
    let JobArgs { id, .. } = &args.job;
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
        assert_eq!(path(&args("")), format!("/jobs/{ID}/logs"));
        assert_eq!(
            path(&args("-f --stream err --role po/licy --task 3 --attempt 2 --tail 5")),
            format!("/jobs/{ID}/logs?stream=err&role=po%2Flicy&task=3&attempt=2&tail=5&follow=true")
        );
        assert_eq!(path(&args("--offset 5 --limit 6")), format!("/jobs/{ID}/logs?offset=5&limit=6"));
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
