//! The export of results: a job that needs the success of an evaluation, and runs the launcher's own exporter.

use std::{collections::BTreeSet, fmt::Write as _};

use anyhow::bail;
use serde_json::{Map, Value, json};

use super::{config::Config, evaluation::Evaluation, variables::Variables};

/// The launcher's default.
const IMAGE: &str = "python:3.12.7-slim";
const INSTALL: &str = "pip install \"nemo-evaluator-launcher[all]\"";

/// The destinations of `execution.auto_export`: a list, or a section that has one.
pub(super) fn destinations(config: &Config<'_>) -> anyhow::Result<BTreeSet<String>> {
    const LIST: &str = "execution.auto_export.destinations";
    if !config.has("execution.auto_export") {
        return Ok(BTreeSet::new());
    }
    let named = if config.has(LIST) { config.get(LIST)? } else { config.get("execution.auto_export")? };
    // They are words of a script.
    let word = |one: &Value| {
        one.as_str()
            .filter(|name| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric()))
            .map(str::to_owned)
    };
    let read: Option<BTreeSet<String>> =
        named.as_ref().and_then(Value::as_array).and_then(|list| list.iter().map(word).collect());
    match read {
        Some(all) => Ok(all),
        None => bail!("`{LIST}` must be a list of names such as mlflow"),
    }
}

/// The job that exports the results of an evaluation.
pub(super) fn export(
    config: &Config<'_>,
    one: &Evaluation,
    destinations: &BTreeSet<String>,
) -> anyhow::Result<Value> {
    let mut step = Map::new();
    step.insert("name".to_owned(), "export".into());
    let image = config.text("execution.auto_export.export_image")?;
    step.insert("image".to_owned(), image.unwrap_or_else(|| IMAGE.to_owned()).into());
    step.insert("command".to_owned(), command(config, one, destinations)?.into());
    let mounts = config.mounts("execution.auto_export.export_mounts")?;
    if !mounts.is_empty() {
        step.insert("container".to_owned(), json!({"mounts": mounts}));
    }
    let sections = ["env_vars".to_owned(), "export.env_vars".to_owned()];
    Variables::read(config, &sections)?.put(&mut step);
    let partition = match config.text("execution.cpu_partition")? {
        Some(partition) => partition,
        None => config.needed("execution.partition")?,
    };
    // The exporter takes a file without a section for its destination as that section.
    let mut settings = Map::new();
    for destination in destinations {
        settings.insert(destination.clone(), config.fields(&format!("export.{destination}"))?.into());
    }
    // By this the exporter finds the task of a directory.
    let run = json!({"execution": {"type": "local"}, "evaluation": {"tasks": [{"name": "task"}]}});
    Ok(json!({
        "name": format!("export {}", one.task),
        "needs": [{"job": one.name}],
        "steps": [step],
        "files": {
            "export.yaml": {"json": {"export": settings}, "mode": "0600"},
            "metadata.yaml": {"json": {"launcher_resolved_config": run}},
        },
        "resources": {"num_nodes": 1, "gpus_per_node": 0, "time_hours": 0.5},
        "backend_details": {"account": config.needed("execution.account")?, "partition": partition},
    }))
}

