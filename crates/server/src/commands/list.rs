//! `tao-slurm list`: the newest jobs as a table.

use std::process::ExitCode;

use serde::Deserialize;

use super::output::{Output, remark};
use crate::{
    cli::ListArgs,
    client::{Client, StatusDocument, table},
};

#[derive(Deserialize)]
struct Page {
    jobs: Vec<StatusDocument>,
    next_page_token: Option<String>,
}

pub(super) fn run(args: &ListArgs) -> anyhow::Result<ExitCode> {
    let client = Client::new(&args.server);
    let status = args.status.map(|status| format!("&status={status}")).unwrap_or_default();
    let answer = client.get(&format!("/jobs?limit={}{status}", args.limit), None)?;
    let mut output = Output::new();
    if args.server.json {
        output.document(&answer.body)?;
        return Ok(ExitCode::SUCCESS);
    }
    let page: Page = client.document(&answer.body)?;
    output.bytes(table(&page.jobs).as_bytes())?;
    if page.next_page_token.is_some() && output.is_terminal {
        remark("There are more; raise --limit, or narrow with --status.");
    }
    Ok(ExitCode::SUCCESS)
}
