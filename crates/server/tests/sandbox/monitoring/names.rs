//! The names and HELP texts of the metrics.

use std::{
    collections::BTreeSet,
    fs,
    io::Write,
    path::Path,
    process::{Command, Stdio},
};

use serde_json::json;

use super::DEPLOY;
use crate::service::Service;

#[test]
fn promtool_accepts_the_metrics_of_a_live_server() {
    let service = Service::start();
    let job = service.submit(&json!({"command": "true", "resources": {"num_gpus": 1}}));
    service.wait_ended(&job);
    let metrics = service.get("/metrics").text;

    let mut promtool = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("promtool: {error}; `ci/setup --test` installs it"));
    promtool.stdin.take().unwrap().write_all(metrics.as_bytes()).unwrap();
    let checked = promtool.wait_with_output().unwrap();
    assert!(checked.status.success(), "{}: {}", checked.status, String::from_utf8_lossy(&checked.stderr));

    let served = metrics.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next());
    let foreign: Vec<&str> = served.filter(|name| !name.starts_with("tao_slurm_")).collect();
    assert_eq!(foreign, Vec::<&str>::new(), "these lack the prefix");
}

/// Some metrics appear only after a failure, so promtool does not see them above.
#[test]
fn each_metric_of_the_sources_has_a_help_text_and_a_line_in_the_documentation() {
    let crates = format!("{DEPLOY}/../crates");
    let (mut used, mut helped) = (BTreeSet::new(), BTreeSet::new());
    for of_a_crate in fs::read_dir(crates).unwrap() {
        visit(&of_a_crate.unwrap().path().join("src"), &mut |path, text| {
            // Names of Postgres channels look the same.
            if !text.contains("metrics::") {
                return;
            }
            let found = if path.ends_with("process/metric_help.rs") { &mut helped } else { &mut used };
            found.extend(text.split('"').filter(|literal| is_metric(literal)).map(str::to_owned));
        });
    }
    assert_eq!(used, helped, "left: in the sources; right: in metric_help.rs");
    let documented = fs::read_to_string(format!("{DEPLOY}/../docs/operations/monitoring.md")).unwrap();
    // `tao_slurm_watchers{kind}`
    let documented = documented.split('`').map(|quoted| quoted.split('{').next().unwrap_or_default());
    let documented: BTreeSet<String> = documented.filter(|name| is_metric(name)).map(str::to_owned).collect();
    assert_eq!(documented, helped, "left: in monitoring.md; right: in metric_help.rs");
}

fn is_metric(text: &str) -> bool {
    let rest = text.strip_prefix("tao_slurm_");
    rest.is_some_and(|rest| !rest.is_empty() && rest.chars().all(|c| c.is_ascii_lowercase() || c == '_'))
}

/// Reads each Rust file below the directory.
fn visit(directory: &Path, read: &mut impl FnMut(&Path, &str)) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            visit(&path, read);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            read(&path, &fs::read_to_string(&path).unwrap());
        }
    }
}
