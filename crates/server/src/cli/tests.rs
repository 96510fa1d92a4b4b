use clap::CommandFactory;

use std::time::Duration;

use domain::Status;

use super::{jobs::status, *};

#[test]
fn the_command_line_is_consistent() {
    Cli::command().debug_assert();
}

#[test]
fn a_token_in_the_environment_is_never_shown_in_help() {
    for name in ["submit", "status", "logs", "cancel", "list"] {
        let mut command = Cli::command();
        let help = command.find_subcommand_mut(name).unwrap().render_long_help().to_string();
        assert!(help.contains("[env: TAO_SLURM_TOKEN]"), "{help}");
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
