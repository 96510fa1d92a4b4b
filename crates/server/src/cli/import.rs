//! The arguments of `import`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(crate) enum ImportCommand {
    /// Print the job for a configuration of nemo-evaluator-launcher
    ///
    /// The output has the values of `host:` variables and of `${oc.env:…}`, so treat it as a secret.
    ///
    /// Example: tao-slurm import nemo-evaluator run.yaml -o execution.account=ml --image /lustre/images/lm-eval.sqsh | tao-slurm submit -
    NemoEvaluator(NemoEvaluatorArgs),
}

#[derive(Debug, Args)]
pub(crate) struct NemoEvaluatorArgs {
    /// YAML file with the configuration; `-` reads standard input
    pub(crate) file: PathBuf,
    /// A value in the place of that in the file, such as execution.account=ml
    #[arg(short = 'o', long = "override", value_name = "PATH=VALUE", value_parser = change)]
    pub(crate) changes: Vec<(String, String)>,
    /// The image of the evaluations, or of one task
    #[arg(long, value_name = "[TASK=]IMAGE", value_parser = image)]
    pub(crate) image: Vec<(Option<String>, String)>,
    /// Print a pipeline with a job for each task, not one job with a step for each
    #[arg(long)]
    pub(crate) pipeline: bool,
}

fn change(text: &str) -> Result<(String, String), String> {
    let (path, value) = text.split_once('=').ok_or("must be such as execution.account=ml")?;
    Ok((path.to_owned(), value.to_owned()))
}

#[expect(clippy::unnecessary_wraps, reason = "clap's parsers may fail")]
fn image(text: &str) -> Result<(Option<String>, String), String> {
    Ok(match text.split_once('=') {
        Some((task, image)) => (Some(task.to_owned()), image.to_owned()),
        None => (None, text.to_owned()),
    })
}
