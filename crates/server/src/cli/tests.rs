use std::{path::Path, time::Duration};

use clap::CommandFactory;

use domain::Status;

use super::{jobs::status, *};

#[test]
fn the_command_line_is_consistent() {
    Cli::command().debug_assert();
}

#[test]
fn help_names_the_variable_of_the_token() {
    for name in ["submit", "status", "logs", "cancel", "list"] {
        let mut command = Cli::command();
        let help = command.find_subcommand_mut(name).unwrap().render_long_help().to_string();
        assert!(help.contains("[env: `TAO_SLURM_TOKEN`]"), "{help}");
    }
}

#[test]
fn a_status_is_accepted_in_any_case() {
    assert_eq!(status("running"), Ok(Status::Running));
    assert_eq!(status("DONE"), Ok(Status::Done));
    assert!(status("lost").unwrap_err().contains("Pending, Started"));
}

#[test]
fn scopes_are_a_list() {
    let line =
        ["tao-slurm", "token", "create", "--owner", "a", "--scope", "read,admin", "--expires-in", "90d"];
    let Command::Token(TokenCommand::Create(token)) = Cli::parse_from(line).command else { panic!() };
    assert_eq!(token.scope, [Scope::Read, Scope::Admin]);
    assert_eq!(token.expires_in, Some(Duration::from_hours(90 * 24)));
}

fn pipeline(arguments: &[&str]) -> Result<PipelineCommand, clap::error::ErrorKind> {
    let line = ["tao-slurm", "pipeline"].iter().chain(arguments);
    match Cli::try_parse_from(line).map_err(|error| error.kind())?.command {
        Command::Pipeline(command) => Ok(command),
        other => panic!("{other:?}"),
    }
}

const ID: &str = "01a21687-3d58-727b-af43-d5f40bfcf423";

#[test]
fn a_pipeline_is_submitted_from_a_file_with_a_key() {
    let submit = pipeline(&["submit", "-", "--watch", "--idempotency-key", "night 1"]);
    let Ok(PipelineCommand::Submit(args)) = submit else { panic!("{submit:?}") };
    assert!(args.watch && args.file == Path::new("-"));
    assert_eq!(args.idempotency_key.as_deref(), Some("night 1"));
    for wrong in ["", "a\nb", "ä", &"k".repeat(256)] {
        let refused = pipeline(&["submit", "-", "--idempotency-key", wrong]).unwrap_err();
        assert_eq!(refused, clap::error::ErrorKind::ValueValidation, "{wrong}");
    }
}

#[test]
fn the_other_commands_of_a_pipeline_take_its_id() {
    for command in ["status", "cancel", "retry"] {
        assert!(pipeline(&[command, ID]).is_ok(), "{command}");
        assert!(pipeline(&[command, "nightly"]).is_err(), "{command}");
    }
    let retry = pipeline(&["retry", ID, "--secrets", "s.yaml"]);
    let Ok(PipelineCommand::Retry(args)) = retry else { panic!("{retry:?}") };
    assert_eq!(args.secrets.as_deref(), Some(Path::new("s.yaml")));
    assert!(pipeline(&["list", "--limit", "201"]).is_err() && pipeline(&["list", "-o", "json"]).is_ok());
}
