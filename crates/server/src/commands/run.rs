//! `run`: a job from the command line.

use std::process::ExitCode;

use anyhow::{Context, bail};
use serde_json::{Map, Value, json};

use super::{output::Output, submit};
use crate::{
    cli::{Format, RunArgs},
    config::Environment,
};

pub(super) fn run(args: &RunArgs, environment: &Environment) -> anyhow::Result<ExitCode> {
    let job = request(args, &|name| environment.get(name).map(str::to_owned))?;
    if args.dry_run {
        let format = if args.server.output == Format::Json { Format::Json } else { Format::Yaml };
        Output::new().document(format, &without_secrets(job))?;
        return Ok(ExitCode::SUCCESS);
    }
    submit::send(&args.server, &serde_json::to_vec(&job)?, args.follow.then_some(submit::Then::Log))
}

/// The job that the service gets. `variable`: the environment of this command.
fn request(args: &RunArgs, variable: &dyn Fn(&str) -> Option<String>) -> anyhow::Result<Value> {
    let mut job = Map::new();
    let resources = [
        ("gpus_per_node", args.gpus.map(Value::from)),
        ("num_nodes", args.nodes.map(Value::from)),
        ("cpus_per_task", args.cpus.map(Value::from)),
        ("memory", args.mem.clone().map(Value::from)),
        ("time_hours", args.time.map(Value::from)),
    ];
    let backend = [
        ("partition", args.partition.clone().map(Value::from)),
        ("account", args.account.clone().map(Value::from)),
        ("cluster_name", args.cluster.as_ref().map(|name| name.to_string().into())),
    ];
    let labels = args.label.iter().map(|(key, value)| (key.as_str(), Some(value.clone().into())));
    let mut variables = Vec::new();
    for (name, value) in &args.env {
        let value = match value {
            Some(value) => value.clone(),
            None => variable(name).with_context(|| {
                format!("--env {name}: this command's environment has no {name}; write --env {name}=VALUE")
            })?,
        };
        variables.push((name.as_str(), Some(value.into())));
    }
    let mut secrets = Vec::new();
    for name in &args.secret_env {
        if let Some((name, _)) = name.split_once('=') {
            // Every user of the machine can read the arguments of a process.
            bail!(
                "--secret-env takes a name alone: set {name} in the environment of this command, and write --secret-env {name}"
            );
        }
        let value = variable(name)
            .with_context(|| format!("--secret-env {name}: this command's environment has no {name}"))?;
        secrets.push((name.as_str(), Some(value.into())));
    }
    let fields = [
        ("name", args.name.clone().map(Value::from)),
        ("command", Some(script(&args.command)?.into())),
        ("image", args.image.clone().map(Value::from)),
        ("workdir", args.workdir.clone().map(Value::from)),
        ("launcher", args.launcher.clone().map(Value::from)),
        ("array", array(&args.array)?),
        ("labels", object(labels)),
        ("docker_env_vars", object(variables)),
        ("secret_env_vars", object(secrets)),
        ("resources", object(resources)),
        ("backend_details", object(backend)),
    ];
    job.extend(fields.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))));
    Ok(job.into())
}

/// None without a value.
fn object<'a>(fields: impl IntoIterator<Item = (&'a str, Option<Value>)>) -> Option<Value> {
    let fields: Map<_, _> =
        fields.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))).collect();
    (!fields.is_empty()).then(|| fields.into())
}

/// One word is a script as it is; several are the words of one command, as the user's shell has split them.
fn script(words: &[String]) -> anyhow::Result<String> {
    match words {
        [script] => Ok(script.clone()),
        words => shlex::try_join(words.iter().map(String::as_str)).context("the command has a NUL byte"),
    }
}

