//! Files with certificates of further authorities.

use std::{fs, path::PathBuf};

use webhooks::Authorities;

use super::{environment::Environment, problems::Problems};

pub(super) fn read(
    key: &str,
    file: &mut Option<PathBuf>,
    environment: &Environment,
    problems: &mut Problems,
) -> Authorities {
    let Some(path) = file.take().map(|path| environment.expand(path)) else { return Authorities::default() };
    let read = fs::read(&path).map_err(|error| format!("cannot be read ({error})"));
    let authorities = read.and_then(|pem| Authorities::with(&pem).map_err(|error| error.to_string()));
    let authorities = authorities.unwrap_or_else(|error| {
        problems.add(format_args!("{key}: {}", path.display()), error);
        Authorities::default()
    });
    *file = Some(path);
    authorities
}
