//! Reads the settings: defaults, then the file, then environment variables.

use std::{fs, path::Path};

use super::{
    declare::{self, Source},
    environment::Environment,
    problems::Problems,
    settings::Settings,
};

/// Checks only the types of the values.
pub(crate) fn read(file: Option<&Path>, environment: &Environment) -> Result<Settings, Problems> {
    let (mut settings, mut problems) = (Settings::default(), Problems::default());
    if let Some(file) = file {
        let path = file.display();
        let text = fs::read_to_string(file)
            .map_err(|error| Problems::one(&path, format_args!("cannot be read ({error})")))?;
        // The parser's message shows the line.
        let table = text
            .parse()
            .map_err(|error: toml::de::Error| Problems::one(&path, error.to_string().trim_end()))?;
        let source = Source::Value(&toml::Value::Table(table));
        declare::read_section(&mut settings, source, "", &mut |key, advice| {
            problems.add(format_args!("{path}: {key}"), advice);
        });
    }
    let source = Source::Variables(environment);
    declare::read_section(&mut settings, source, "", &mut |place, advice| problems.add(place, advice));
    problems.or_else(settings)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn said(toml: &str, environment: &[(&str, &str)]) -> Vec<String> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t.toml");
        fs::write(&path, toml).unwrap();
        let problems = read(Some(&path), &Environment::of(environment)).unwrap_err();
        problems.lines().iter().map(|line| line.replace(&path.display().to_string(), "t.toml")).collect()
    }

    #[test]
    fn an_unknown_key_is_reported_with_the_known_keys() {
        assert_eq!(
            said("[auth]\nmood = 1", &[]),
            ["t.toml: auth.mood: there is no key `mood` here; the keys are mode, jwt"]
        );
        let [line] = said("[[clusters]]\nname = \"a\"\nhost = \"b\"", &[]).try_into().unwrap();
        assert!(line.starts_with(
            "t.toml: clusters[1].host: there is no key `host` here; the keys are name, user, hosts"
        ));
    }

    #[test]
    fn a_wrong_value_says_what_the_key_takes() {
        for (toml, line) in [
            ("[worker]\nlease = 5", "t.toml: worker.lease: 5 is not a duration; write for example \"30s\""),
            (
                "[worker]\nlease = \"soon\"",
                "t.toml: worker.lease: \"soon\" is not a duration; write for example \"30s\"",
            ),
            (
                "[server]\nbind = \"localhost\"",
                "t.toml: server.bind: \"localhost\" is not an IP address and a port; write for example \"127.0.0.1:8080\"",
            ),
            (
                "[auth]\nmode = \"off\"",
                "t.toml: auth.mode: \"off\" is not \"tokens\" or \"disabled\"; write for example \"tokens\"",
            ),
            (
                "[[clusters]]\nhosts = \"login1\"",
                "t.toml: clusters[1].hosts: \"login1\" is not a list of strings; write for example [\"login1.example.org\", \"login2.example.org:2222\"]",
            ),
            ("server = 5", "t.toml: server: 5 is not a table; write [server] and its keys below it"),
            ("clusters = 5", "t.toml: clusters: 5 is not a list of tables; write [[clusters]]"),
            (
                "[database]\nurl = [\"postgres://u:hunter2@h/d\"]",
                "t.toml: database.url: a list is not a string; write for example \"postgres://tao_slurm:PASSWORD@db.example.org:5432/tao_slurm\"",
            ),
            (
                "[[clusters]]\nnum_gpus = \"4\"",
                "t.toml: clusters[1].num_gpus: \"4\" is not a whole number; write for example 4",
            ),
        ] {
            assert_eq!(said(toml, &[]), [line], "{toml}");
        }
    }

    #[test]
    fn all_wrong_values_are_reported_at_once() {
        let said = said(
            "[worker]\nlease = 5\nbatch = 6",
            &[("TAO_SLURM_POLL_MIN", "soon"), ("TAO_SLURM_OTLP_SAMPLE", "0.5")],
        );
        assert_eq!(said.len(), 3, "{said:#?}");
    }

    #[test]
    fn a_wrong_variable_is_named() {
        assert_eq!(
            said("", &[("TAO_SLURM_POLL_MIN", "soon")]),
            ["TAO_SLURM_POLL_MIN: worker.poll_min: \"soon\" is not a duration; write for example \"5s\""]
        );
    }

    #[test]
    fn a_broken_file_shows_its_line() {
        let [line] = said("[server]\nbind =", &[]).try_into().unwrap();
        assert!(line.starts_with("t.toml: TOML parse error at line 2"), "{line}");
    }

    #[test]
    fn a_missing_file_is_an_error() {
        let problems = read(Some(Path::new("/nowhere/t.toml")), &Environment::default()).unwrap_err();
        assert_eq!(
            problems.lines(),
            ["/nowhere/t.toml: cannot be read (No such file or directory (os error 2))"]
        );
    }

    #[test]
    fn environment_variables_override_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t.toml");
        fs::write(&path, "[server]\nbind = \"127.0.0.1:1\"\n[log]\nfilter = \"warn\"").unwrap();
        let environment =
            Environment::of(&[("TAO_SLURM_BIND", "127.0.0.1:2"), ("TAO_SLURM_AUTH", "disabled")]);
        let settings = read(Some(&path), &environment).unwrap();
        assert_eq!(settings.server.bind.port(), 2);
        assert_eq!(settings.log.filter, "warn");
        assert_eq!(settings.auth.mode, super::super::settings::AuthMode::Disabled);
    }
}
