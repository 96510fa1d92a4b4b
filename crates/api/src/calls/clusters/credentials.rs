//! `PUT /clusters/{name}/enroot-credentials`: forwards credentials to the cluster and stores them nowhere else.

use axum::http::StatusCode;
use domain::Violation;
use remote::{InstallCredentials, InvalidNetrcWord, NetrcWord};
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use utoipa::ToSchema;

use crate::{
    auth::Admin,
    http::extract::{Body, Call, ClusterInPath, NoParameters, Sent},
    problem::{Problem, problems},
};

problems!(Problems = SECURED | BODY, ClusterNotFound, ClusterUnusable, ClusterBusy, ClusterUnavailable);

/// A registry login for Enroot.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct EnrootCredentials {
    /// The registry, such as `nvcr.io`. NGC also needs an entry for `authn.nvidia.com`. A port is dropped: Enroot has one login for
    /// all ports of a host.
    #[schema(min_length = 1, max_length = 253, examples("nvcr.io"))]
    machine: String,
    /// The login, such as `$oauthtoken` for NGC.
    #[schema(min_length = 1, max_length = 4096, examples("$oauthtoken"))]
    login: String,
    /// The password or token: printable ASCII without spaces, quotes and backslashes. It must not begin with `$`.
    #[schema(value_type = String, format = Password, write_only, min_length = 1, max_length = 4096)]
    password: SecretString,
}

/// Install registry credentials
///
/// Writes the entry to `~/.config/enroot/.credentials` of the cluster's user (mode 0600). It replaces every entry of the same
/// machine, because Enroot uses the first one; the other entries stay. The service does not store the password, and no answer contains it. All jobs of
/// the cluster pull images with these credentials, so the call needs the scope `admin`.
#[utoipa::path(
    put,
    path = "/clusters/{name}/enroot-credentials",
    params(("name" = String, Path, description = "The cluster's name.")),
    request_body = EnrootCredentials,
    security(("bearer" = ["admin"])),
    responses((status = 204, description = "The credentials are installed."), Problems)
)]
pub(crate) async fn put_enroot_credentials(
    Call(app, Admin(caller), ClusterInPath(cluster), _): Call<ClusterInPath, NoParameters, Admin>,
    Body(Sent { document, value }): Body<EnrootCredentials>,
) -> Result<StatusCode, Problem> {
    super::is_object(&document).map_err(Problem::fields)?;
    let command = command(&value).map_err(Problem::fields)?;
    app.ops
        .install_credentials(&cluster.name, command)
        .await
        .map_err(|error| super::unavailable(&cluster, error))?;
    tracing::info!(
        owner = %caller.owner,
        cluster.name = %cluster.name,
        registry = value.machine,
        "enroot credentials installed"
    );
    Ok(StatusCode::NO_CONTENT)
}

fn command(sent: &EnrootCredentials) -> Result<InstallCredentials, Vec<Violation>> {
    let mut wrong = Vec::new();
    let mut fault = |field: &str, error: InvalidNetrcWord| {
        wrong.push(Violation::new(format!("/{field}"), "invalid", error));
    };
    let password = sent.password.expose_secret();
    let machine = host(&sent.machine);
    let machine = machine.parse::<NetrcWord>().map_err(|error| fault("machine", error)).ok();
    let login = sent.login.parse::<NetrcWord>().map_err(|error| fault("login", error)).ok();
    if let Err(error) = NetrcWord::password(password) {
        fault("password", error);
    }
    // The machine is part of image names, and of our log.
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
    if machine.is_some() && !(sent.machine.len() <= 253 && host(&sent.machine).bytes().all(plain)) {
        let detail = "must be a host name such as nvcr.io, with a port or without";
        wrong.push(Violation::new("/machine", "invalid", detail));
    }
    match (machine, login) {
        (Some(machine), Some(login)) if wrong.is_empty() => InstallCredentials::new(machine, login, password)
            .map_err(|error| vec![Violation::new("/password", "invalid", error)]),
        _ => Err(wrong),
    }
}

/// The name that Enroot looks for: without a port.
fn host(machine: &str) -> &str {
    match machine.split_once(':') {
        Some((host, port)) if (1..=5).contains(&port.len()) && port.bytes().all(|b| b.is_ascii_digit()) => {
            host
        }
        _ => machine,
    }
}

#[cfg(test)]
mod tests {
    use test_case::test_case;

    use super::*;

    #[test_case("nvcr.io", Some("nvcr.io") ; "a host")]
    #[test_case("registry.example:5000", Some("registry.example") ; "a port is dropped")]
    #[test_case("registry.example:", None ; "no port")]
    #[test_case("registry.example:http", None ; "a word as the port")]
    #[test_case("registry.example:500000", None ; "a port that is too long")]
    #[test_case(":5000", None ; "no host")]
    #[test_case("a:1:2", None ; "two ports")]
    #[test_case("https://nvcr.io", None ; "a URL")]
    fn enroot_looks_for_a_host(machine: &str, written: Option<&str>) {
        let sent = EnrootCredentials {
            machine: machine.to_owned(),
            login: "user".to_owned(),
            password: "hunter2".to_owned().into(),
        };
        let stdin =
            command(&sent).map(|command| String::from_utf8(remote::RemoteCommand::render(&command).stdin));
        let found = stdin.ok().map(Result::unwrap);
        let found = found.as_deref().map(|text| text.split('\t').next().unwrap_or_default());
        assert_eq!(found, written);
    }
}
