//! Concluding: files and directories of which a file server says nothing at all, and the mark that comes before all reading.

use std::fs;

use remote::{Conclude, Concluded, Concluding, RemoteCommand as _};
use test_case::test_case;

use crate::{
    conclude::{conclude, job},
    site::Site,
};

/// Three jobs of which everything can be read.
fn three(site: &Site) -> Vec<Concluding> {
    let with_files = |key: &str| {
        site.write(&format!("state/{key}/status_from"), "7 0 results/status.json\n");
        site.write(&format!("results/{key}/status.json"), "{}\n");
        site.write(&format!("logs/{key}/main.out"), key);
        site.write(&format!("env/{key}"), "SECRET=1");
        job(site, key)
    };
    ["a", "b", "c"].map(with_files).to_vec()
}

/// Concludes them, while whatever touches a path with this in it hangs.
fn conclude_while_hung(site: &Site, part: &str) -> Vec<Concluded> {
    let jobs = three(site);
    let environment = site.hang_all(part);
    let environment = environment.each_ref().map(|(name, value)| (*name, value.as_str()));
    let command = Conclude { jobs, tail_bytes: 10, status_bytes_total: 1000 };
    command.parse(&site.raw_with(&command, &environment)).unwrap()
}

fn readable(concluded: &[Concluded]) -> Vec<bool> {
    concluded.iter().map(|one| one.readable).collect()
}

#[test]
fn logs_that_hang_hold_up_no_other_job() {
    let site = Site::new();
    let concluded = conclude_while_hung(&site, "/logs/b");
    assert_eq!(readable(&concluded), [true, false, true]);
    let tails: Vec<&[u8]> = concluded.iter().map(|one| one.out_tail.as_slice()).collect();
    assert_eq!(tails, [&b"a"[..], b"", b"c"]);
    assert!(concluded.iter().all(|one| one.removed));
}

#[test_case("/env/b", [true, false, true]; "one of them")]
#[test_case("/env/", [false, false, false]; "their directory")]
fn private_files_that_hang_are_kept_and_hold_up_nothing_else(part: &str, removed: [bool; 3]) {
    let site = Site::new();
    let concluded = conclude_while_hung(&site, part);
    assert_eq!(readable(&concluded), [true, true, true]);
    assert_eq!(concluded.iter().map(|one| one.removed).collect::<Vec<_>>(), removed);
}

#[test]
fn a_note_of_how_far_a_status_file_goes_that_hangs_holds_up_no_other_job() {
    let site = Site::new();
    let concluded = conclude_while_hung(&site, "/state/b/status_from");
    assert_eq!(readable(&concluded), [true, false, true]);
    assert_eq!(concluded.iter().map(|one| one.status.len()).collect::<Vec<_>>(), [1, 0, 1]);
}

#[test_case("/state/b"; "its state directory")]
#[test_case("/results/b"; "its results")]
#[test_case("/state/b/over"; "the mark that it is over")]
fn what_hangs_is_got_away_from(part: &str) {
    let site = Site::new();
    let concluded = conclude_while_hung(&site, part);
    assert!(!concluded[1].readable, "{concluded:?}");
}

#[test]
fn a_file_system_that_goes_is_noticed_of_a_job_that_says_nothing_new_too() {
    let site = Site::new();
    let jobs = three(&site);
    site.remove("results/b/status.json");
    site.program(
        "find",
        "case $* in *status.json*) rm -rf -- \"$SITE/state/b\" ;; esac\nexec /usr/bin/find \"$@\"",
    );
    assert_eq!(readable(&conclude(&site, jobs)), [true, false, true]);
}

#[test]
fn an_end_is_marked_before_anything_that_tells_of_it_is_read() {
    for reader in ["find", "tail", "timeout"] {
        let site = Site::new();
        site.write("state/a/exit", "7 0 3 1700000000\n");
        site.write("state/a/main.out", "text\n");
        let is_marked = "[ -L \"$SITE/state/a/over\" ]";
        site.program(
            reader,
            &format!(
                "case $* in *' last_words '*) ;; *) {is_marked} || : >\"$SITE/early\" ;; esac\n\
                 exec /usr/bin/{reader} \"$@\""
            ),
        );
        conclude(&site, vec![job(&site, "a")]);
        assert!(!site.exists("early"), "{reader} was first");
    }
}

#[test]
fn whose_end_cannot_be_marked_has_not_been_looked_at() {
    let site = Site::new();
    let jobs = three(&site);
    // Nothing can be put in the place of a directory.
    fs::create_dir_all(site.file("state/a/over")).unwrap();
    assert_eq!(readable(&conclude(&site, jobs)), [false, true, true]);
}
