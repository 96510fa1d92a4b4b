//! `completions` and `man`: what a package installs beside the program.

use std::process::ExitCode;

use clap::CommandFactory;

use super::output::Output;
use crate::cli::{Cli, CompletionsArgs};

pub(super) fn completions(args: &CompletionsArgs) -> anyhow::Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "tao-slurm", &mut script);
    Output::new().bytes(&script)?;
    Ok(ExitCode::SUCCESS)
}

/// tao-slurm(1) with all commands and their options.
pub(super) fn man() -> anyhow::Result<ExitCode> {
    let command = Cli::command().disable_help_subcommand(true);
    let man = clap_mangen::Man::new(command.clone());
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_options_section(&mut page)?;
    man.render_extra_section(&mut page)?;
    for command in command.get_subcommands() {
        section(command, "tao-slurm", &mut page)?;
    }
    Output::new().bytes(&page)?;
    Ok(ExitCode::SUCCESS)
}

/// A section for each command, with its synopsis, description and options.
fn section(command: &clap::Command, parent: &str, page: &mut Vec<u8>) -> anyhow::Result<()> {
    let name = format!("{parent} {}", command.get_name());
    if command.has_subcommands() {
        for command in command.get_subcommands() {
            section(command, &name, page)?;
        }
        return Ok(());
    }
    page.extend(format!(".SH \"{}\"\n", name.to_uppercase()).into_bytes());
    let man = clap_mangen::Man::new(command.clone().bin_name(&name).display_name(&name));
    let mut parts = Vec::new();
    man.render_synopsis_section(&mut parts)?;
    man.render_description_section(&mut parts)?;
    man.render_options_section(&mut parts)?;
    // They are parts of this section.
    page.extend(String::from_utf8(parts)?.replace(".SH ", ".SS ").into_bytes());
    Ok(())
}
