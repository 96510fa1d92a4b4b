//! Defaults, then the file, then the environment; and errors that say which of them to mend, and how.

use std::path::Path;

use figment::{
    Figment, Metadata, Profile, Provider,
    error::{Actual, Kind},
    providers::{Format, Toml},
    util::nest,
    value::{Dict, Map, Value},
};

use super::{environment::Environment, problems::Problems, settings::Settings};

/// The variables that set one key each. Those of a cluster are in `cluster_settings`.
const VARIABLES: [(&str, &str); 21] = [
    ("DATABASE_URL", "database.url"),
    ("TAO_SLURM_DATABASE_PATIENCE", "database.patience"),
    ("TAO_SLURM_KEEP_ENDED_JOBS", "database.keep_ended_jobs"),
    ("TAO_SLURM_BIND", "server.bind"),
    ("TAO_SLURM_AUTH", "auth.mode"),
    ("TAO_SLURM_DATA_DIR", "data_dir"),
    ("TAO_SLURM_SSH_KEY_DIRECTORY", "ssh.key_directory"),
    ("TAO_SLURM_LOG", "log.filter"),
    ("TAO_SLURM_TAO_IMAGE", "tao.default_image"),
    ("TAO_SLURM_LOG_FORMAT", "log.format"),
    ("TAO_SLURM_OTLP_ENDPOINT", "telemetry.otlp_endpoint"),
    ("TAO_SLURM_OTLP_HEADERS_FILE", "telemetry.otlp_headers_file"),
    ("TAO_SLURM_OTLP_SAMPLE", "telemetry.otlp_sample"),
    ("TAO_SLURM_WORKER_BIND", "worker.bind"),
    ("TAO_SLURM_POLL_MIN", "worker.poll_min"),
    ("TAO_SLURM_POLL_MAX", "worker.poll_max"),
    ("TAO_SLURM_PARTITIONS_EVERY", "worker.partitions_every"),
    ("TAO_SLURM_MISSING_GRACE", "worker.missing_grace"),
    ("TAO_SLURM_LAST_WORD_GRACE", "worker.last_word_grace"),
    ("TAO_SLURM_RELEASE_GRACE", "worker.release_grace"),
    ("TAO_SLURM_RETRY_WAIT", "worker.retry_wait"),
];

/// What each key takes, for the one who got it wrong.
const TAKES: [(&str, &str); 55] = [
    ("server.bind", "an IP address and a port, such as \"127.0.0.1:8080\""),
    ("server.body_limit_bytes", "a number of bytes, such as 10485760"),
    ("server.header_limit_bytes", "a number of bytes, such as 32768"),
    ("server.header_timeout", DURATION),
    ("server.body_timeout", DURATION),
    ("server.request_timeout", DURATION),
    ("server.max_connections", "a whole number, such as 4096"),
    ("server.max_clusters", "a whole number, such as 64"),
    ("server.rate_limit", "requests in a second, such as 1000; 0 for no limit"),
    ("server.rate_burst", "a number of requests, such as 2000"),
    ("server.cors_origins", "a list of origins, such as [\"https://dashboard.example.org\"]"),
    ("server.idempotency_keep", DURATION),
    ("server.drain_timeout", DURATION),
    ("database.url", "a text, such as \"postgres://USER:PASSWORD@HOST:5432/DATABASE\""),
    ("database.max_connections", "a whole number, such as 16"),
    ("database.patience", DURATION),
    ("database.keep_ended_jobs", "a duration, such as \"90d\""),
    ("auth.mode", "\"tokens\" or \"disabled\""),
    ("auth.jwt.audience", "a list, such as [\"tao-slurm\"]"),
    ("auth.jwt.algorithms", "a list of algorithms, such as [\"RS256\", \"ES256\"]"),
    ("auth.jwt.scope_words", "a table of lists, such as { gpu-users = [\"read\", \"write\"] }"),
    ("jwks_keep", DURATION),
    ("leeway", DURATION),
    ("ssh.key_directory", "a directory, such as \"/etc/tao-slurm/ssh-keys\""),
    ("worker.bind", "an IP address and a port, such as \"127.0.0.1:8081\""),
    ("worker.lease", DURATION),
    ("worker.batch_size", "a whole number, such as 128"),
    ("worker.poll_min", DURATION),
    ("worker.poll_max", DURATION),
    ("worker.partitions_every", DURATION),
    ("worker.missing_grace", DURATION),
    ("worker.last_word_grace", DURATION),
    ("worker.release_grace", DURATION),
    ("worker.retry_wait", DURATION),
    ("worker.retry_wait_max", DURATION),
    ("log.format", "\"human\" or \"json\""),
    ("log.filter", "a filter, such as \"info\" or \"info,worker=debug\""),
    ("telemetry.otlp_endpoint", "an address, such as \"http://127.0.0.1:4318\""),
    ("telemetry.otlp_headers_file", "a file with a header a line, such as \"/etc/tao-slurm/otlp-headers\""),
    ("telemetry.otlp_sample", "a number from 0 to 1, such as 0.1"),
    ("tao.default_image", "an image, such as \"nvcr.io/nvidia/tao/tao-toolkit:6.26.3-pyt\""),
    (
        "tao.images",
        "an image for each network, such as { dino = \"nvcr.io/nvidia/tao/tao-toolkit:6.26.3-pyt\" }",
    ),
    ("webhooks.allowed_networks", "a list of networks, such as [\"10.1.0.0/16\"]"),
    ("webhooks.timeout", DURATION),
    ("webhooks.max_attempts", "a whole number, such as 15"),
    ("hosts", "a list of login hosts, such as [\"login1\", \"login2:2222\"]"),
    ("known_hosts", "a list of files, such as [\"~/.ssh/known_hosts\"]"),
    ("host_keys", "a list of known_hosts lines, such as [\"login1 ssh-ed25519 AAAA…\"]"),
    ("partitions", "a list of partitions, such as [\"polar\", \"polar3\"]"),
    ("container_mounts", "a list of mounts, such as [\"/lustre\", \"/data:/data:ro\"]"),
    ("use_sqsh", FLAG),
    ("require_sqsh", FLAG),
    ("use_requeue", FLAG),
    ("connect_timeout", DURATION),
    ("poll_min", DURATION),
];
const FLAG: &str = "true or false";
const DURATION: &str = "a duration, such as \"5s\", \"2m\" or \"1h 30m\"";

