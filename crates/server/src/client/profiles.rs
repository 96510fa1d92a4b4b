//! The profiles of the command line: for each service its address and token, in `~/.config/tao-slurm/config.toml`.
//!
//! ```toml
//! profile = "work"                # the profile of commands that name none
//!
//! [profiles.work]
//! url = "https://tao.example.org"
//! token = "tsl_…"                 # or token_file = "token", beside this file
//! ```

use std::{
    collections::BTreeMap,
    fs::{self, Permissions},
    io::Write,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use anyhow::{Context, anyhow, bail};
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use toml_edit::{DocumentMut, Item, Table, value};

use super::trimmed;
use crate::{cli::ServerArgs, config::Environment};

/// The profile that `login` writes if none is named.
pub(crate) const DEFAULT_PROFILE: &str = "default";

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct File {
    profile: Option<String>,
    profiles: BTreeMap<String, Entry>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    url: Option<String>,
    token: Option<SecretString>,
    token_file: Option<PathBuf>,
}

/// A service, and what it knows the caller by.
#[derive(Debug, Default)]
pub(crate) struct Profile {
    /// None: the service is on this machine.
    pub(crate) url: Option<String>,
    pub(crate) token: Option<SecretString>,
}

/// The file of this user: in `$XDG_CONFIG_HOME`, else in `~/.config` (XDG Base Directory Specification).
pub(crate) fn path(environment: &Environment) -> Option<PathBuf> {
    let set = |name| environment.get(name).map(PathBuf::from);
    let base = set("XDG_CONFIG_HOME").filter(|base| base.is_absolute());
    Some(base.or_else(|| Some(set("HOME")?.join(".config")))?.join("tao-slurm/config.toml"))
}

/// Address and token from the first of these that has them: the options, where `--profile` counts as one; `TAO_SLURM_URL` and
/// `TAO_SLURM_TOKEN`; the profile that `TAO_SLURM_PROFILE` or the file names. The token of a profile goes to no other address.
pub(crate) fn chosen(
    server: &ServerArgs,
    environment: &Environment,
    file: Option<&Path>,
) -> anyhow::Result<Profile> {
    let (mut url, mut token) = (server.url.clone(), server.token.clone());
    if server.profile.is_none() {
        url = url.or_else(|| environment.get("TAO_SLURM_URL").map(str::to_owned));
        token = token.or_else(|| environment.get("TAO_SLURM_TOKEN").map(Into::into));
        if url.is_some() && token.is_some() {
            return Ok(Profile { url, token });
        }
    }
    let name = server.profile.as_deref().or_else(|| environment.get("TAO_SLURM_PROFILE"));
    let profile = read(environment, file, name)?.unwrap_or_default();
    let is_its = url.is_none() || url.as_deref().map(trimmed) == profile.url.as_deref().map(trimmed);
    Ok(Profile { url: url.or(profile.url), token: token.or(profile.token.filter(|_| is_its)) })
}

/// The profile with this name, else the one that the file chooses; none if it chooses none.
fn read(
    environment: &Environment,
    file: Option<&Path>,
    name: Option<&str>,
) -> anyhow::Result<Option<Profile>> {
    let Some(path) = file.filter(|path| path.exists()) else {
        return match name {
            Some(name) => Err(unknown(name, &[], file)),
            None => Ok(None),
        };
    };
    let shown = path.display();
    let text = fs::read_to_string(path).with_context(|| format!("cannot read {shown}"))?;
    // An error of the parser shows the line, which may have a token.
    let File { profile, mut profiles } = toml::from_str(&text).map_err(|error| {
        let line =
            error.span().map_or(0, |span| text[..span.start.min(text.len())].matches('\n').count() + 1);
        anyhow!("{shown}:{line}: {}", error.message())
    })?;
    let Some(name) = name.map(str::to_owned).or(profile) else { return Ok(None) };
    let Some(entry) = profiles.remove(&name) else {
        let names: Vec<_> = profiles.keys().map(String::as_str).collect();
        return Err(unknown(&name, &names, file));
    };
    let token = match (entry.token, entry.token_file) {
        (Some(_), Some(_)) => bail!("{shown}: the profile {name} has both token and token_file; keep one"),
        (Some(token), None) => {
            only_for_its_owner(path)?;
            Some(token)
        }
        (None, Some(file)) => {
            let file = path.parent().unwrap_or(Path::new("")).join(environment.expand(file));
            let token = fs::read_to_string(&file)
                .with_context(|| format!("cannot read {}, the token_file of {name}", file.display()))?;
            Some(token.trim().to_owned().into())
        }
        (None, None) => None,
    };
    Ok(Some(Profile { url: entry.url, token }))
}

fn unknown(name: &str, names: &[&str], file: Option<&Path>) -> anyhow::Error {
    let place = file.map_or_else(|| "the home directory".to_owned(), |file| file.display().to_string());
    match names {
        [] => anyhow!("{place} has no profile {name}; `tao-slurm login --profile {name} --url URL` makes it"),
        names => anyhow!("{place} has no profile {name}, only {}", names.join(", ")),
    }
}

/// A token that others can read is no secret.
fn only_for_its_owner(path: &Path) -> anyhow::Result<()> {
    let mode = fs::metadata(path)?.permissions().mode();
    if mode & 0o077 != 0 {
        let shown = path.display();
        bail!(
            "{shown} has a token, and others may read it (mode {:o}): run `chmod 600 {shown}`",
            mode & 0o777
        );
    }
    Ok(())
}

/// Writes a profile and makes it the one that commands use. All else in the file stays, also its comments.
pub(crate) fn write(path: &Path, name: &str, profile: &Profile) -> anyhow::Result<()> {
    let shown = path.display();
    let text = match fs::read_to_string(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        text => text.with_context(|| format!("cannot read {shown}"))?,
    };
    // The message alone: the whole error shows the line, which may have a token.
    let mut document: DocumentMut =
        text.parse().map_err(|error: toml_edit::TomlError| anyhow!("{shown}: {}", error.message()))?;
    document["profile"] = value(name);
    let profiles = document.entry("profiles").or_insert_with(|| {
        let mut profiles = Table::new();
        profiles.set_implicit(true);
        Item::Table(profiles)
    });
    let profiles =
        profiles.as_table_like_mut().with_context(|| format!("{shown}: `profiles` is no table"))?;
    let mut entry = Table::new();
    if let Some(url) = &profile.url {
        entry["url"] = value(url);
    }
    if let Some(token) = &profile.token {
        entry["token"] = value(token.expose_secret());
    }
    profiles.insert(name, Item::Table(entry));

    let directory = path.parent().context("the file has no directory")?;
    fs::create_dir_all(directory).with_context(|| format!("cannot make {}", directory.display()))?;
    // Readers see the old file or the new one.
    let mut new =
        tempfile::Builder::new().permissions(Permissions::from_mode(0o600)).tempfile_in(directory)?;
    new.write_all(document.to_string().as_bytes())?;
    new.as_file().sync_all()?;
    new.persist(path).with_context(|| format!("cannot write {shown}"))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(file: Option<&Path>, name: Option<&str>) -> anyhow::Result<Option<Profile>> {
        super::read(&Environment::of(&[("HOME", "/home/ann")]), file, name)
    }

    fn token(profile: Option<&Profile>) -> &str {
        profile.unwrap().token.as_ref().unwrap().expose_secret()
    }

    #[test]
    fn a_profile_is_read_as_it_was_written_and_the_rest_of_the_file_stays() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("new/config.toml");
        let work = Profile { url: Some("https://a.example".to_owned()), token: Some("tsl_1".into()) };
        write(&path, "work", &work).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, format!("# mine\n{text}")).unwrap();
        let other = Profile { url: Some("http://127.0.0.1:9".to_owned()), token: None };
        write(&path, "local one", &other).unwrap();
        assert!(fs::read_to_string(&path).unwrap().starts_with("# mine\n"));

        let chosen = read(Some(&path), None).unwrap().unwrap();
        assert!(chosen.url.as_deref() == Some("http://127.0.0.1:9") && chosen.token.is_none());
        let named = read(Some(&path), Some("work")).unwrap();
        assert_eq!(token(named.as_ref()), "tsl_1");
        let wrong = read(Some(&path), Some("wrok")).unwrap_err().to_string();
        assert!(wrong.ends_with("has no profile wrok, only local one, work"), "{wrong}");
    }

    #[test]
    fn a_token_that_others_may_read_is_refused_and_one_in_a_file_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("config.toml");
        fs::write(&path, "profile = 'a'\n[profiles.a]\nurl = 'http://a'\ntoken = 'tsl_secret'\n").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
        let refused = read(Some(&path), None).unwrap_err().to_string();
        assert!(refused.contains("chmod 600") && !refused.contains("tsl_secret"), "{refused}");

        let secret = dir.path().join("token");
        fs::write(&secret, "tsl_2\n").unwrap();
        fs::write(&path, "[profiles.a]\nurl = 'http://a'\ntoken_file = 'token'\n").unwrap();
        assert_eq!(token(read(Some(&path), Some("a")).unwrap().as_ref()), "tsl_2");
        assert!(read(Some(&path), None).unwrap().is_none());
    }

    #[test]
    fn a_broken_file_is_an_error_without_the_token() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("config.toml");
        for text in [
            "[profiles.a]\nurl = 'x'\ntoken = 'tsl_secret\n",
            "[profiles.a]\nurl = 'x'\ntokn = 'tsl_secret'\n",
        ] {
            fs::write(&path, text).unwrap();
            let profile = Profile::default();
            for error in [
                read(Some(&path), None).unwrap_err(),
                write(&path, "b", &profile).err().unwrap_or_else(|| anyhow!("line")),
            ] {
                let error = format!("{error:#}");
                assert!(!error.contains("tsl_secret"), "{error}");
            }
        }
        let missing = read(Some(&dir.path().join("no.toml")), Some("a")).unwrap_err().to_string();
        assert!(missing.contains("tao-slurm login --profile a"), "{missing}");
        assert!(read(None, None).unwrap().is_none());
    }

    #[test]
    fn options_come_before_the_environment_and_that_before_a_profile() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("config.toml");
        let text = "profile = 'a'\n[profiles.a]\nurl = 'http://a/'\ntoken = 'tsl_a'\n[profiles.b]\nurl = 'http://b'\ntoken = 'tsl_b'\n";
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
        let found = |url: Option<&str>, profile: Option<&str>, variables: &[(&str, &str)]| {
            let server = ServerArgs {
                url: url.map(str::to_owned),
                profile: profile.map(str::to_owned),
                ..ServerArgs::default()
            };
            let Profile { url, token } = chosen(&server, &Environment::of(variables), Some(&path)).unwrap();
            (url.unwrap(), token.map(|token| token.expose_secret().to_owned()))
        };
        let with = |url: &str, token: &str| (url.to_owned(), Some(token.to_owned()));
        let variables = [("TAO_SLURM_URL", "http://env"), ("TAO_SLURM_TOKEN", "tsl_env")];
        assert_eq!(found(None, None, &[]), with("http://a/", "tsl_a"));
        assert_eq!(found(None, None, &variables), with("http://env", "tsl_env"));
        assert_eq!(found(Some("http://arg"), None, &variables), with("http://arg", "tsl_env"));
        assert_eq!(found(None, Some("b"), &variables), with("http://b", "tsl_b"));
        assert_eq!(found(None, None, &[("TAO_SLURM_PROFILE", "b")]), with("http://b", "tsl_b"));
        assert_eq!(found(Some("http://a"), None, &[]), with("http://a", "tsl_a"));
        for (url, profile, variables) in [
            (Some("http://other"), None, &[][..]),
            (Some("http://other"), Some("b"), &[]),
            (None, None, &variables[..1]),
        ] {
            assert_eq!(found(url, profile, variables).1, None, "{url:?} {profile:?}");
        }
    }
}
