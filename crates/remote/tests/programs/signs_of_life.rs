//! Polling: how much running jobs have written.

use remote::{SignsOfLife, Watched};

use crate::{
    poll::{poll, row, watched},
    site::Site,
};

fn asked(site: &Site, number: u32) -> Watched {
    Watched { signs_of_life: Some(site.path(&format!("logs/{number}"))), ..watched(site, number) }
}

fn signs(site: &Site, job: Watched) -> Option<SignsOfLife> {
    let key = job.key.name.to_string();
    poll(site, vec![job]).signs_of_life.remove(&key)
}

#[test]
fn everything_that_a_job_has_written_is_counted_and_each_byte_changes_it() {
    let site = Site::new();
    site.write("queue", row(7, "RUNNING"));
    let none = signs(&site, asked(&site, 7)).unwrap();
    assert_eq!((none.files, none.bytes, none.newest), (0, 0, 0), "nothing yet, and that is known");
    site.write("logs/7/main.out", "12345");
    site.write("state/7/main.err", "1");
    site.write("results/7/deep/er/than/status/files/model.pth", "123");
    let some = signs(&site, asked(&site, 7)).unwrap();
    assert_eq!((some.files, some.bytes), (3, 9));
    assert!(some.newest > 1_700_000_000_000_000);
    assert_eq!(signs(&site, asked(&site, 7)).unwrap(), some);
    site.append("logs/7/main.out", b"6");
    assert_ne!(signs(&site, asked(&site, 7)).unwrap(), some);
}

#[test]
fn what_the_script_writes_of_the_use_of_its_nodes_is_no_sign_of_life() {
    let site = Site::new();
    site.write("queue", row(7, "RUNNING"));
    site.write("state/7/started", "1");
    let before = signs(&site, asked(&site, 7)).unwrap();
    site.write("state/7/usage", "1 2 3");
    site.write("state/7/.usage.41", "1 2");
    assert_eq!(signs(&site, asked(&site, 7)).unwrap(), before);
    for (number, name) in [(1, "results/7/usage"), (2, "logs/7/usage"), (3, "state/7/deep/usage")] {
        site.write(name, "1");
        let signs = signs(&site, asked(&site, 7)).unwrap();
        assert_eq!(signs.files, before.files + number, "{name}, which its program wrote");
    }
}

#[test]
fn only_running_jobs_that_were_asked_about_are_counted() {
    let site = Site::new();
    site.write("queue", row(7, "RUNNING") + &row(8, "PENDING") + &row(9, "RUNNING"));
    site.write("results/9/x", "x");
    let answer = poll(&site, vec![watched(&site, 7), asked(&site, 8), asked(&site, 9)]);
    assert_eq!(answer.signs_of_life.keys().collect::<Vec<_>>(), ["job-9"]);
}

#[test]
fn a_search_that_did_not_end_says_nothing() {
    let site = Site::new();
    site.write("queue", row(7, "RUNNING"));
    site.write("results/7/x", "x");
    site.program("find", "case \"$*\" in *%H*) kill -KILL $$ ;; esac\nexec /usr/bin/find \"$@\"");
    assert_eq!(signs(&site, asked(&site, 7)), None);
}
