//! The collector of traces.

use secrecy::SecretString;

use super::{environment::Environment, problems::Problems, settings::Telemetry};

const HEADERS: &str = "telemetry.otlp_headers_file";

/// Checks the section and reads the headers for the collector. They have a file of their own because they hold a password.
pub(super) fn headers(
    settings: &Telemetry,
    environment: &Environment,
    problems: &mut Problems,
) -> Vec<(String, SecretString)> {
    if !(0.0..=1.0).contains(&settings.otlp_sample) {
        problems.add(
            "telemetry.otlp_sample",
            format_args!("is {}; write a number from 0 to 1", settings.otlp_sample),
        );
    }
    if let Some(endpoint) = &settings.otlp_endpoint {
        let rest = endpoint.strip_prefix("http://").or_else(|| endpoint.strip_prefix("https://"));
        if rest.is_none_or(|rest| rest.is_empty() || rest.contains(['@', '?', '#', ' '])) {
            let advice = "is not the base URL of a collector; write for example \"http://127.0.0.1:4318\"";
            problems.add("telemetry.otlp_endpoint", advice);
        }
    }
    let Some(path) = &settings.otlp_headers_file else { return Vec::new() };
    let path = environment.expand(path.clone());
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) => {
            problems.add(HEADERS, format_args!("{} cannot be read: {error}", path.display()));
            return Vec::new();
        }
    };
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let mut read = |line: &str| {
        let found = line.split_once(':').filter(|(name, _)| is_name(name));
        if found.is_none() {
            // The message does not show the line, which may hold a password.
            let advice = "has a line that is not a header; write for example \"Authorization: Bearer …\"";
            problems.add(HEADERS, advice);
        }
        found.map(|(name, value)| (name.to_ascii_lowercase(), SecretString::from(value.trim())))
    };
    lines.filter_map(&mut read).collect()
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
}

#[cfg(test)]
mod tests {
    use std::fs;

    use secrecy::ExposeSecret;

    use super::*;

    fn read(settings: &Telemetry) -> (Vec<(String, SecretString)>, String) {
        let mut problems = Problems::default();
        let headers = headers(settings, &Environment::of(&[]), &mut problems);
        let said = problems.or_else(()).err().map(|problems| problems.to_string());
        (headers, said.unwrap_or_default())
    }

    #[test]
    fn a_wrong_header_line_is_reported_and_not_shown() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("headers");
        let settings = Telemetry { otlp_headers_file: Some(file.clone()), ..Telemetry::default() };
        fs::write(&file, "# ours\nAuthorization: Bearer a:b\n\nx-scope:dgx\n").unwrap();
        let (headers, said) = read(&settings);
        let shown: Vec<_> =
            headers.iter().map(|(name, value)| format!("{name}={}", value.expose_secret())).collect();
        assert_eq!(
            (shown, said.as_str()),
            (vec!["authorization=Bearer a:b".into(), "x-scope=dgx".into()], "")
        );
        fs::write(&file, "Bearer hunter2\n").unwrap();
        let (_, said) = read(&settings);
        assert!(said.contains("otlp_headers_file") && !said.contains("hunter2"), "{said}");
        fs::remove_file(&file).unwrap();
        assert!(read(&settings).1.contains("cannot be read"));
    }

    #[test]
    fn an_invalid_endpoint_or_sample_is_refused() {
        for endpoint in ["collector:4318", "http://", "http://user:word@collector", "grpc://collector"] {
            let settings = Telemetry { otlp_endpoint: Some(endpoint.into()), ..Telemetry::default() };
            assert!(read(&settings).1.contains("otlp_endpoint"), "{endpoint}");
        }
        let good = Telemetry { otlp_endpoint: Some("https://collector/otlp".into()), ..Telemetry::default() };
        assert_eq!(read(&good).1, "");
        for otlp_sample in [-0.1, 1.1, f64::NAN] {
            assert!(read(&Telemetry { otlp_sample, ..Telemetry::default() }).1.contains("otlp_sample"));
        }
    }
}
