//! `import`: the configuration of another launcher as a request.

use std::process::ExitCode;

use anyhow::Context;
use serde_json::Value;

use super::{
    output::{Output, note},
    request_file,
};
use crate::{
    cli::{ImportCommand, NemoEvaluatorArgs},
    client::on_one_line,
    config::Environment,
    import::{Form, Options, nemo_evaluator},
};

pub(super) fn run(command: &ImportCommand, environment: &Environment) -> anyhow::Result<ExitCode> {
    let ImportCommand::NemoEvaluator(NemoEvaluatorArgs { file, changes, image, pipeline }) = command;
    let config = serde_json::from_slice(&request_file::read(file, "a configuration")?)?;
    let value = |text: &String| serde_json::from_str(text).unwrap_or_else(|_| Value::from(text.clone()));
    let imported = nemo_evaluator(
        config,
        &Options {
            form: if *pipeline { Form::Pipeline } else { Form::Job },
            changes: changes.iter().map(|(path, text)| (path.clone(), value(text))).collect(),
            images: image.clone(),
            host: &|name| environment.get(name).map(str::to_owned),
        },
    )
    .with_context(|| format!("{} is not imported", on_one_line(&file.display().to_string())))?;
    for text in &imported.left_out {
        note(&format!("left out: {}", on_one_line(text)));
    }
    Output::new().line(&serde_json::to_string_pretty(&imported.request)?)?;
    Ok(ExitCode::SUCCESS)
}
