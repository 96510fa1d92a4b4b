//! `pipeline`: jobs that are stored together and need each other.

use std::process::ExitCode;

use domain::Ids;
use serde::Deserialize;

use super::{
    follow, interrupt,
    output::{Output, note},
    request_file,
};
use crate::{
    cli::{
        Format, PipelineArgs, PipelineCommand, PipelineListArgs, PipelineRetryArgs, PipelineStatusArgs,
        PipelineSubmitArgs,
    },
    client::{Answer, Client, PipelineDocument, PipelineSummary, on_one_line, table, with_query},
    process::clock::RandomIds,
};

pub(super) fn run(command: &PipelineCommand) -> anyhow::Result<ExitCode> {
    match command {
        PipelineCommand::Submit(args) => submit(args),
        PipelineCommand::Status(args) => status(args),
        PipelineCommand::List(args) => list(args),
        PipelineCommand::Cancel(args) => post(args, "cancel", b""),
        PipelineCommand::Retry(args) => retry(args),
    }
}

fn submit(args: &PipelineSubmitArgs) -> anyhow::Result<ExitCode> {
    let pipeline = request_file::read(&args.file, "a pipeline")?;
    let client = Client::new(&args.server)?;
    let key = args.idempotency_key.clone().unwrap_or_else(|| RandomIds.job().to_string());
    let answer = follow::repeated("the pipeline is submitted once", || {
        client.post_once("/pipelines", &pipeline, Some(&key))
    })?;
    let mut output = Output::new();
    let PipelineSummary { id, .. } = answer.document()?;
    output.show(&args.server, &answer, |pipeline: PipelineDocument| {
        let id = on_one_line(&pipeline.summary.id);
        // With `--watch` the drawing follows anyway.
        if args.watch { id + "\n" } else { format!("{id}\n{}", pipeline.drawing()) }
    })?;
    if args.watch { watch(&client, &id, args.server.output, output) } else { Ok(ExitCode::SUCCESS) }
}

fn status(args: &PipelineStatusArgs) -> anyhow::Result<ExitCode> {
    let PipelineArgs { id, server } = &args.pipeline;
    let client = Client::new(server)?;
    if args.watch {
        return watch(&client, &id.to_string(), server.output, Output::new());
    }
    let answer = client.get(&format!("/pipelines/{id}"))?;
    Output::new().show(server, &answer, |pipeline: PipelineDocument| pipeline.drawing())
}

#[derive(Deserialize)]
struct Pipelines {
    pipelines: Vec<PipelineSummary>,
    next_page_token: Option<String>,
}

fn list(args: &PipelineListArgs) -> anyhow::Result<ExitCode> {
    let path = with_query("/pipelines", [("limit", Some(args.limit.to_string()))]);
    let answer = Client::new(&args.server)?.get(&path)?;
    let mut output = Output::new();
    output.show(&args.server, &answer, |page: Pipelines| {
        if page.next_page_token.is_some() {
            note("More pipelines exist; raise --limit.");
        }
        table(["ID", "STATUS", "CREATED", "JOBS", "NAME"], page.pipelines.iter().map(PipelineSummary::row))
    })
}

fn retry(args: &PipelineRetryArgs) -> anyhow::Result<ExitCode> {
    let body = match &args.secrets {
        // Secrets come from a file, because every user of the machine can read the arguments of a process.
        Some(file) => request_file::read(file, "secrets")?,
        None => Vec::new(),
    };
    post(&args.pipeline, "retry", &body)
}

/// Calls `POST /pipelines/{id}/{action}` and draws the pipeline.
fn post(args: &PipelineArgs, action: &str, body: &[u8]) -> anyhow::Result<ExitCode> {
    let answer = Client::new(&args.server)?.post(&format!("/pipelines/{}/{action}", args.id), body)?;
    Output::new().show(&args.server, &answer, |pipeline: PipelineDocument| pipeline.drawing())
}

/// Draws the pipeline until it ends: on a terminal in place, else one line for each change.
fn watch(client: &Client, id: &str, format: Format, mut output: Output) -> anyhow::Result<ExitCode> {
    let id = on_one_line(id);
    interrupt::say(format!(
        "The jobs go on. Come back with `tao-slurm pipeline status {id} --watch`; end them with `tao-slurm pipeline cancel {id}`."
    ));
    let in_place = output.is_terminal && !format.is_document();
    let (mut before, mut drawn) = (None::<PipelineDocument>, 0);
    follow::until_final(
        client,
        &format!("/pipelines/{id}"),
        "its jobs are not affected",
        |answer: &Answer| {
            let pipeline: PipelineDocument = answer.document()?;
            let code = pipeline.exit_code();
            if format.is_document() {
                output.document(format, &answer.document()?)?;
            } else if in_place {
                // The final drawing stays on the terminal, in full.
                let drawing = match code {
                    Some(_) => pipeline.drawing(),
                    None => pipeline.live(output.width(), output.height()),
                };
                output.text(&redrawn(&drawing, drawn))?;
                drawn = drawing.lines().count();
            } else {
                let lines =
                    before.as_ref().map_or_else(|| pipeline.drawing(), |before| pipeline.changes(before));
                output.text(&lines)?;
            }
            before = Some(pipeline);
            Ok(code)
        },
    )
}

/// The drawing, with the escape sequences that remove the previous one of `drawn` lines.
fn redrawn(drawing: &str, drawn: usize) -> String {
    if drawn == 0 { drawing.to_owned() } else { format!("\r\u{1b}[{drawn}A\u{1b}[J{drawing}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drawing_removes_the_one_before() {
        assert_eq!(redrawn("a\n", 0), "a\n");
        assert_eq!(redrawn("a\n", 3), "\r\u{1b}[3A\u{1b}[Ja\n");
    }
}
