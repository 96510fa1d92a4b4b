//! What of a configuration is not in the request, or is otherwise there.

use super::{config::Config, evaluation::Evaluation};

/// The settings that only other parts of the launcher read.
const ELSEWHERE: [&str; 6] = ["type", "hostname", "username", "output_dir", "subproject", "deployment"];
/// The settings that are read here.
const READ: [&str; 18] = [
    "account",
    "partition",
    "cpu_partition",
    "num_nodes",
    "num_instances",
    "ntasks_per_node",
    "gres",
    "gpus_per_node",
    "walltime",
    "max_walltime",
    "endpoint_readiness_timeout",
    "sbatch_comment",
    "sbatch_extra_flags",
    "mounts",
    "proxy",
    "auto_export",
    "env_vars",
    "n_tasks",
];

/// What the request does not have, or has otherwise. `one_job`: all evaluations are steps of it.
pub(super) fn left_out(
    config: &Config<'_>,
    one_job: bool,
    all: &[Evaluation],
) -> anyhow::Result<Vec<String>> {
    let mut left_out = Vec::new();
    for one in all.iter().filter(|one| one.kind(config).is_ok_and(|kind| kind.is_none())) {
        left_out.push(format!(
            "{}: the launcher's list has the type of its endpoint; it is chat here, unless the file has endpoint_type",
            one.task
        ));
    }
    if one_job && all.len() > 1 {
        left_out.push(
            "execution.walltime: it is for all tasks together; after a time limit the job begins with the first one again".to_owned(),
        );
    }
    for name in config.keys("auxiliary_deployments") {
        for key in ["num_instances", "env_prefix", "command_template"] {
            let path = format!("auxiliary_deployments.{name}.{key}");
            if config.get(&path)?.is_some() {
                left_out.push(format!("{path}: there is no such setting here"));
            }
        }
    }
    for key in ["evaluation.config", "evaluation.overrides"] {
        if config.get(key)?.is_some() {
            left_out.push(format!("{key}: an earlier name; use evaluation.nemo_evaluator_config"));
        }
    }
    if one_job && config.has("execution.auto_export") {
        left_out
            .push("execution.auto_export: only a pipeline has a job that exports; use --pipeline".to_owned());
    } else if config.has("execution.auto_export") {
        left_out
            .push("export: the exporter finds no logs and no configuration of the run to export".to_owned());
    }
    if !config.fields("execution.env_vars")?.is_empty() {
        left_out.push(
            "execution.env_vars: the launcher no longer reads it; use env_vars of the deployment and of the evaluation".to_owned(),
        );
    }
    for key in &config.keys("execution") {
        let known = READ.contains(&key.as_str())
            || ELSEWHERE.contains(&key.as_str())
            || key == "evaluation_gpu_visible";
        if !known {
            left_out.push(format!("execution.{key}: there is no such setting here"));
        }
    }
    if config.number("execution.ntasks_per_node")?.is_some_and(|tasks| tasks > 1) {
        left_out.push("execution.ntasks_per_node: a service starts once on each of its nodes".to_owned());
    }
    Ok(left_out)
}
