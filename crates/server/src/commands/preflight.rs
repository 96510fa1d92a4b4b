//! `tao-slurm preflight`: what is wrong with a cluster, and how to mend it, below each other.

use std::process::ExitCode;

use anyhow::bail;
use serde::Deserialize;

use super::output::Output;
use crate::{
    cli::PreflightArgs,
    client::{Client, columns, on_one_line},
};

#[derive(Deserialize)]
struct Clusters {
    clusters: Vec<Cluster>,
}

#[derive(Deserialize)]
struct Cluster {
    name: String,
    is_default: bool,
}

#[derive(Deserialize)]
struct Answer {
    cluster: String,
    outcome: String,
    checks: Vec<Check>,
}

#[derive(Deserialize)]
struct Check {
    id: String,
    subject: Option<String>,
    outcome: String,
    #[serde(rename = "observed")]
    seen: String,
    #[serde(rename = "fix")]
    mend: Option<String>,
}

pub(super) fn run(args: &PreflightArgs) -> anyhow::Result<ExitCode> {
    let client = Client::new(&args.server);
    let name = match &args.cluster {
        Some(name) => name.to_string(),
        None => default_cluster(&client)?,
    };
    let answer = client.post(&format!("/clusters/{name}/preflight"), b"")?;
    let found: Answer = client.document(&answer.body)?;
    let mut output = Output::new();
    if args.server.json {
        output.document(&answer.body)?;
    } else {
        output.bytes(text(&found).as_bytes())?;
    }
    Ok(if found.outcome == "fail" { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn default_cluster(client: &Client) -> anyhow::Result<String> {
    let Clusters { clusters } = client.document(&client.get("/clusters", None)?.body)?;
    match clusters.into_iter().find(|cluster| cluster.is_default) {
        Some(cluster) => Ok(cluster.name),
        None => bail!(
            "the service has no cluster; set SLURM_USER and SLURM_HOSTNAME, or add a [[clusters]] table, and start it again"
        ),
    }
}

/// All checks as a table, then what to do about those that are not as they should be.
fn text(found: &Answer) -> String {
    let head = ["CHECK", "FOR", "OUTCOME", "SEEN"].map(str::to_owned);
    let row = |check: &Check| {
        [
            check.id.clone(),
            check.subject.clone().unwrap_or_default(),
            check.outcome.clone(),
            check.seen.clone(),
        ]
    };
    let rows: Vec<_> = std::iter::once(head).chain(found.checks.iter().map(row)).collect();
    let mut text = columns(&rows);
    for check in &found.checks {
        let Some(mend) = &check.mend else { continue };
        let subject = check.subject.as_ref().map(|subject| format!(" ({subject})")).unwrap_or_default();
        let lines = [
            format!("{}: {}{subject}", check.outcome, check.id),
            format!("  seen: {}", check.seen),
            format!("  mend: {mend}"),
        ];
        text.push('\n');
        for line in lines {
            text.push_str(&on_one_line(&line));
            text.push('\n');
        }
    }
    text.push_str(&on_one_line(&format!("\u{2014} {}: {}", found.cluster, found.outcome)));
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fails_stands_below_the_table_with_how_to_mend_it() {
        let json = r#"{"cluster": "dgx", "outcome": "fail", "checks": [
            {"id": "login", "subject": "login1", "outcome": "pass", "observed": "logged in", "fix": null},
            {"id": "private_key", "subject": null, "outcome": "fail", "observed": "mode 0644\u001b[2J", "fix": "chmod 600 key"}]}"#;
        let shown = text(&serde_json::from_str(json).unwrap());
        let expected = "\
CHECK        FOR     OUTCOME  SEEN
login        login1  pass     logged in
private_key          fail     mode 0644\u{241b}[2J

fail: private_key
  seen: mode 0644\u{241b}[2J
  mend: chmod 600 key
\u{2014} dgx: fail
";
        assert_eq!(shown, expected);
    }
}
