//! `tao-slurm logs`: bytes as the job wrote them, unless a terminal would obey them.

use std::process::ExitCode;

use super::output::Output;
use crate::{
    cli::{LogsArgs, Stream},
    client::{Client, printable},
};

pub(super) fn run(args: &LogsArgs) -> anyhow::Result<ExitCode> {
    let stream = match args.stream {
        Stream::Out => "out",
        Stream::Err => "err",
        Stream::All => "all",
    };
    let tail = args.tail.map(|lines| format!("&tail={lines}")).unwrap_or_default();
    let answer =
        Client::new(&args.server).get(&format!("/jobs/{}/logs?stream={stream}{tail}", args.id), None)?;
    let mut output = Output::new();
    if args.server.json {
        let document = serde_json::json!({ "stream": stream, "text": String::from_utf8_lossy(&answer.body) });
        output.line(&document.to_string())?;
    } else if output.is_terminal {
        output.bytes(printable(&answer.body).as_bytes())?;
    } else {
        output.bytes(&answer.body)?;
    }
    Ok(ExitCode::SUCCESS)
}