/// The exporter wants the directories of the launcher. It returns 0 although an export has failed.
fn command(config: &Config<'_>, one: &Evaluation, destinations: &BTreeSet<String>) -> anyhow::Result<String> {
    let install = config.text("execution.auto_export.launcher_install_cmd")?;
    let mut text = install.as_deref().map_or(INSTALL, str::trim_end).to_owned();
    let variable = one.name.to_uppercase().replace('-', "_");
    // The id of the evaluation: an exporter adds to the run that it has already, by the id.
    let _ = write!(
        text,
        "\nresults=$TAO_API_RESULTS_DIR/$TAO_API_JOB_ID\n\
         task=$results/20000101_000000-$NEEDS_{variable}_ID/task.0\n\
         mkdir -p \"$task/artifacts\" \"$task/logs\"\n\
         cp -rsf \"$NEEDS_{variable}_DIR/{}/.\" \"$task/artifacts\"\n\
         ln -sf \"$TAO_JOB_FILES/metadata.yaml\" \"$task/artifacts/metadata.yaml\"\n\
         cd \"$results\"\n",
        one.name,
    );
    for destination in destinations {
        let _ = write!(
            text,
            "nemo-evaluator-launcher export \"$NEEDS_{variable}_ID.0\" --dest {destination} \
             --config \"$TAO_JOB_FILES/export.yaml\" --job-dirs \"$results\" 2>&1 | tee export.log\n\
             if grep -qi 'failed to export' export.log; then exit 1; fi\n"
        );
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use std::{fs, process::Command};

    use test_case::test_case;

    use super::*;

    /// What the exporter of the launcher needs, in its words.
    const EXPORTER: &str = r#"#!/bin/bash
run=$8/20000101_000000-${2%.0}/task.0
if [ -d "$run/logs" ] && [ "$(cat "$run/artifacts/results.yml")" = scores ] && [ -e "$run/artifacts/metadata.yaml" ]; then
  echo "Export completed to $4"
else
  echo 'Some jobs failed to export. See logs above for more details.'
fi
"#;

    #[test_case("results.yml", true; "results")]
    #[test_case("other", false; "no results")]
    fn the_job_fails_if_the_exporter_says_so(file: &str, is_done: bool) {
        let config = json!({
            "execution": {"account": "ml", "partition": "gpu", "auto_export": ["local"]},
            "evaluation": {"tasks": [{"name": "x"}]},
        });
        let config = Config::compose(config, &[], &|_| None).unwrap();
        let one = Evaluation { name: "a-b".to_owned(), task: "x".to_owned(), place: 0 };
        let job = export(&config, &one, &destinations(&config).unwrap()).unwrap();
        let home = tempfile::tempdir().unwrap();
        let path = |name: &str| home.path().join(name);
        for directory in ["bin", "files", "of/a-b"] {
            fs::create_dir_all(path(directory)).unwrap();
        }
        for (program, text) in [("pip", "#!/bin/bash\n"), ("nemo-evaluator-launcher", EXPORTER)] {
            fs::write(path(&format!("bin/{program}")), text).unwrap();
            Command::new("chmod").arg("755").arg(path(&format!("bin/{program}"))).status().unwrap();
        }
        fs::write(path("files/metadata.yaml"), "{}").unwrap();
        fs::write(path("of/a-b").join(file), "scores").unwrap();
        let command = job["steps"][0]["command"].as_str().unwrap();
        let command = format!("PATH={}:$PATH\n{command}", path("bin").display());
        let ended = Command::new("bash")
            .args(["-euo", "pipefail", "-c", &command])
            .env("TAO_API_RESULTS_DIR", path("results"))
            .env("TAO_API_JOB_ID", "job")
            .env("TAO_JOB_FILES", path("files"))
            .env("NEEDS_A_B_DIR", path("of"))
            .env("NEEDS_A_B_ID", "0f8fad5b-d9cb-469f-a165-70867728950e")
            .output()
            .unwrap();
        assert_eq!(ended.status.success(), is_done, "{ended:?}");
    }

    #[test_case(&json!(["mlflow", "wandb", "mlflow"]), Some(2); "a list")]
    #[test_case(&json!({"destinations": ["local"]}), Some(1); "a section")]
    #[test_case(&json!({"destinations": []}), Some(0); "none")]
    #[test_case(&Value::Null, Some(0); "null")]
    #[test_case(&json!({"destinations": "mlflow"}), None; "a text")]
    #[test_case(&json!({"destinations": [""]}), None; "no name")]
    #[test_case(&json!({"destinations": ["mlflow; rm -rf /"]}), None; "a text for a shell")]
    fn destinations_are_names(asked: &Value, count: Option<usize>) {
        let config = Config::compose(json!({"execution": {"auto_export": asked}}), &[], &|_| None).unwrap();
        assert_eq!(destinations(&config).ok().map(|names| names.len()), count);
    }
}
