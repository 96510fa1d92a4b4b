use remote::{RemoteCommand, Remove, Removed, StagedSecret};
use slurm::FailureClass;

use crate::site::{Site, id};

fn remove(site: &Site, names: &[&str]) -> bool {
    kept(site, names).is_empty()
}

/// The places of those that are not surely gone.
fn kept(site: &Site, names: &[&str]) -> Vec<usize> {
    kept_of("state/job/1", site, names)
}

fn kept_of(attempt: &str, site: &Site, names: &[&str]) -> Vec<usize> {
    let file = |name: &&str| StagedSecret {
        job: uuid::Uuid::nil(),
        state_dir: site.path(attempt),
        path: site.path(name),
    };
    let Removed { kept, .. } = site.run(&Remove { close: vec![], files: names.iter().map(file).collect() });
    kept
}

#[test]
fn what_a_later_attempt_has_put_there_is_kept() {
    let site = Site::new();
    site.write("env/a", "SECRET=1");
    site.write("state/job/10/slurm_id", "7\n");
    assert_eq!(kept_of("state/job/9", &site, &["env/a"]), [0]);
    assert_eq!(kept_of("state/job/10", &site, &["env/a"]), Vec::<usize>::new());
    assert!(!site.exists("env/a"));
}

#[test]
fn files_are_removed_and_may_be_gone_already() {
    let site = Site::new();
    site.write("env/a b", "SECRET=1");
    site.write("env/kept", "");
    assert!(remove(&site, &["env/a b", "env/never"]));
    assert!(remove(&site, &["env/a b"]));
    assert!(remove(&site, &[]));
    assert!(!site.exists("env/a b") && site.exists("env/kept"));
}

#[test]
fn a_directory_that_is_not_there_may_come_back_with_the_file() {
    let site = Site::new();
    site.write("env/a", "SECRET=1");
    assert_eq!(kept(&site, &["env/never", "gone/env/b", "env/a"]), [1]);
    assert!(!site.exists("env/a"), "the others are removed all the same");
    std::fs::create_dir(site.file("mountpoint")).unwrap();
    assert!(!remove(&site, &["mountpoint/env/b"]), "an empty directory: its file system is not mounted");
}

#[test]
fn what_was_never_staged_is_gone() {
    let site = Site::new();
    site.write("base/state/a", "");
    assert!(remove(&site, &["base/env/a"]), "a job without secrets makes no directory for them");
}

#[test]
fn a_directory_is_kept_and_said_so() {
    let site = Site::new();
    site.write("env/a/file", "");
    assert!(!remove(&site, &["env/a"]));
    assert!(site.exists("env/a/file"));
}

#[test]
fn a_question_that_was_cut_removes_nothing() {
    let site = Site::new();
    site.write("env/a", "");
    site.write("env/ab", "");
    let file = StagedSecret {
        job: uuid::Uuid::nil(),
        state_dir: site.path("state/job/1"),
        path: site.path("env/ab"),
    };
    let command = Remove { close: vec![site.path("state/job/1")], files: vec![file] };
    for length in 0..command.render().stdin.len() {
        let raw = site.raw_cut(&command, length);
        assert_eq!(command.parse(&raw).unwrap_err().class(), FailureClass::NotDone, "{length}");
    }
    assert!(site.exists("env/a") && site.exists("env/ab") && !site.exists("state/job/1/run"));
}

#[test]
fn an_attempt_is_claimed_for_nobody_unless_a_job_holds_it() {
    let site = Site::new();
    for attempt in ["state/free/1", "state/held/3", "state/closed/2"] {
        site.write(&format!("{attempt}/submit.1"), "");
    }
    for of in ["free", "held", "closed"] {
        site.write(&format!("env/{of}"), "SECRET=1");
    }
    site.link("77", "state/held/3/run");
    site.link("no-owner", "state/closed/2/run");
    let asked = [("free", "1"), ("held", "3"), ("never", "1"), ("closed", "2")];
    let dir = |(of, attempt): (&str, &str)| site.path(&format!("state/{of}/{attempt}"));
    let file = |asked: (&str, &str)| StagedSecret {
        job: uuid::Uuid::nil(),
        state_dir: dir(asked),
        path: site.path(&format!("env/{}", asked.0)),
    };
    let command = Remove { close: asked.map(dir).to_vec(), files: asked.into_iter().map(file).collect() };
    for _ in 0..2 {
        let Removed { kept, held } = site.run(&command);
        assert_eq!(held, [(1, id(77))]);
        assert_eq!(kept, [1], "the job that holds it reads them");
        let holder = |name: &str| std::fs::read_link(site.file(name)).unwrap();
        assert_eq!(holder("state/free/1/run").to_str(), Some("no-owner"));
        assert_eq!(holder("state/held/3/run").to_str(), Some("77"));
        assert!(!site.exists("state/never") && site.exists("env/held") && !site.exists("env/free"));
    }
}

#[test]
fn the_files_of_an_attempt_that_cannot_be_closed_are_kept() {
    let site = Site::new();
    site.write("state/job/1/submit.1", "");
    site.write("state/job/1/run/file", "neither a claim nor a place for one");
    site.write("env/job", "SECRET=1");
    let gone = site.path("gone/state/job/1");
    for state_dir in [site.path("state/job/1"), gone] {
        let file =
            StagedSecret { job: uuid::Uuid::nil(), state_dir: state_dir.clone(), path: site.path("env/job") };
        let removed = site.run(&Remove { close: vec![state_dir], files: vec![file] });
        assert_eq!((removed.kept.as_slice(), removed.held.as_slice()), ([0].as_slice(), [].as_slice()));
        assert!(site.exists("env/job"));
    }
}