/// Numbers such as `0-99`, or `KEY=VALUES` for each parameter.
fn array(options: &[String]) -> anyhow::Result<Option<Value>> {
    let mut matrix = Map::new();
    for option in options {
        match option.split_once('=') {
            None if options.len() == 1 => return Ok(Some(json!({"indices": option}))),
            None => bail!("--array {option}: give numbers once, or KEY=VALUES for each parameter"),
            Some((key, values)) => {
                // Numbers and booleans stay such.
                let value = |text: &str| match serde_json::from_str(text) {
                    Ok(value @ (Value::Number(_) | Value::Bool(_))) => value,
                    _ => Value::from(text),
                };
                if matrix.insert(key.to_owned(), values.split(',').map(value).collect()).is_some() {
                    bail!("--array {key} is there twice; separate its values by commas");
                }
            }
        }
    }
    Ok((!matrix.is_empty()).then(|| json!({"matrix": matrix})))
}

fn without_secrets(mut job: Value) -> Value {
    if let Some(Value::Object(secrets)) = job.get_mut("secret_env_vars") {
        secrets.values_mut().for_each(|value| *value = "(secret)".into());
    }
    job
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::{Cli, Command};

    fn made(line: &[&str]) -> anyhow::Result<Value> {
        let Command::Run(args) = Cli::parse_from(["tao-slurm", "run"].iter().chain(line)).command else {
            panic!("{line:?}")
        };
        request(&args, &|name| (name == "HF_TOKEN").then(|| "hf_1".to_owned()))
    }

    #[test]
    fn options_become_the_fields_of_a_job() {
        let line = [
            "--gpus",
            "8",
            "-N",
            "2",
            "--time",
            "2h",
            "-p",
            "polar",
            "--image",
            "/lustre/a.sqsh",
            "--name",
            "t",
            "--label",
            "team=vision",
            "--env",
            "A=1=2",
            "--env",
            "HF_TOKEN",
            "--launcher",
            "torchrun",
            "--cluster",
            "dgx",
            "--mem",
            "64G",
            "--",
            "python",
            "train.py",
            "--name",
            "a b",
        ];
        let expected = json!({
            "name": "t", "command": "python train.py --name 'a b'", "image": "/lustre/a.sqsh", "launcher": "torchrun",
            "labels": {"team": "vision"}, "docker_env_vars": {"A": "1=2", "HF_TOKEN": "hf_1"},
            "resources": {"gpus_per_node": 8, "num_nodes": 2, "memory": "64G", "time_hours": 2.0},
            "backend_details": {"partition": "polar", "cluster_name": "dgx"},
        });
        assert_eq!(made(&line).unwrap(), expected);
        assert_eq!(
            made(&["--", "nvidia-smi && echo done"]).unwrap(),
            json!({"command": "nvidia-smi && echo done"})
        );
    }

    #[test]
    fn an_array_has_numbers_or_values() {
        let array = |line: &[&str]| made(&[line, &["--", "true"]].concat()).map(|job| job["array"].clone());
        assert_eq!(array(&["--array", "0-99"]).unwrap(), json!({"indices": "0-99"}));
        let matrix =
            array(&["--array", "lr=0.1,0.01", "--array", "model=a,b", "--array", "fast=true"]).unwrap();
        assert_eq!(matrix, json!({"matrix": {"lr": [0.1, 0.01], "model": ["a", "b"], "fast": [true]}}));
        assert!(array(&["--array", "0-9", "--array", "a=1"]).is_err());
        assert!(array(&["--array", "a=1", "--array", "a=2"]).is_err());
    }

    #[test]
    fn secrets_come_from_the_environment_and_are_not_printed() {
        let job = made(&["--secret-env", "HF_TOKEN", "--", "true"]).unwrap();
        assert_eq!(job["secret_env_vars"], json!({"HF_TOKEN": "hf_1"}));
        assert_eq!(without_secrets(job)["secret_env_vars"], json!({"HF_TOKEN": "(secret)"}));
        let refused = made(&["--secret-env", "KEY=hunter2", "--", "true"]).unwrap_err().to_string();
        assert!(refused.contains("--secret-env KEY") && !refused.contains("hunter2"), "{refused}");
        assert!(made(&["--secret-env", "NO_SUCH", "--", "true"]).is_err());
    }
}
