//! The database URL: its check, and its text without the password.

use secrecy::{ExposeSecret, SecretString};

use super::problems::Problems;

/// The URL without its password, which may be in the login or in the query.
pub(crate) fn redacted(url: &SecretString) -> String {
    let url = url.expose_secret();
    let (address, query) = url.split_once('?').map_or((url, None), |(address, query)| (address, Some(query)));
    // A password may contain `@`, so the last `@` ends it. A path contains none in practice; hiding too much is safe.
    let address = match (address.split_once("://"), address.rsplit_once('@')) {
        (Some((scheme, _)), Some((login, host))) => {
            let login = login.split_once("://").map_or(login, |(_, login)| login);
            match login.split_once(':') {
                Some((user, _)) => format!("{scheme}://{user}:***@{host}"),
                None => format!("{scheme}://{login}@{host}"),
            }
        }
        _ => address.to_owned(),
    };
    let Some(query) = query else { return address };
    let shown = query.split('&').map(|pair| match pair.split_once('=') {
        Some((key, _)) if key.eq_ignore_ascii_case("password") => format!("{key}=***"),
        _ => pair.to_owned(),
    });
    format!("{address}?{}", shown.collect::<Vec<_>>().join("&"))
}

/// The message does not show the URL, which may hold a password.
pub(crate) fn check(url: &SecretString, problems: &mut Problems) {
    let known = ["postgres://", "postgresql://"].iter().any(|scheme| url.expose_secret().starts_with(scheme));
    if !known {
        problems.add(
            "database.url",
            "is not a Postgres URL; write postgres://USER:PASSWORD@HOST:5432/DATABASE, or leave it out for a private Postgres \
             in data_dir",
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_never_shown() {
        for (url, shown) in [
            ("postgres://u:hunter2@h:5432/d", "postgres://u:***@h:5432/d"),
            ("postgres://u:hun@ter2@h/d", "postgres://u:***@h/d"),
            ("postgres://u@h/d", "postgres://u@h/d"),
            ("postgres:///d?host=/run&user=u", "postgres:///d?host=/run&user=u"),
            ("postgres://h/d?user=u&password=hunter2", "postgres://h/d?user=u&password=***"),
        ] {
            assert_eq!(redacted(&url.to_owned().into()), shown);
        }
    }

    #[test]
    fn another_database_is_refused_without_repeating_its_password() {
        let mut problems = Problems::default();
        check(&"mysql://u:hunter2@h/d".to_owned().into(), &mut problems);
        let [line] = problems.lines().try_into().unwrap();
        assert!(line.starts_with("database.url: is not a Postgres URL"), "{line}");
        assert!(!line.contains("hunter2"));
    }
}
