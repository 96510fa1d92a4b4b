//! The export of results: a job that needs the success of an evaluation, and runs the launcher's own exporter.

use std::fmt::Write as _;

use anyhow::bail;
use serde_json::{Map, Value, json};

use super::{config::Config, evaluation::Evaluation, variables::Variables};

/// The launcher's default.
const IMAGE: &str = "python:3.12.7-slim";
const INSTALL: &str = "pip install \"nemo-evaluator-launcher[all]\"";

/// The destinations of `execution.auto_export`.
pub(super) fn destinations(config: &Config<'_>) -> anyhow::Result<Vec<String>> {
    let named = config.get("execution.auto_export.destinations")?;
    let named = named.iter().filter_map(Value::as_array).flatten().filter_map(Value::as_str);
    let named: Vec<String> = named.map(str::to_owned).collect();
    // They are words of a script.
    if let Some(other) = named.iter().find(|name| !name.bytes().all(|byte| byte.is_ascii_alphanumeric())) {
        bail!("`execution.auto_export.destinations` has {other}; it must have names such as mlflow");
    }
    Ok(named)
}

/// The job that exports the results of an evaluation. `backend`: the account and so on of the evaluation.
pub(super) fn export(
    config: &Config<'_>,
    one: &Evaluation,
    destinations: &[String],
    mut backend: Value,
) -> anyhow::Result<Value> {
    let mut step = Map::new();
    step.insert("name".to_owned(), "export".into());
    let image = config.text("execution.auto_export.export_image")?;
    step.insert("image".to_owned(), image.unwrap_or_else(|| IMAGE.to_owned()).into());
    step.insert("command".to_owned(), command(config, one, destinations)?.into());
    let mounts = config.fields("execution.auto_export.export_mounts")?;
    let mounts: Vec<String> = mounts
        .iter()
        .map(|(outside, inside)| format!("{outside}:{}", inside.as_str().unwrap_or(outside)))
        .collect();
    if !mounts.is_empty() {
        step.insert("container".to_owned(), json!({"mounts": mounts}));
    }
    let sections = ["env_vars".to_owned(), "export.env_vars".to_owned()];
    Variables::read(config, &sections)?.put(&mut step);
    if let (Some(partition), Some(backend)) =
        (config.text("execution.cpu_partition")?, backend.as_object_mut())
    {
        backend.insert("partition".to_owned(), partition.into());
    }
    // The exporter takes a file without a section for its destination as that section.
    let mut settings = config.fields("export")?;
    for destination in destinations {
        settings.entry(destination).or_insert_with(|| json!({}));
    }
    // By this the exporter finds the task of a directory.
    let run = json!({"execution": {"type": "local"}, "evaluation": {"tasks": [{"name": "task"}]}});
    Ok(json!({
        "name": format!("export {}", one.task),
        "needs": [{"job": one.name}],
        "steps": [step],
        "files": {
            "export.yaml": {"json": {"export": settings}},
            "metadata.yaml": {"json": {"launcher_resolved_config": run}},
        },
        "resources": {"num_nodes": 1, "gpus_per_node": 0, "time_hours": 0.5},
        "backend_details": backend,
    }))
}

/// The exporter wants the directories of the launcher. It returns 0 although an export has failed.
fn command(config: &Config<'_>, one: &Evaluation, destinations: &[String]) -> anyhow::Result<String> {
    let install = config.text("execution.auto_export.launcher_install_cmd")?;
    let mut text = install.as_deref().map_or(INSTALL, str::trim_end).to_owned();
    let variable = one.name.to_uppercase().replace('-', "_");
    let _ = write!(
        text,
        "\nresults=$TAO_API_RESULTS_DIR/$TAO_API_JOB_ID\n\
         artifacts=$results/20000101_000000-run/task.0/artifacts\n\
         mkdir -p \"$artifacts\"\n\
         cp -rsf \"$NEEDS_{variable}_DIR/{}/.\" \"$artifacts\"\n\
         ln -sf \"$TAO_JOB_FILES/metadata.yaml\" \"$artifacts/metadata.yaml\"\n\
         cd \"$results\"\n",
        one.name,
    );
    for destination in destinations {
        let _ = write!(
            text,
            "nemo-evaluator-launcher export run.0 --dest {destination} --config \"$TAO_JOB_FILES/export.yaml\" \
             --job-dirs \"$results\" 2>&1 | tee export.log\n\
             if grep -qi 'failed to export' export.log; then exit 1; fi\n"
        );
    }
    Ok(text)
}