/// One variable as a layer of its own, so that an error can name it.
struct Variable {
    name: &'static str,
    key: &'static str,
    value: String,
}

impl Provider for Variable {
    fn metadata(&self) -> Metadata {
        Metadata::named(self.name)
    }

    fn data(&self) -> figment::Result<Map<Profile, Dict>> {
        let nested = nest(self.key, Value::from(self.value.clone()));
        Ok(Map::from([(Profile::Default, nested.into_dict().unwrap_or_default())]))
    }
}

/// Reads the layers. Nothing is checked yet beyond the type of each key.
pub(crate) fn read(file: Option<&Path>, environment: &Environment) -> Result<Settings, Problems> {
    let mut figment = Figment::new();
    if let Some(path) = file {
        // Read here, because figment takes a file that is not there for an empty one.
        let text = std::fs::read_to_string(path)
            .map_err(|error| Problems::one(path.display(), format_args!("cannot be read ({error})")))?;
        figment = figment.merge(Named { path: path.display().to_string(), text });
    }
    for (name, key) in VARIABLES {
        if let Some(value) = environment.get(name) {
            figment = figment.merge(Variable { name, key, value: value.to_owned() });
        }
    }
    figment.extract().map_err(|error| in_words(&error))
}

/// A TOML text under the name of its file.
struct Named {
    path: String,
    text: String,
}

impl Provider for Named {
    fn metadata(&self) -> Metadata {
        Metadata::named(self.path.clone())
    }

    fn data(&self) -> figment::Result<Map<Profile, Dict>> {
        Toml::string(&self.text).data()
    }
}

fn in_words(error: &figment::Error) -> Problems {
    let mut problems = Problems::default();
    for error in error.clone() {
        let place = error.metadata.as_ref().map(|metadata| metadata.name.to_string());
        let key = key_of(&error.path);
        let place = match (place, key.is_empty()) {
            (Some(place), true) => place,
            (Some(place), false) => format!("{place}: {key}"),
            (None, _) => key.clone(),
        };
        problems.add(place, advice(&error.kind, &key));
    }
    problems
}

/// `clusters[1].hosts`, counted from 1 as people count.
fn key_of(path: &[String]) -> String {
    let parts = path.iter().map(|part| match part.parse::<usize>() {
        Ok(index) => format!("[{}]", index + 1),
        Err(_) => format!(".{part}"),
    });
    let key: String = parts.collect();
    key.trim_start_matches('.').to_owned()
}

fn advice(kind: &Kind, key: &str) -> String {
    let last = key.rsplit('.').next().unwrap_or(key);
    let takes = TAKES.iter().find(|(known, _)| *known == key || *known == last).map(|(_, takes)| *takes);
    match (kind, takes) {
        (Kind::UnknownField(name, known), _) => {
            format!("there is no key `{name}` here; the keys are {}", known.join(", "))
        }
        // The parser's message has the line and a picture of it.
        (Kind::Message(message), None) => message.trim_end().to_owned(),
        (_, Some(takes)) => format!("write {takes}"),
        (Kind::InvalidType(Actual::Str(_), expected), None) => format!("write {expected}, without quotes"),
        (kind, None) => kind.to_string(),
    }
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
    fn an_unknown_key_is_named_with_those_that_exist() {
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
            ("[worker]\nlease = 5", format!("t.toml: worker.lease: write {DURATION}")),
            ("[worker]\nlease = \"soon\"", format!("t.toml: worker.lease: write {DURATION}")),
            (
                "[server]\nbind = \"localhost\"",
                "t.toml: server.bind: write an IP address and a port, such as \"127.0.0.1:8080\"".to_owned(),
            ),
            ("[auth]\nmode = \"off\"", "t.toml: auth.mode: write \"tokens\" or \"disabled\"".to_owned()),
            (
                "[[clusters]]\nhosts = \"login1\"",
                "t.toml: clusters[1].hosts: write a list of login hosts, such as [\"login1\", \"login2:2222\"]"
                    .to_owned(),
            ),
            ("[[clusters]]\nnum_gpus = \"4\"", "t.toml: clusters[1].num_gpus: write u32, without quotes".to_owned()),
        ] {
            assert_eq!(said(toml, &[]), [line]);
        }
    }

    #[test]
    fn a_wrong_variable_is_named() {
        assert_eq!(
            said("", &[("TAO_SLURM_POLL_MIN", "soon")]),
            [format!("TAO_SLURM_POLL_MIN: worker.poll_min: write {DURATION}")]
        );
    }

    #[test]
    fn a_broken_file_shows_its_line() {
        let [line] = said("[server]\nbind =", &[]).try_into().unwrap();
        assert!(line.starts_with("t.toml: TOML parse error at line 2"), "{line}");
    }

    #[test]
    fn a_file_that_is_not_there_is_an_error() {
        let problems = read(Some(Path::new("/nowhere/t.toml")), &Environment::default()).unwrap_err();
        assert_eq!(
            problems.lines(),
            ["/nowhere/t.toml: cannot be read (No such file or directory (os error 2))"]
        );
    }

    #[test]
    fn the_environment_is_stronger_than_the_file() {
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
