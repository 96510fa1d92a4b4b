//! `tao-slurm logs`: bytes as the job wrote them, unless a terminal would obey them.

use std::process::ExitCode;

use clap::ValueEnum;

use super::{follow, output::Output};
use crate::{
    cli::{LogsArgs, Stream},
    client::{Client, escaped, printable},
};

pub(super) fn run(args: &LogsArgs) -> anyhow::Result<ExitCode> {
    let client = Client::new(&args.server);
    let path = path(args);
    if args.follow {
        return follow::to_the_end(&client, &path, args.server.json, is_one(args));
    }
    let answer = client.get(&path, None)?;
    let mut output = Output::new();
    if args.server.json {
        let stream = name(args.stream.unwrap_or(Stream::All));
        let document = serde_json::json!({ "stream": stream, "text": String::from_utf8_lossy(&answer.body) });
        output.line(&document.to_string())?;
    } else if output.is_terminal {
        output.bytes(printable(&answer.body).as_bytes())?;
    } else {
        output.bytes(&answer.body)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn name(stream: Stream) -> String {
    stream.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
}

/// Only what was said: the service knows the defaults, and what contradicts what.
fn path(args: &LogsArgs) -> String {
    let said = [
        ("stream", args.stream.map(name)),
        ("role", args.role.as_deref().map(escaped)),
        ("task", args.task.map(|task| task.to_string())),
        ("attempt", args.attempt.map(|attempt| attempt.to_string())),
        ("tail", args.tail.map(|lines| lines.to_string())),
        ("offset", args.offset.map(|offset| offset.to_string())),
        ("limit", args.limit.map(|limit| limit.to_string())),
        ("follow", args.follow.then(|| "true".to_owned())),
    ];
    let said: Vec<_> =
        said.into_iter().filter_map(|(key, value)| Some(format!("{key}={}", value?))).collect();
    let mark = if said.is_empty() { "" } else { "?" };
    format!("/jobs/{}/logs{mark}{}", args.id, said.join("&"))
}

/// Whether the bytes of one log come, and no others.
fn is_one(args: &LogsArgs) -> bool {
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
    fn only_what_was_said_is_asked() {
        assert_eq!(path(&args("")), format!("/jobs/{ID}/logs"));
        assert_eq!(
            path(&args("-f --stream err --role po/licy --task 3 --attempt 2 --tail 5")),
            format!("/jobs/{ID}/logs?stream=err&role=po%2Flicy&task=3&attempt=2&tail=5&follow=true")
        );
        assert_eq!(path(&args("--offset 5 --limit 6")), format!("/jobs/{ID}/logs?offset=5&limit=6"));
    }

    #[test]
    fn one_log_is_known_as_such() {
        for (line, one) in [
            ("", false),
            ("--stream out", true),
            ("--stream out --role policy", false),
            ("--stream out --role policy --task 0", true),
            ("--stream policy", false),
            ("--offset 0", true),
        ] {
            assert_eq!(is_one(&args(line)), one, "{line}");
        }
    }
}
