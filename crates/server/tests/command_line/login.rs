//! `login` and profiles.

use std::{fs, os::unix::fs::PermissionsExt};

use serde_json::json;

use crate::{pipelines::shown, prepared::Prepared};

fn caller() -> (u16, &'static str, String) {
    (
        200,
        "",
        json!({"owner": "ann", "scopes": ["read", "write"], "authentication": "token", "expires_at": null})
            .to_string(),
    )
}

fn no_jobs() -> (u16, &'static str, String) {
    (200, "", json!({"jobs": [], "next_page_token": null, "facets": null}).to_string())
}

#[test]
fn a_login_is_checked_and_kept_for_later_commands() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path().to_str().unwrap();
    let server = Prepared::start(vec![caller(), no_jobs()]);
    let url = server.url().to_owned();
    let login =
        Prepared::run_with(&["login", "--url", &url, "--profile", "work"], "tsk_secret\n", &[("HOME", home)]);
    let (code, out, errors) = shown(&login);
    assert_eq!(code, Some(0), "{errors}");
    assert!(
        out.starts_with(&format!("Logged in at {url} as ann (read, write). Profile work in {home}/.config")),
        "{out}"
    );
    assert!(!out.contains("tsk_secret") && !errors.contains("tsk_secret"));
    let file = format!("{home}/.config/tao-slurm/config.toml");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);

    let (code, _, errors) = shown(&Prepared::run_with(&["list"], "", &[("HOME", home)]));
    assert_eq!(code, Some(0), "{errors}");
    let requests = server.requests();
    assert_eq!(
        requests.iter().map(|request| request.line.as_str()).collect::<Vec<_>>(),
        ["GET /me HTTP/1.1", "GET /jobs?limit=50 HTTP/1.1"]
    );
    assert!(requests.iter().all(|request| request.headers.contains("authorization: bearer tsk_secret\r\n")));
}

#[test]
fn a_refused_token_is_not_kept() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path().to_str().unwrap();
    let server =
        Prepared::start(vec![(401, "", json!({"title": "Unauthorized", "status": 401}).to_string())]);
    let url = server.url().to_owned();
    let (code, _, errors) =
        shown(&Prepared::run_with(&["login", "--url", &url], "tsk_wrong\n", &[("HOME", home)]));
    assert_eq!(code, Some(3), "{errors}");
    assert!(!fs::exists(format!("{home}/.config/tao-slurm")).unwrap());
}

#[test]
fn the_token_of_a_profile_goes_to_no_other_service() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join(".config/tao-slurm/config.toml");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(&file, "profile = 'a'\n[profiles.a]\nurl = 'https://a.example'\ntoken = 'tsk_a'\n").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    let server = Prepared::start(vec![no_jobs()]);
    let url = server.url().to_owned();
    let home = home.path().to_str().unwrap();
    let (code, _, errors) = shown(&Prepared::run_with(&["list", "--url", &url], "", &[("HOME", home)]));
    assert_eq!(code, Some(0), "{errors}");
    assert!(!server.requests()[0].headers.contains("tsk_a"));
}
